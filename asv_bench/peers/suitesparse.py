"""What KLU and CHOLMOD share: phases in C by the library that SS names, built from shared/peers/suitesparse_shim.c."""

import ctypes
import os

import numpy as np

from ..phases import least
from ..timing import backward_error
from . import with_sums

PHASES = ("analyze", "factor", "refactor", "solve")
LONG = 1.0  # all phases together, of which one run is enough [s]


def missing():
    return "" if os.path.exists(os.environ.get("SS", "")) else "SS has to name libssshim.so"


def phases(function, stored, problem, index, *options):
    """Seconds of each phase on the second values of the problem, the least of runs with repeats in the library.

    Parameters
    ----------
    function : str
        Of the library.
    stored : csc_array
        The part of the matrix that it wants.
    index : dtype
        Of its indices.
    *options : int
        What it takes besides, before the number of repeats.
    """
    arrays = [stored.indptr.astype(index), stored.indices.astype(index), stored.data.astype(np.float64)]
    call = getattr(ctypes.CDLL(os.environ["SS"]), function)

    def run(repeat):
        seconds, info, x = (ctypes.c_double * 8)(), (ctypes.c_double * 8)(), problem.b.copy()
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, x)]
        # begun as ours and the others' first phases are, right after a garbage collection that empties the caches
        _, status = problem.clock.once(lambda: call(stored.shape[0], *pointers, *options, repeat, seconds, info))
        if status:
            raise RuntimeError(f"status {status}")
        return dict(zip(PHASES, seconds, strict=False)), (info, x)

    found, (info, x) = run(1)
    if sum(found.values()) < LONG:
        repeat = problem.clock.calls(found["refactor"] + found["solve"])
        found, (info, x) = least(lambda: run(repeat), problem.again)
    found |= {"flops": info[1], "entries": info[0], "backward_error": backward_error(problem.scaled, x, problem.b)}
    return with_sums(found)
