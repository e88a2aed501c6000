"""Triangular factors as SciPy's matrices, and solves with a single one of them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.rhs import check_rhs, solve_as_given
from ..common.scipy_names import warn
from ..typing import ArrayT, Trans
from .block_pivots import BlockPivots, triangles_of

MadeT = TypeVar("MadeT")


class Kept(NamedTuple):
    """An object made from an engine's factor of these values."""

    made: Any
    version: int
    core: Any


class Triangles:
    """The lower triangular factor, for `Factor` to inherit."""

    __slots__ = ("_core", "_dtype", "_lower", "_order", "_pair", "_upper")
    _core: Any
    _dtype: np.dtype
    _lower: Kept | None
    _order: tuple[ndarray, ndarray] | None  # permutations of the pivots of these triangles
    _pair: Kept | None  # L and U made from LDL^T
    _upper: Kept | None
    _names = "L and U"  # the factors, for warnings
    shape: Any
    version: int

    @property
    def L(self) -> sp.csc_array:
        """Lower triangular factor; the same object until refactor."""
        return self._keep("_lower", lambda: self._triangle(self._core.lower()))

    def _keep(self, name: str, make: Callable[[], MadeT]) -> MadeT:
        """The object kept for the current values, else a new one. Nothing is kept while another thread may change the
        values."""
        version, core, kept = self.version, self._core, getattr(self, name)
        if kept is None or kept.version != version or kept.core is not core or self._may_change:
            kept = Kept(make(), version, core)
            setattr(self, name, kept)
        made: MadeT = kept.made
        return made

    @property
    def _may_change(self) -> bool:
        """Whether the caller's graphs may have changed the values."""
        return bool(getattr(self._core, "captured", False))

    def _triangle(self, arrays: tuple[ndarray, ndarray, ndarray]) -> sp.csc_array:
        self._check_product()
        pointers, rows, values = arrays
        if values.size <= np.iinfo(np.int32).max:
            pointers = pointers.astype(np.int32)
        return sp.csc_array((values, rows, pointers), shape=self.shape)

    def _check_product(self) -> None:
        if not getattr(self._core, "has_accurate_triangles", True):
            what = f"overflow encountered in {self._names}: they are not finite, or their product is not A"
            warn(what, RuntimeWarning)

    def _solve_with(self, triangle: sp.csc_array, lower: bool, rhs: Any, trans: str) -> Any:
        """Solve with the extracted lower or upper factor."""
        if matrix.is_cupy(rhs):
            return matrix.to_device(self._solve_with(triangle, lower, rhs.get(), trans))
        ptr, ind = triangle.indptr.astype(np.int64), triangle.indices.astype(np.int32)

        def solve(b: ndarray, op: int) -> ndarray:
            x = b.reshape(-1, order="F").copy()
            _core.solve_triangle(lower, ptr, ind, triangle.data, "NTH"[op], x)
            return x.reshape(b.shape, order="F")

        return solve_as_given(solve, rhs, trans, self.shape[0], self._dtype)


