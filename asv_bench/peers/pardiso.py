"""MKL PARDISO through ctypes: MKL is the path of libmkl_rt.so, which pypardiso's wheels bring."""

import ctypes
import os

import numpy as np
import scipy.sparse as sp

from ..phases import begun
from ..timing import backward_error
from . import with_sums

KINDS, MOST_FLOPS = (False, True), float("inf")
GENERAL, DEFINITE = 11, 2  # mtype
ANALYSIS, FACTORIZATION, SOLVE, RELEASE = 11, 22, 33, -1  # phase


def missing():
    return "" if os.path.exists(os.environ.get("MKL", "")) else "MKL has to name libmkl_rt.so"


def measure(problem):
    solver = Pardiso(problem.scaled, problem.b, problem.definite)
    try:
        found, _ = begun(problem, solver.begin, lambda _: solver.run(FACTORIZATION))
        found["refactor"] = problem.clock.least(lambda: solver.run(FACTORIZATION))
        found["solve"] = problem.clock.least(lambda: solver.run(SOLVE))
    finally:
        solver.run(RELEASE)
    return with_sums(found | {"backward_error": backward_error(problem.scaled, solver.x, problem.b)})


class Pardiso:
    """One matrix and right-hand side: rows from 1 on, the upper triangle of a definite matrix.

    With `interface`, numbers of unknowns, a factorization leaves the Schur complement on them in `schur`.
    """

    def __init__(self, A, b, definite, interface=None):
        self.library = ctypes.CDLL(os.environ["MKL"])
        rows = sp.csr_array(sp.triu(A) if definite else A)
        rows.sort_indices()
        self.state, self.options = np.zeros(64, np.int64), np.zeros(64, np.int32)
        self.matrix = [rows.data.astype(np.float64), *((a + 1).astype(np.int32) for a in (rows.indptr, rows.indices))]
        self.kind, self.n, self.b, self.x = ctypes.c_int(DEFINITE if definite else GENERAL), A.shape[0], b, b * 0
        self.library.pardisoinit(pointer(self.state), ctypes.byref(self.kind), pointer(self.options))
        self.chosen = self.schur = None
        if interface is not None:
            self.options[35] = 2  # the complement, with a factor to solve with
            self.chosen, self.schur = np.zeros(self.n, np.int32), np.zeros((len(interface),) * 2)
            self.chosen[interface] = 1

    def run(self, phase):
        """Raises RuntimeError where PARDISO reports an error."""
        error = ctypes.c_int()
        x = self.x if self.schur is None or phase != FACTORIZATION else self.schur

        def number(value):
            return ctypes.byref(ctypes.c_int(value))

        self.library.pardiso(
            *(pointer(self.state), number(1), number(1), ctypes.byref(self.kind), number(phase), number(self.n)),
            *map(pointer, self.matrix),
            *(None if self.chosen is None else pointer(self.chosen), number(1), pointer(self.options), number(0)),
            *(pointer(self.b), pointer(x), ctypes.byref(error)),
        )
        if error.value:
            raise RuntimeError(f"PARDISO returned error {error.value}")

    def begin(self):
        """Analysis, of nothing known."""
        self.run(RELEASE)
        self.run(ANALYSIS)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)
