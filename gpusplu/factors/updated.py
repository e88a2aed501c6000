"""Solves with A + U V^H of low rank by a factor of A: Sherman, Morrison and Woodbury."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.counting import FACTORIZATIONS
from ..common.matrix import Pattern
from ..common.options import Options
from ..common.rhs import complex_dtype, solve_as_given
from ..common.scipy_names import warn
from ..cost.calibration import for_core
from ..engines.processor import cpu_factor
from ..errors import IllConditionedUpdateError, NonFiniteError
from ..typing import ArrayT, Trans

if TYPE_CHECKING:
    from ..common.results import SlogDet


OPS: tuple[Trans, ...] = get_args(Trans)


class UpdatedFactor:
    """Solves with ``A + U V^H`` by the factor of A and a dense one of the capacitance matrix ``I + V^H A^-1 U``.

    Made by :meth:`LUFactor.updated` (W. W. Hager, "Updating the inverse of a matrix", SIAM Review 31, 1989). Solutions
    are checked with the residual of the updated matrix and refined, as those of other factors. If that is not enough,
    because U V^H is so large that digits of A are lost in the sum, a new factor of A bordered by U and V solves.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    rank : int
        Columns of U and V.
    backward_error : float or None
        Normwise, of the last solve.

    See Also
    --------
    CholeskyFactor.update

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> lu = gs.splu(A)
    >>> u = np.ones(100)
    >>> updated = lu.updated(u)
    >>> updated.rank
    1
    >>> np.allclose((A + np.outer(u, u)) @ updated.solve(np.ones(100)), 1)
    True
    """

    def __init__(self, factor: Any, U: Any, V: Any):
        U, V = (_columns(name, array, factor.shape[0]) for name, array in (("U", U), ("V", V)))
        if U.shape != V.shape:
            raise ValueError(f"U and V must have the same number of columns, got {U.shape[1]} and {V.shape[1]}")
        self.shape, self.dtype = factor.shape, np.result_type(factor.dtype, U, V)
        if not np.can_cast(self.dtype, complex_dtype(factor.dtype)):
            raise TypeError(f"updated: U and V are {np.result_type(U, V).name}, and the factor {factor.dtype.name}")
        self.rank = U.shape[1]
        self.backward_error: float | None = None
        self._U, self._V = U.astype(self.dtype), V.astype(self.dtype)
        self._factor, self._version = factor, version_of(factor)
        core, pattern = factor.parts()[0], factor.symbolic.parts()[0].pattern
        self._A = sp.csc_array((core.values(), pattern.ind, pattern.ptr), shape=factor.shape)
        self._policy = _core.AccuracyPolicy(np.dtype(self.dtype).char)
        self._solved = self._by_factor(self._U, 0)  # A^-1 U
        self._solved_transposed: np.ndarray | None = None  # A^-T conj(V), once it is needed
        self._capacitance = np.eye(self.rank, dtype=self.dtype) + self._V.conj().T @ self._solved
        self._check()
        self._small = scipy.linalg.lu_factor(self._capacitance, check_finite=False) if self.rank else None
        self._bordered: Any = None  # once it is needed

    def _check(self) -> None:
        """Refuse a capacitance matrix that leaves less than half of the digits, however it is scaled.

        What cancelled in its sums is lost, so its rows and columns are scaled by the sums of moduli.
        """
        without_loss = np.eye(self.rank) + np.abs(self._V).T @ np.abs(self._solved)
        rows = without_loss.max(axis=1, initial=0.0)
        columns = (without_loss / rows[:, None]).max(axis=0, initial=0.0)
        scaled = self._capacitance / rows[:, None] / columns
        rcond = np.linalg.svd(scaled, compute_uv=False)[-1] if self.rank and np.isfinite(scaled).all() else 0.0
        if self.rank and not rcond > np.sqrt(matrix.EPS[np.dtype(self.dtype)]):
            raise IllConditionedUpdateError(float(rcond))

    @overload
    def solve(self, rhs: NDArray[Any], trans: Trans = "N") -> NDArray[Any]: ...
    @overload
    def solve(self, rhs: ArrayT, trans: Trans = "N") -> ArrayT: ...
    def solve(self, rhs: Any, trans: Trans = "N") -> Any:
        """Solve ``op(A + U V^H) x = rhs``.

        Parameters
        ----------
        rhs : ndarray, shape (n,) or (n, k)
        trans : {"N", "T", "H"}, optional

        Returns
        -------
        x : ndarray, shape of `rhs`

        Raises
        ------
        RuntimeError
            The factor of A was refactored since.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> u = np.ones(100)
        >>> updated = lu.updated(u)
        >>> x = updated.solve(np.ones(100))
        >>> np.allclose((A + np.outer(u, u)) @ x, 1)
        True
        """
        self._require_values()
        if matrix.is_cupy(rhs):
            return matrix.to_device(self.solve(rhs.get(), trans))
        return solve_as_given(self._refined, rhs, trans, self.shape[0], np.dtype(self.dtype))

    def _require_values(self) -> None:
        if self._factor._in_progress or version_of(self._factor) != self._version:
            raise RuntimeError("the factor was refactored since: call updated(U, V) again")

    def _by_factor(self, b: np.ndarray, trans: int) -> np.ndarray:
        return self._factor.solve(np.asfortranarray(b), OPS[trans])

    def _solve_unrefined(self, b: np.ndarray, trans: int) -> np.ndarray:
        """x = y - Z C^-1 V^H y with y = A^-1 b and Z = A^-1 U, or the same of the transposes."""
        y = self._by_factor(b, trans)
        if self._small is None:
            return y
        if trans == 0:
            Z, right = self._solved, self._V.conj().T
        else:
            if self._solved_transposed is None:
                self._solved_transposed = self._by_factor(self._V.conj(), 1)
            Z, right = self._solved_transposed, self._U.T
            if trans == 2:
                Z, right = Z.conj(), right.conj()
        return y - Z @ scipy.linalg.lu_solve(self._small, right @ y, trans, check_finite=False)

    @cached_property
    def _swamped(self) -> float:
        """How much larger a row of U V^H may be than the least one of A."""
        rows = abs(self._A).sum(axis=1)
        update = np.abs(self._U) @ np.abs(self._V).sum(axis=0)
        return float(update.max(initial=0.0) / float(rows[rows > 0].min(initial=np.inf)))

    def _residual(
        self, b: np.ndarray, x: np.ndarray, trans: int, by_rows: bool = False
    ) -> tuple[np.ndarray, tuple[float, float]]:
        """b - op(A + U V^H) x, and the backward errors, normwise and by rows.

        By rows as in Arioli, Demmel and Duff (SIMAX 10, 1989): if all terms of a row are no more than rounding errors
        relative to its norm and that of x, the error is measured relative to these norms.
        """
        A = (self._A, self._A.T, self._A.conj().T)[trans]
        left, right = ((self._U, self._V.conj().T), (self._V.conj(), self._U.T), (self._V, self._U.conj().T))[trans]
        r = b - A @ x - left @ (right @ x)
        largest = [np.abs(one).max(initial=0.0) for one in (r, x, b)]
        update = np.abs(left) @ (np.abs(right) @ np.abs(x))
        scale = abs(A).sum(axis=1).max(initial=0.0) * largest[1] + largest[2] + update.max(initial=0.0)
        normwise = float(largest[0] / scale) if scale else 0.0
        if not by_rows:
            return r, (normwise, 0.0)
        moduli = abs(A)
        norms = moduli.sum(axis=1) + np.abs(left) @ np.abs(right).sum(axis=1)
        terms, whole = moduli @ np.abs(x) + update + np.abs(b), np.multiply.outer(norms, np.abs(x).max(axis=0))
        noise = terms <= 1000 * len(b) * matrix.EPS[np.dtype(self.dtype)] * (whole + np.abs(b))
        terms = terms + np.where(noise, whole, 0)
        return r, (normwise, float((np.abs(r) / np.where(terms == 0, 1, terms)).max(initial=0.0)))

    def _refined(self, b: np.ndarray, trans: int) -> np.ndarray:
        """Checked and refined by the accuracy policy of all factors."""
        held = [self._solve_unrefined(b, trans)]

        def measure(by_rows: bool) -> tuple[float, float]:
            return self._residual(b, held[-1], trans, by_rows)[1]

        def step(sized: bool) -> float:
            held.append(held[-1] + self._solve_unrefined(self._residual(b, held[-1], trans)[0], trans))
            return 0.0

        def go_back() -> None:
            held.pop()

        refined = self._policy.refine(_core.PivotReport(growth=self._swamped), measure, step, go_back)
        self._require_values()  # another thread may have changed them meanwhile
        x, errors, is_finite = held[-1], (refined.error, 0.0), bool(np.isfinite(b).all())
        if is_finite and not refined.accurate:
            x, errors = self._by_borders(b, trans)
        self.backward_error = errors[0]
        worst = max(np.inf if np.isnan(error) else error for error in errors)
        if self._policy.must_warn(worst, bool(np.isfinite(x).all()), is_finite):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)
        return np.asfortranarray(x)

    def _by_borders(self, b: np.ndarray, trans: int) -> tuple[np.ndarray, tuple[float, float]]:
        """A solution by pivots of [A U; V^H -I], whatever the size of U V^H, and its backward errors.

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        """
        n = self.shape[0]
        if self._bordered is None:
            corner = -sp.eye_array(self.rank, dtype=self.dtype)
            K = sp.csc_array(sp.block_array([[self._A, self._U], [self._V.conj().T, corner]])).astype(self.dtype)
            ptr, ind = K.indptr.astype(np.int64), K.indices.astype(np.int32)
            pattern = _core.canonical("csc", K.shape[0], ptr, ind.astype(np.int64))
            FACTORIZATIONS.add()
            symbolic = _core.analyze(ptr, ind, K.data, for_core())
            self._bordered = cpu_factor(symbolic, Pattern(pattern), K.data, Options())
        padded = np.zeros((n + self.rank, *b.shape[1:]), self.dtype, order="F")
        padded[:n] = b
        x: np.ndarray = self._bordered.solve(padded, trans)[:n]
        return x, self._residual(b, x, trans, True)[1]

    def slogdet(self) -> SlogDet[float]:
        """Sign (or phase) and logarithm of the modulus of the determinant of A + U V^H.

        Raises
        ------
        RuntimeError
            The factor of A was refactored since.

        See Also
        --------
        LUFactor.slogdet

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> u = np.ones(100)
        >>> updated = lu.updated(u)
        >>> bool(np.isclose(updated.slogdet().logabsdet, np.linalg.slogdet(A.toarray() + np.outer(u, u))[1]))
        True
        """
        self._require_values()
        whole, small = self._factor.slogdet(), np.linalg.slogdet(self._capacitance)
        self._require_values()
        sign, logabsdet = whole.sign * small[0], whole.logabsdet + float(small[1])
        return type(whole)(np.dtype(self.dtype).type(sign), logabsdet)

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_values()
        return UpdatedFactor, (self._factor, self._U, self._V)

    def __repr__(self) -> str:
        return f"<UpdatedFactor of {self.shape[0]} x {self.shape[1]} by rank {self.rank}, {self._factor!r}>"


def version_of(factor: Any) -> tuple[int, int]:
    """Version of the values held; graphs of the caller change it too."""
    return factor.version, int(getattr(factor._core, "n_deferred", 0))


def _columns(name: str, array: Any, n: int) -> np.ndarray:
    """`array` as a dense one of shape (n, k)."""
    array = matrix.to_host(array)
    dense = array.toarray() if sp.issparse(array) else np.asarray(array)
    dense = dense[:, None] if dense.ndim == 1 else dense
    if dense.ndim != 2 or dense.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k), got {np.shape(array)}")
    dense = np.asarray(dense, dtype=matrix.float_dtype(dense.dtype))
    if not np.isfinite(dense).all():
        raise NonFiniteError(f"updated: all values of {name} must be finite")
    return dense