class LUTriangles(Triangles):
    """``Pr A Pc = L U``, so ``solve(b)`` is ``apply_Pc(solve_U(solve_L(apply_Pr(b))))`` up to refinement."""

    __slots__ = ()

    @property
    def _is_ldlt(self) -> bool:
        """Whether the values were symmetric and factored by LDL^T: L and U are made from it on request."""
        core = self._core
        return bool(getattr(core, "symbolic_of_triangles", core.symbolic).kind == "ldlt")

    @property
    def _block_pivots(self) -> BlockPivots:
        d, e = self._core.pivots()
        return BlockPivots(d, e, self._core.hermitian)

    @property
    def L(self) -> sp.csc_array:
        """Lower triangular factor with ones on its diagonal; the same object until the values or the pivots change."""
        self._forget_other_pivots()
        return self._pair_of_ldlt()[0] if self._is_ldlt else super().L

    @property
    def U(self) -> sp.csc_array:
        """Upper triangular factor; the same object until the values or the pivots change."""
        self._forget_other_pivots()
        if self._is_ldlt:
            return self._pair_of_ldlt()[1]
        return self._keep("_upper", lambda: self._triangle(self._core.upper()))

    def _pair_of_ldlt(self) -> tuple[sp.csc_array, sp.csc_array]:
        return self._keep("_pair", lambda: triangles_of(self._triangle(self._core.lower()), self._block_pivots))

    def _forget_other_pivots(self) -> None:
        """Drop kept triangles if a solve has repeated the pivoting, which changes `perm_r` and `perm_c`."""
        order = self._gather_rows, self._core.col_perm
        if self._order is None or not all(map(np.array_equal, self._order, order)):
            self._lower = self._upper = self._pair = None
            self._order = order[0].copy(), order[1].copy()

    @property
    def _gather_rows(self) -> NDArray[np.int32]:
        """Row k of ``L @ U`` is row ``_gather_rows[k]`` of A."""
        rows: ndarray = self._core.row_perm
        return rows[self._block_pivots.rows] if self._is_ldlt else rows

    @property
    def perm_r(self) -> NDArray[np.int32]:
        """Row k of A is row ``perm_r[k]`` of ``L @ U``; int32."""
        return inverse(self._gather_rows)

    @property
    def perm_c(self) -> NDArray[np.int32]:
        """Column k of A is column ``perm_c[k]`` of ``L @ U``; int32."""
        return inverse(self._core.col_perm)

    @overload
    def solve_L(self, rhs: NDArray[Any], trans: Trans = "N") -> NDArray[Any]: ...
    @overload
    def solve_L(self, rhs: ArrayT, trans: Trans = "N") -> ArrayT: ...
    def solve_L(self, rhs: Any, trans: Trans = "N") -> Any:
        """Solve ``op(L) x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        LUFactor.solve_U, LUFactor.apply_Pr

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> y = lu.solve_L(np.ones(100))
        >>> np.allclose(lu.L @ y, 1)
        True
        """
        return self._solve_with(self.L, True, rhs, trans)

    @overload
    def solve_U(self, rhs: NDArray[Any], trans: Trans = "N") -> NDArray[Any]: ...
    @overload
    def solve_U(self, rhs: ArrayT, trans: Trans = "N") -> ArrayT: ...
    def solve_U(self, rhs: Any, trans: Trans = "N") -> Any:
        """Solve ``op(U) x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        LUFactor.solve_L, LUFactor.apply_Pc

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> y = lu.solve_U(np.ones(100))
        >>> np.allclose(lu.U @ y, 1)
        True
        """
        return self._solve_with(self.U, False, rhs, trans)

    def apply_Pr(self, rhs: ArrayT) -> ArrayT:
        """``Pr @ rhs``: rows of A in the order of L.

        See Also
        --------
        LUFactor.apply_Pc, LUFactor.perm_r

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> b = np.arange(100.0)
        >>> y = lu.solve_U(lu.solve_L(lu.apply_Pr(b)))
        >>> np.allclose(lu.apply_Pc(y), lu.solve(b))
        True
        """
        return permuted(rhs, self._gather_rows)

    def apply_Pc(self, x: ArrayT) -> ArrayT:
        """``Pc @ x``: columns of U in the order of A.

        See Also
        --------
        LUFactor.apply_Pr

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> np.array_equal(lu.apply_Pc(np.arange(100)), lu.perm_c)
        True
        """
        return permuted(x, self.perm_c)


