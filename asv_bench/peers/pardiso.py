"""MKL PARDISO, through ctypes: MKL is the path of libmkl_rt.so, which the wheels of pypardiso contain.

Symmetric indefinite matrices are measured with its defaults and with the scaling and matching that its manual
recommends for saddle points; the better of the two counts for each phase, if both solve.
"""

import ctypes
import os

import numpy as np
import scipy.sparse as sp

from ..phases import begun
from ..timing import backward_error
from . import Peer, best_of, with_sums

GENERAL, DEFINITE, INDEFINITE = 11, 2, -2  # mtype
SCALING, MATCHING, ENTRIES, INERTIA = 10, 12, 17, slice(21, 23)  # of iparm
ANALYSIS, FACTORIZATION, SOLVE, RELEASE = 11, 22, 33, -1  # phase


class PARDISO(Peer):
    """MKL PARDISO: supernodal LU, Cholesky and LDL^T, parallel."""

    kinds, symmetric = (False, True), True

    def missing(self):
        return "" if os.path.exists(os.environ.get("MKL", "")) else "MKL has to name libmkl_rt.so"

    def measure(self, problem):
        return best_of(with_matching, [(problem, False), (problem, True)]) if problem.symmetric else by_kind(problem)


def with_matching(problem, matching):
    return by_kind(problem, {SCALING: int(matching), MATCHING: int(matching)})


def by_kind(problem, settings=()):
    solver = Solver(problem.scaled, problem.b, problem.definite, problem.symmetric)
    for place, value in dict(settings).items():
        solver.options[place] = value
    try:
        found, _ = begun(problem, solver.begin, lambda _: solver.run(FACTORIZATION))
        found["refactor"] = problem.clock.least(lambda: solver.run(FACTORIZATION))
        found["solve"] = problem.clock.least(lambda: solver.run(SOLVE))
        found["entries"] = int(solver.options[ENTRIES])
        if problem.symmetric:
            found["inertia"] = "{}, {}".format(*solver.options[INERTIA])
    finally:
        solver.run(RELEASE)
    return with_sums(found | {"backward_error": backward_error(problem.scaled, solver.x, problem.b)})


class Solver:
    """One matrix and right-hand side: rows from 1 on, the upper triangle of a definite or symmetric matrix, whole.

    With `interface`, numbers of unknowns, a factorization leaves the Schur complement on them in `schur`.
    """

    def __init__(self, A, b, definite, symmetric=False, interface=None):
        self.library = ctypes.CDLL(os.environ["MKL"])
        rows = sp.csr_array(sp.triu(with_diagonal(A)) if definite or symmetric else A)
        rows.sort_indices()
        self.state, self.options = np.zeros(64, np.int64), np.zeros(64, np.int32)
        self.matrix = [rows.data.astype(np.float64), *((a + 1).astype(np.int32) for a in (rows.indptr, rows.indices))]
        self.kind = ctypes.c_int(DEFINITE if definite else INDEFINITE if symmetric else GENERAL)
        self.n, self.b, self.x = A.shape[0], b, b * 0
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


def with_diagonal(A):
    """All of the diagonal stored, as symmetric matrices have to have it: sums of patterns keep zeros."""
    rows, cols = A.tocoo().coords
    everyone = np.arange(A.shape[0])
    entries = np.concatenate([A.tocoo().data, np.zeros(everyone.size)])
    places = np.concatenate([rows, everyone]), np.concatenate([cols, everyone])
    return sp.csr_array(sp.coo_array((entries, places), shape=A.shape))


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)
