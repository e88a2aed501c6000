"""Solutions in double precision from a factor in single precision.

Plain refinement first, with residuals in double precision (J. H. Wilkinson, "Rounding Errors in Algebraic Processes",
1963; J. Langou et al., SC 2006, for factors in single precision). It contracts by the condition number times the
precision of the factor. Where that is slow, the residual is solved for by GMRES that the factor preconditions (E.
Carson and N. J. Higham, SIAM J. Sci. Comput. 40 (2018), A817), and because the preconditioner is applied in single
precision, by its flexible variant, which is then backward stable (M. Arioli and I. S. Duff, ETNA 33 (2009), 31).

The errors of the factor are larger than rounding errors of double precision, so a norm alone is not sufficient. Every
row is measured relative to its own size (Oettli and Prager, Numer. Math. 6 (1964)). Rows that hold nothing but rounding
errors stay large; their effect on the solution must then not exceed that of rounding errors of all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ... import _core
from ...common import accuracy, matrix
from ...common.matrix import Pattern


class DoubleMatrix(Protocol):
    """Values on a pattern, with the methods that refinement needs. Arrays are two-dimensional and
    Fortran-contiguous."""

    def residual(self, b: Any, x: Any, trans: int) -> tuple[Any, Any]:
        """``b - op(A) x`` and ``|op(A)| |x| + |b|``."""

    def measured(self, b: Any, x: Any, trans: int) -> tuple[Any, np.ndarray]:
        """``b - op(A) x``, and on the host, shape (k, 4), for each column the largest modulus of that, of x, of the
        second result of `residual`, and of the first divided by that; values that are not finite may be NaN or Inf."""

    def local(self, array: np.ndarray) -> Any:
        """Copy an array of the host to the side of the matrix."""

    def full(self, shape: tuple[int, int], value: float) -> Any:
        """A new array on that side, of the dtype of the matrix."""

    def canonical(self) -> np.ndarray:
        """The values, on the host."""


class HostMatrix:
    """A `DoubleMatrix` on the host.

    Parameters
    ----------
    pattern : Pattern
    values : ndarray, shape (nnz,)
        Canonical.
    """

    def __init__(self, pattern: Pattern, values: np.ndarray):
        self._pattern, self._values = pattern, values

    def residual(self, b: np.ndarray, x: np.ndarray, trans: int) -> tuple[np.ndarray, np.ndarray]:
        flat = (array.reshape(-1, order="F") for array in (x, b))
        r, sizes = _core.residual(self._pattern.ptr, self._pattern.ind, self._values, "NTH"[trans], *flat)
        return r.reshape(b.shape, order="F"), sizes.reshape(b.shape, order="F")

    def measured(self, b: np.ndarray, x: np.ndarray, trans: int) -> tuple[np.ndarray, np.ndarray]:
        r, sizes = self.residual(b, x, trans)
        rows = abs(r) / (sizes + (sizes == 0))
        return r, np.stack([largest_of_columns(array) for array in (r, x, sizes, rows)], axis=1)

    def local(self, array: np.ndarray) -> np.ndarray:
        return array

    def full(self, shape: tuple[int, int], value: float) -> np.ndarray:
        return np.full(shape, value, self._values.dtype, order="F")

    def canonical(self) -> np.ndarray:
        return self._values


def largest_of_columns(array: Any) -> np.ndarray:
    """Largest modulus of each column, on the host."""
    return np.asarray(matrix.to_host(abs(array).max(axis=0)))


EPS = float(np.finfo(np.float64).eps)
#: Backward errors up to which nothing is refined: of the norm, and of rows.
ENOUGH, ROWS_ENOUGH = accuracy.ENOUGH * EPS, accuracy.ACCEPTED * EPS
#: Largest effect of rows that stay above on a solution, in units of the effect of rounding errors of rows.
HARMLESS = 1e3
#: Relative to the largest unknown: smaller values count as zero, which they may be in single precision.
NOTHING = 1e-30
#: A step of plain refinement that leaves more of an error than this is slow; such a step by GMRES is the last.
SLOW, USELESS = 0.25, 0.5
MOST_STEPS = 30
#: Of GMRES: vectors, residual at which it ends, restarts.
VECTORS, REDUCTION, RESTARTS = 20, 1e-8, 5


class Correct(Protocol):
    """Solves op(A) d = r by the factor in single precision."""

    def __call__(self, r: Any, trans: int, size: np.ndarray | None = None) -> Any:
        """`size`: the largest modulus of each column, if it is known."""


class Errors(NamedTuple):
    """Backward errors of solutions, by column: in the infinity norm, and the largest of a row."""

    normwise: np.ndarray
    rowwise: np.ndarray

    @property
    def converged(self) -> np.ndarray:
        return (self.normwise <= ENOUGH) & (self.rowwise <= ROWS_ENOUGH)

    def fell(self, before: Errors, part: float) -> np.ndarray:
        """Whether a relevant error has fallen to this part of its previous value."""
        normwise = (self.normwise <= part * before.normwise) & (before.normwise > ENOUGH)
        return normwise | ((self.rowwise <= part * before.rowwise) & (before.rowwise > ROWS_ENOUGH))

    def no_worse(self, before: Errors) -> np.ndarray:
        """By rows only if the norm is good already: rounding errors of large rows reach the small ones first."""
        good = (before.normwise <= ENOUGH) & (self.normwise <= ENOUGH)
        return np.where(good, self.rowwise <= before.rowwise, self.normwise <= before.normwise)


class Refined(NamedTuple):
    """Result of refinement.

    Attributes
    ----------
    x : array, shape (n, k)
    error : float
        The largest normwise backward error.
    accurate : bool
    steps, iterations : int
        Of refinement, and of GMRES in them.
    """

    x: Any
    error: float
    accurate: bool
    steps: int
    iterations: int


class Rows:
    """Properties of the rows of op(A).

    Attributes
    ----------
    norm, least : float
        The largest and the least sum of moduli; NaN if a value is.
    weights : array, shape (n, 1)
        Scale all rows to the same size.
    """

    def __init__(self, A: DoubleMatrix, n: int, trans: int):
        sums = A.residual(A.full((n, 1), 0.0), A.full((n, 1), 1.0), trans)[1]
        self.norm, self.least = float(sums.max().item()), float(sums.min().item())
        self.weights = 1.0 / (sums + (sums == 0))


class Solution:
    """Approximate solutions of op(A) X = B, of zero at first, with their residuals and errors."""

    def __init__(self, A: DoubleMatrix, rows: Rows, b: Any, trans: int):
        self.A, self.rows, self.b, self.trans = A, rows, b, trans
        self.x, self.r, self.size_of_b = A.full(b.shape, 0.0), b, largest_of_columns(b)
        self.size_of_r = self.size_of_b
        whole = (self.size_of_b > 0).astype(float)  # with x = 0, the error of every nonzero entry is 1
        self.errors = Errors(whole, whole.copy())

    def _errors(self, norms: np.ndarray) -> Errors:
        """Errors from the result of `DoubleMatrix.measured`."""
        sizes = zip(norms[:, 0].tolist(), norms[:, 1].tolist(), self.size_of_b.tolist(), strict=True)
        normwise = np.array([_core.backward_error(r, x, b, self.rows.norm) for r, x, b in sizes])
        in_range = np.isfinite(norms[:, 2])  # else the errors are unknown
        return Errors(*(np.where(in_range, error, np.inf) for error in (normwise, norms[:, 3])))

    def solved(self, correct: Correct) -> Any:
        """Corrections of the factor for the residuals."""
        return correct(self.r, self.trans, self.size_of_r)

    def add(self, d: Any) -> None:
        """Take a step, in the columns in which it does not increase the error."""
        x = self.x + d
        r, norms = self.A.measured(self.b, x, self.trans)
        errors = self._errors(norms)
        kept = errors.no_worse(self.errors)
        for column in np.flatnonzero(~kept).tolist():
            x[:, column], r[:, column] = self.x[:, column], self.r[:, column]
        self.x, self.r, self.size_of_r = x, r, np.where(kept, norms[:, 0], self.size_of_r)
        self.errors = Errors(*(np.where(kept, new, old) for new, old in zip(errors, self.errors, strict=True)))

    def column(self, k: int) -> Solution:
        """One column as a separate solution."""
        one = object.__new__(Solution)
        one.A, one.rows, one.trans = self.A, self.rows, self.trans
        one.b, one.x, one.r = (array[:, k : k + 1] for array in (self.b, self.x, self.r))
        one.size_of_b, one.size_of_r = self.size_of_b[k : k + 1], self.size_of_r[k : k + 1]
        one.errors = Errors(*(error[k : k + 1] for error in self.errors))
        return one

    def put(self, k: int, one: Solution) -> None:
        """Store the result of `column` back."""
        self.x[:, k] = one.x[:, 0]
        for errors, error in zip(self.errors, one.errors, strict=True):
            errors[k] = error[0]

    def is_accurate(self, correct: Correct) -> bool:
        """Whether one column is converged, or its residual has less effect than rounding errors may have.

        The test covers every unknown: two solves for rounding errors of all rows bound the error of each.
        """
        if self.errors.converged[0]:
            return True
        if not self.errors.normwise[0] <= ENOUGH:
            return False
        sizes = self.A.residual(self.b, self.x, self.trans)[1]
        signs = np.where(np.random.default_rng(0).random(self.b.shape) < 0.5, -1.0, 1.0)
        off = abs(self.solved(correct))
        rounding = sum(abs(correct(EPS * sizes * self.A.local(s), self.trans)) for s in (abs(signs), signs))
        size = abs(self.x)
        return bool((off <= HARMLESS * (rounding + EPS * size) + NOTHING * size.max()).all())


def refine(A: DoubleMatrix, rows: Rows, correct: Correct, b: Any, trans: int) -> Refined:
    """Solve op(A) X = B, finite, shape (n, k)."""
    with np.errstate(all="ignore"):  # what is not finite is not accurate
        solution = Solution(A, rows, b, trans)
        solution.add(solution.solved(correct))
        steps, iterations, accurate = plain(solution, correct), 0, True
        for k in np.flatnonzero(~solution.errors.converged).tolist():
            one = solution.column(k)
            if not one.is_accurate(correct):
                found = by_gmres(one, correct)
                accurate, steps, iterations = accurate and found[0], steps + found[1], iterations + found[2]
                solution.put(k, one)
        return Refined(solution.x, float(solution.errors.normwise.max()), accurate, steps, iterations)


def plain(solution: Solution, correct: Correct) -> int:
    """Refine while the steps are fast; the number of steps."""
    for step in range(MOST_STEPS):
        before = solution.errors
        if before.converged.all():
            return step
        solution.add(solution.solved(correct))
        if not solution.errors.fell(before, SLOW).any():
            return step + 1
    return MOST_STEPS


def by_gmres(solution: Solution, correct: Correct) -> tuple[bool, int, int]:
    """Refine one solution by GMRES while steps help: whether it is accurate, and the numbers of steps and
    iterations."""
    iterations = 0
    for step in range(RESTARTS):
        before = solution.errors
        d, took = gmres(solution, correct)
        solution.add(d)
        iterations += took
        if solution.is_accurate(correct):
            return True, step + 1, iterations
        if not solution.errors.fell(before, USELESS)[0]:
            break
    return False, step + 1, iterations


def gmres(solution: Solution, correct: Correct) -> tuple[Any, int]:
    """Solve op(A) d = r for the residual of one solution by flexible GMRES (Y. Saad, SIAM J. Sci. Comput. 14 (1993),
    algorithm 2.2), with rows of one size; and the number of iterations."""
    trans, weights, r = solution.trans, solution.rows.weights, solution.r
    nothing, v = 0 * r, r * weights
    size = float(largest_of_columns(v)[0])
    v = v / size
    length = norm(v)
    basis, directions, y = [v / length], [], np.zeros(0)
    H = np.zeros((VECTORS + 1, VECTORS), r.dtype)
    for j in range(VECTORS):
        z = correct(basis[j] / weights, trans)
        w = -solution.A.residual(nothing, z, trans)[0] * weights
        for _ in range(2):  # two passes suffice
            for i, q in enumerate(basis):
                h = dot(q, w)
                w = w - h * q
                H[i, j] += h
        H[j + 1, j] = norm(w)
        if not np.isfinite(H[: j + 2, j]).all():
            break
        directions.append(z)
        right = np.zeros(j + 2, r.dtype)
        right[0] = length
        y = np.linalg.lstsq(H[: j + 2, : j + 1], right, rcond=None)[0]
        left = np.linalg.norm(right - H[: j + 2, : j + 1] @ y)
        if left <= REDUCTION * length or abs(H[j + 1, j]) <= EPS * np.linalg.norm(H[: j + 2, j]):
            break
        basis.append(w / H[j + 1, j].real)
    d = nothing
    for coefficient, z in zip(y.tolist(), directions, strict=True):
        d = d + size * coefficient * z
    return d, len(directions)


def dot(a: Any, b: Any) -> Any:
    return (a.conj() * b).sum().item()


def norm(a: Any) -> float:
    return float((abs(a) ** 2).sum().item() ** 0.5)
