"""A complete engine in one file: dense LU by LAPACK, which the contract suite runs like any other (CONTRIBUTING.md)."""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import get_lapack_funcs

from gpusplu.cost.model import Estimate
from gpusplu.engines.interface import Analysis, Capabilities, Engine

ROUTINES = ("getrf", "getrs", "gecon", "getri")


class ToyFactor:
    """P A Q = L U with rows P by partial pivoting and columns Q as the analysis orders them."""

    method, backward_error = "column", -1.0

    def __init__(self, symbolic, problem, values):
        self.symbolic, self.pattern, self.refine = symbolic, problem.pattern, problem.options.refine
        self.n = problem.n
        self.nnz, self.col_perm = self.n**2, symbolic.col_perm
        self.getrf, self.getrs, self.gecon, self.getri = get_lapack_funcs(ROUTINES, (values,))
        self.counts = dict.fromkeys(("n_refactor", "n_repivoted"), -1)  # the first factorization is none of them
        self.row_perm = np.empty(0, np.int32)
        self.refactor(values)

    def matrix(self, values):
        pattern = self.pattern
        return sp.csc_array((values, pattern.ind, pattern.ptr), shape=(self.n, self.n))

    def refactor(self, values, source=None):
        values = (values if source is None else values[source]).copy()
        if not np.isfinite(values).all():
            return int(np.isfinite(values).argmin())
        if self.symbolic.structural_rank < self.n:
            raise RuntimeError("Factor is exactly singular")
        A = self.matrix(values).toarray()
        lu, swaps, info = self.getrf(A[:, self.col_perm]) if self.n else (A, (), 0)
        rounding = 8 * np.finfo(lu.dtype).eps * abs(A).max(axis=0, initial=0).min(initial=np.inf)
        if info or (abs(lu.diagonal()) < rounding).any():
            raise RuntimeError("Factor is exactly singular")
        row_perm = np.arange(self.n, dtype=np.int32)
        for k, other in enumerate(swaps):
            row_perm[[k, other]] = row_perm[[other, k]]
        self.counts["n_refactor"] += 1
        self.counts["n_repivoted"] += not np.array_equal(row_perm, self.row_perm)
        self.held, self.row_perm = (lu, swaps, values), row_perm  # one store: threads read it
        return -1

    def solve(self, b, trans=0):
        if not self.n:
            return b.copy()
        lu, swaps, values = self.held
        if trans == 0:
            x = np.empty_like(b)
            x[self.col_perm] = self.getrs(lu, swaps, b)[0]
        else:
            x = self.getrs(lu, swaps, b[self.col_perm], trans=trans)[0]
        if not np.isfinite(x).all() and np.isfinite(b).all():
            warnings.warn("overflow encountered in solve", RuntimeWarning, stacklevel=3)
        elif self.refine != "never":
            self.measure(self.matrix(values), b, x, trans)
        return x

    def measure(self, A, b, x, trans):
        """Normwise backward error, the largest of all columns (Rigal and Gaches, 1967)."""
        A = (A, A.T, A.conj().T)[trans]
        residual = abs(A @ x - b).max(axis=0, initial=0)
        size = abs(A).sum(axis=1).max(initial=0) * abs(x).max(axis=0, initial=0) + abs(b).max(axis=0, initial=0)
        self.backward_error = float((residual / np.where(size == 0, 1, size)).max(initial=0))

    def values(self):
        return self.held[2]

    def host_factor(self):
        return self

    def lower(self):
        L = sp.csc_array(np.tril(self.held[0], -1) + np.eye(self.n, dtype=self.held[0].dtype))
        return L.indptr, L.indices, L.data

    def upper(self):
        U = sp.csc_array(np.triu(self.held[0]))
        return U.indptr, U.indices, U.data

    def inverse(self):
        lu, swaps, _ = self.held
        inverse = np.empty_like(lu)
        inverse[self.col_perm] = self.getri(lu, swaps)[0]
        return inverse

    def inverse_on_pattern(self):
        columns = np.repeat(np.arange(self.n), np.diff(self.pattern.ptr))
        return self.inverse()[columns, self.pattern.ind]

    def inverse_on_factors(self):
        inverse = self.inverse()
        rows = np.tile(np.arange(self.n, dtype=np.int32), self.n)
        return np.arange(self.n + 1, dtype=np.int64) * self.n, rows, inverse.ravel()

    def inverse_at(self, rows, columns):
        return self.inverse()[rows, columns], np.empty(0, np.int64)

    def slogdet(self):
        diagonal = self.held[0].diagonal()
        odd = parity(self.row_perm) + parity(self.col_perm)
        sign = np.prod(diagonal / abs(diagonal)) * (-1) ** odd
        return sign, np.log(abs(diagonal)).sum(dtype="d")

    def rcond(self):
        lu, _, values = self.held
        return self.gecon(lu, abs(self.matrix(values)).sum(axis=0).max())[0]

    def stats(self):
        pivots = abs(self.held[0].diagonal())
        counts = ("n_updated", "n_delayed", "n_reanalyzed", "n_refinement", "n_perturbed", "n_off_diagonal")
        return {
            **self.counts,
            **dict.fromkeys(counts, 0),
            **dict.fromkeys(("factor_seconds", "refactor_seconds", "solve_seconds"), 0.0),
            "min_pivot": pivots.min(initial=np.inf),
            "max_pivot": pivots.max(initial=0),
            "max_multiplier": 1.0,
            "pivot_growth": 1.0,
            "flops": self.n**3 * 2 / 3,
            "bytes": self.held[0].nbytes,
        }


def parity(order):
    """0 for an even permutation, 1 for an odd one."""
    return round(1 - np.linalg.det(np.eye(len(order))[order])) // 2


class ToyEngine(Engine):
    name = "toy"
    capabilities = Capabilities(kinds=("lu",))

    def estimate(self, problem):
        return Estimate("toy", factor=1e-3, refactor=1e-3, solve=1e-4)

    def analyze(self, problem):
        return problem.memo("toy", lambda: Analysis(problem.for_processor()))

    def adopt(self, problem, analysis):
        problem.memo("toy", lambda: analysis)

    def factor(self, problem, analysis, values):
        return ToyFactor(analysis.core, problem, values)
