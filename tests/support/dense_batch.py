"""An engine whose batches are dense systems without pivoting, LAPACK's where they go wrong: for tests of the facade."""

import numpy as np
import scipy.sparse as sp

from gpusplu import _core
from gpusplu.common.timing import backward_error
from gpusplu.engines.cpu.engine import CpuEngine
from gpusplu.engines.interface import Batch

REPORT = np.dtype(
    [
        ("multiplier", "f8"),
        ("growth", "f8"),
        ("n_perturbed", "i4"),
        ("n_tiny", "i4"),
        ("failed", "i4"),
        ("not_finite", "?"),
        ("not_symmetric", "?"),
    ]
)


class DenseBatch(Batch):
    """LU, or Cholesky, without pivoting: `failed` where a pivot is none."""

    def __init__(self, pattern, dtype, cholesky, count):
        self.pattern, self.n, self.cholesky, self.count = pattern, pattern.n, cholesky, count
        self.nbytes, self.steps = count * pattern.n**2 * dtype.itemsize, np.zeros(count, np.int32)
        self.found = np.zeros(count, REPORT)

    def refactor(self, values, source=None, *, wait=True):
        self.held = (values if source is None else values[:, source]).copy()
        self.found[...] = 0
        for k in range(self.count):
            M = self.matrix(k).toarray()
            self.found[k] = *self.factor(M.copy()), self.cholesky and not is_hermitian(M)

    def matrix(self, system):
        return sp.csc_array((self.held[system], self.pattern.ind, self.pattern.ptr), shape=(self.n, self.n))

    def factor(self, M):
        if not np.isfinite(M).all():
            return 0.0, 0.0, 0, 0, -1, True
        largest = 0.0
        with np.errstate(all="ignore"):
            for j in range(self.n):
                pivot = M[j, j]
                if pivot == 0 or (self.cholesky and not pivot.real > 0):
                    return largest, 1.0, 0, 0, j, False
                M[j + 1 :, j] /= pivot
                largest = max(largest, np.abs(M[j + 1 :, j]).max(initial=0))
                M[j + 1 :, j + 1 :] -= np.outer(M[j + 1 :, j], M[j, j + 1 :])
        return largest, 1.0, 0, 0, -1, not np.isfinite(M).all()

    def report(self):
        return self.found

    def solve(self, b, trans=0, given=None, **options):
        if given is not None:
            self.refactor(*given)
        x, self.measured = np.full(b.shape, np.nan, b.dtype), np.full(self.count, np.nan)
        for k in range(self.count):
            if self.found[k]["failed"] < 0 and not self.found[k]["not_finite"]:
                M = self.matrix(k)
                op = (M, M.T, M.conj().T)[trans]
                x[k] = np.linalg.solve(op.toarray(), b[k])
                self.measured[k] = backward_error(op, x[k], b[k])
        return x

    def errors(self):
        return self.measured

    def slogdet(self):
        return np.linalg.slogdet(np.nan_to_num([self.matrix(k).toarray() for k in range(self.count)]))

    def inverse_on_pattern(self):
        columns = np.repeat(np.arange(self.n), np.diff(self.pattern.ptr))
        entries = np.full((self.count, self.pattern.nnz), np.nan, self.held.dtype)
        for k in np.flatnonzero((self.found["failed"] < 0) & ~self.found["not_finite"]).tolist():
            entries[k] = np.linalg.inv(self.matrix(k).toarray())[columns, self.pattern.ind]
        return entries, np.where(np.isnan(entries[:, 0]), np.inf, 0)

    def values(self, system):
        return self.held[system].copy()


class DenseBatches(CpuEngine):
    """The CPU engine with such batches, of `most` systems if that is given."""

    name, most = "dense_batches", None

    def batch(self, problem, analysis, count):
        if self.most is not None and count > self.most:
            raise MemoryError(f"no room for {count} systems")
        assert analysis.core.n == problem.n and isinstance(problem.pattern.core, _core.Canonical)
        return DenseBatch(problem.pattern, problem.dtype, problem.cholesky, count)


def systems_like(A, count, seed=1):
    """Values of systems with the pattern of `A`, near its own."""
    rng = np.random.default_rng(seed)
    return (A.data * rng.uniform(0.8, 1.2, (count, A.nnz))).astype(A.dtype)


def is_hermitian(M):
    return not abs(M - M.conj().T).max() > 1e3 * np.finfo(M.dtype).eps * abs(M).max()


class OneByOne(CpuEngine):
    """The CPU engine without batches."""

    name = "one_by_one"
    capabilities = CpuEngine.capabilities._replace(batches=False)

    def batch(self, problem, analysis, count):
        return None