class SymmetricTriangle(Triangles):
    """Parts of a solve of factors with one triangle, under scikit-sparse's names."""

    __slots__ = ()
    hermitian = True

    if TYPE_CHECKING:  # attributes of factors

        @property
        def perm(self) -> NDArray[np.int32]: ...

    @overload
    def solve_L(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_L(self, rhs: ArrayT) -> ArrayT: ...
    def solve_L(self, rhs: Any) -> Any:
        """Solve ``L x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        CholeskyFactor.solve_Lt, CholeskyFactor.apply_P

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> y = factor.solve_L(np.ones(100))
        >>> np.allclose(factor.L @ y, 1)
        True
        """
        return self._solve_with(self.L, True, rhs, "N")

    @overload
    def solve_Lt(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_Lt(self, rhs: ArrayT) -> ArrayT: ...
    def solve_Lt(self, rhs: Any) -> Any:
        """Solve ``L^H x = rhs``, shape (n,) or (n, k), on the processor; with ``L^T`` where A is complex symmetric.

        See Also
        --------
        CholeskyFactor.solve_L, CholeskyFactor.apply_Pt

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> y = factor.solve_Lt(np.ones(100))
        >>> np.allclose(factor.L.T @ y, 1)
        True
        """
        return self._solve_with(self.L, True, rhs, "H" if self.hermitian else "T")

    def apply_P(self, rhs: ArrayT) -> ArrayT:
        """``rhs[perm]``.

        See Also
        --------
        CholeskyFactor.apply_Pt

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> np.array_equal(factor.apply_P(np.arange(100)), factor.perm)
        True
        """
        return permuted(rhs, self.perm)

    def apply_Pt(self, x: ArrayT) -> ArrayT:
        """The inverse of `apply_P`.

        See Also
        --------
        CholeskyFactor.apply_P

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> b = np.arange(100.0)
        >>> np.array_equal(factor.apply_Pt(factor.apply_P(b)), b)
        True
        """
        return permuted(x, inverse(self.perm))


class LDLTriangle(SymmetricTriangle):
    """``A[perm][:, perm] = L D L^H``, so ``solve(b)`` is ``apply_Pt(solve_Lt(solve_D(solve_L(apply_P(b)))))`` up to
    refinement."""

    __slots__ = ()

    @overload
    def solve_D(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_D(self, rhs: ArrayT) -> ArrayT: ...
    def solve_D(self, rhs: Any) -> Any:
        """Solve ``D x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        LDLFactor.solve_L, LDLFactor.solve_Lt

        Examples
        --------
        >>> K = gs.gallery.kkt(30, 10)
        >>> factor = gs.ldlt(K)
        >>> y = factor.solve_D(np.ones(40))
        >>> np.allclose(factor.D @ y, 1)
        True
        """
        if matrix.is_cupy(rhs):
            return matrix.to_device(self.solve_D(rhs.get()))
        _ = self.L  # raises if there are no pivots
        d, e = self._core.pivots()

        def solve(b: ndarray, op: int) -> ndarray:
            columns = b.reshape((len(b), prod(b.shape[1:])), order="F")
            x = columns / np.where(d == 0, 1, d)[:, None]
            first = np.flatnonzero(e)  # of pivots of order 2
            low, high = e[first, None], (e.conj() if self.hermitian else e)[first, None]
            above, below = d[first, None] / high, d[first + 1, None] / low
            p, q = columns[first] / high, columns[first + 1] / low
            x[first], x[first + 1] = (below * p - q) / (above * below - 1), (above * q - p) / (above * below - 1)
            return np.asfortranarray(x.reshape(b.shape, order="F"))

        return solve_as_given(solve, rhs, "N", self.shape[0], self._dtype)


class CholeskyTriangle(SymmetricTriangle):
    """``A[perm][:, perm] = L L^H``, so ``solve(b)`` is ``apply_Pt(solve_Lt(solve_L(apply_P(b))))``."""

    __slots__ = ()

    @property
    def perm(self) -> NDArray[np.int32]:
        """Gather permutation, int32: ``A[perm][:, perm] = L L^H``."""
        perm: ndarray = self._core.col_perm
        return perm

    def sample(self, z: Any) -> Any:
        """A Gaussian vector with covariance ``A^-1`` from one with independent entries of variance 1.

        Parameters
        ----------
        z : ndarray, shape (n,) or (n, k)
            For example from ``numpy.random.Generator.standard_normal``.

        Returns
        -------
        x : ndarray, shape of `z`
            ``apply_Pt(solve_Lt(z))`` (H. Rue, JRSS B 63 (2001), section 3.1.1).

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> x = factor.sample(np.random.default_rng(0).standard_normal((100, 5)))
        >>> x.shape
        (100, 5)
        """
        return self.apply_Pt(self.solve_Lt(z))


def permuted(array: ArrayT, perm: ndarray) -> ArrayT:
    """``array[perm]``; SciPy's errors about other shapes."""
    on_device = matrix.is_cupy(array)
    given: Any = array if on_device else np.asarray(array)
    check_rhs(given, perm.size)
    rows: ArrayT = given[matrix.to_device(perm) if on_device else perm]
    return rows


def inverse(gather: ndarray) -> ndarray:
    scatter = np.empty_like(gather)
    scatter[gather] = np.arange(gather.size, dtype=gather.dtype)
    return scatter
