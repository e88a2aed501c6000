"""What KLU and CHOLMOD share: phases in C by the library that SS names, built from shared/peers/suitesparse_shim.c."""

import ctypes
import os

import numpy as np

from ..timing import backward_error
from . import with_sums

PHASES = ("analyze", "factor", "refactor", "solve")


def missing():
    return "" if os.path.exists(os.environ.get("SS", "")) else "SS has to name libssshim.so"


def phases(function, stored, problem, index, *options):
    """Seconds of each phase on the second values of the problem, the least of the library's repeats.

    Parameters
    ----------
    function : str
        Of the library.
    stored : csc_array
        The part of the matrix that it wants.
    index : dtype
        Of its indices.
    *options : int
        What it takes besides.
    """
    seconds, info = (ctypes.c_double * 8)(), (ctypes.c_double * 8)()
    x = problem.b.copy()
    arrays = [stored.indptr.astype(index), stored.indices.astype(index), stored.data.astype(np.float64), x]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    run = getattr(ctypes.CDLL(os.environ["SS"]), function)
    status = run(stored.shape[0], *pointers, *options, seconds, info)
    if status:
        raise RuntimeError(f"status {status}")
    found = dict(zip(PHASES, seconds, strict=False))
    found |= {"flops": info[1], "entries": info[0], "backward_error": backward_error(problem.scaled, x, problem.b)}
    return with_sums(found)
