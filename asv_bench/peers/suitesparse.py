"""KLU, CHOLMOD and AMD of SuiteSparse, through ctypes.

SS is the path of a library with the phases of KLU and CHOLMOD in C, built from shared/peers/suitesparse_shim.c. AMD is
the path of libamd.so.2, if the loader does not find it.
"""

import ctypes
import os

import numpy as np
import scipy.sparse as sp

from ..phases import least
from ..timing import backward_error
from . import Peer, with_sums

PHASES = ("analyze", "factor", "refactor", "solve")
LONG = 1.0  # if all phases together take longer, they run once [s]
DEFAULT_ORDERING = 0  # of CHOLMOD


class KLU(Peer):
    """KLU of SuiteSparse: LU by columns of circuit matrices, one thread."""

    kinds, parallel, most_flops = (False,), False, 5e9

    def missing(self):
        return "" if os.path.exists(os.environ.get("SS", "")) else "SS has to name libssshim.so"

    def measure(self, problem):
        return phases("bench_klu", problem.scaled, problem, np.int32)


class CHOLMOD(KLU):
    """CHOLMOD of SuiteSparse: supernodal Cholesky, as many threads as its BLAS has."""

    kinds, parallel, most_flops = (True,), True, 2e11

    def measure(self, problem):
        lower = sp.csc_array(sp.tril(problem.scaled))
        return phases("bench_cholmod", lower, problem, np.int64, DEFAULT_ORDERING)


class AMD(Peer):
    """AMD of SuiteSparse: approximate minimum degree."""

    def library(self):
        return ctypes.CDLL(os.environ.get("AMD", "libamd.so.2"))

    def missing(self):
        try:
            self.library()
        except OSError:
            return "AMD has to name libamd.so.2"
        return ""

    def order(self, ptr, ind):
        found = np.empty(len(ptr) - 1, np.int32)
        arrays = (ptr.astype(np.int32), ind, found)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        status = self.library().amd_order(ctypes.c_int(found.size), *pointers, None, None)
        if status < 0:
            raise RuntimeError(f"amd_order returned {status}")
        return found


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


COMMON = 2**14  # bytes, more than cholmod_common has
FIELDS = ("nrow", "ncol", "nzmax", "p", "i", "nz", "x", "z")


class Sparse(ctypes.Structure):
    """cholmod_sparse with int indices and real values; the arrays have to live as long."""

    _fields_ = (
        *((name, ctypes.c_size_t if k < 3 else ctypes.c_void_p) for k, name in enumerate(FIELDS)),
        *((name, ctypes.c_int) for name in ("stype", "itype", "xtype", "dtype", "sorted", "packed")),
    )

    def __init__(self, A, stype):
        A = sp.csc_array(A)
        A.sort_indices()
        self.arrays = A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data.astype(np.float64)
        p, i, x = (array.ctypes.data for array in self.arrays)
        super().__init__(*A.shape, A.nnz, p, i, None, x, None, stype, 0, 1, 0, 1, 1)


class UpDown:
    """A factor of a definite matrix that changes by C C^T. Simplicial, L D L^T, from the first change on."""

    def __init__(self, A):
        ctypes.CDLL(os.environ["SS"])  # brings the library
        self.library, self.common = ctypes.CDLL("libcholmod.so.3"), ctypes.create_string_buffer(COMMON)
        self.library.cholmod_start(self.common)
        self.library.cholmod_analyze.restype = ctypes.c_void_p
        stored = Sparse(sp.tril(A), -1)
        self.factor = ctypes.c_void_p(self.library.cholmod_analyze(ctypes.byref(stored), self.common))
        self.library.cholmod_factorize(ctypes.byref(stored), self.factor, self.common)
        order = ctypes.c_void_p.from_address(self.factor.value + 2 * ctypes.sizeof(ctypes.c_size_t)).value
        self.perm = np.ctypeslib.as_array((ctypes.c_int32 * A.shape[0]).from_address(order)).copy()

    def columns(self, C):
        """C as `change` takes it."""
        return Sparse(sp.csr_array(C)[self.perm], 0)

    def change(self, columns, subtract):
        """Raises RuntimeError where CHOLMOD reports that it has failed."""
        if not self.library.cholmod_updown(int(not subtract), ctypes.byref(columns), self.factor, self.common):
            raise RuntimeError("CHOLMOD has not changed the factor")

    def free(self):
        self.library.cholmod_free_factor(ctypes.byref(self.factor), self.common)
        self.library.cholmod_finish(self.common)
