"""CHOLMOD of SuiteSparse: supernodal Cholesky, as many threads as its BLAS has."""

import ctypes
import os

import numpy as np
import scipy.sparse as sp

from . import suitesparse

KINDS, MOST_FLOPS = (True,), 2e11
DEFAULT_ORDERING = 0
missing = suitesparse.missing


def measure(problem):
    lower = sp.csc_array(sp.tril(problem.scaled))
    return suitesparse.phases("bench_cholmod", lower, problem, np.int64, DEFAULT_ORDERING)


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
