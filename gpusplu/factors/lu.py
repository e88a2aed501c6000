"""LUFactor, the result of splu."""

from __future__ import annotations

from operator import is_
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from numpy.typing import NDArray

from ..common import matrix
from ..common.arrays import FOREIGN
from ..common.options import DEFAULT_OPTIONS, DEFAULTS, lu_options, without_usual
from ..common.scipy_names import warn
from ..dispatch import pipeline
from ..dispatch.pipeline import COLUMNS, Made
from ..dispatch.selection import automatic
from ..engines.problem import Request
from ..typing import ArrayT, Trans
from .factor import Factor, inverse, permuted
from .symbolic import FACTORS


class BlockPivots:
    """D of L D L^H by its LU factors: those of each block of order 2, by partial pivoting.

    Parameters
    ----------
    d, e : ndarray, shape (n,)
        Diagonal and subdiagonal; the latter is zero except in the first column of a block of order 2.
    hermitian : bool
        Else D is symmetric.

    Attributes
    ----------
    rows : ndarray, shape (n,)
        ``D[rows]`` is ``lower @ upper``.
    lower, upper : csc_array
        Unit triangular, and triangular.
    """

    def __init__(self, d: ndarray, e: ndarray, hermitian: bool):
        n, first = d.size, np.flatnonzero(e)
        second, above = first + 1, e[first].conj() if hermitian else e[first]
        exchanged = abs(d[first]) < abs(e[first])
        self.rows = np.arange(n)
        self.rows[first[exchanged]], self.rows[second[exchanged]] = second[exchanged], first[exchanged]
        pivot, coupling = np.where(exchanged, [e[first], d[second]], [d[first], above])
        below, corner = np.where(exchanged, [d[first], above], [e[first], d[second]])
        diagonal, upper, lower = d.copy(), np.zeros(n, d.dtype), np.zeros(n, d.dtype)
        lower[first], upper[second] = below / pivot, coupling
        diagonal[first], diagonal[second] = pivot, corner - lower[first] * coupling
        ones = np.ones(n, d.dtype)
        self.lower = sp.csc_array(sp.diags_array([ones, lower[:-1]], offsets=[0, -1], shape=(n, n)))
        self.upper = sp.csc_array(sp.diags_array([diagonal, upper[1:]], offsets=[0, 1], shape=(n, n)))
        self.hermitian = hermitian


def triangles_of(L: sp.csc_array, D: BlockPivots) -> tuple[sp.csc_array, sp.csc_array]:
    """L' and U' with ``(L D L^H)[rows] = L' U'``, or L D L^T: L has no entry inside a block, so ``L[rows][:, rows]`` is
    a unit triangle too."""
    lower = sp.csc_array(L[D.rows][:, D.rows] @ D.lower)
    upper = sp.csc_array(D.upper @ (L.conj() if D.hermitian else L).T)
    for triangle in (lower, upper):
        triangle.eliminate_zeros()
        triangle.sort_indices()
    return lower, upper


class LUFactor(Factor):
    """LU factors of a square matrix: ``Pr A Pc = L U``; made by :func:`gpusplu.splu`.

    `perm_r` and `perm_c` are SciPy's: ``(L @ U)[perm_r][:, perm_c]`` is A. L and U include no scaling. If the entries
    of A differ so much in size that the product would not be A then, the first access to L, U or their permutations
    makes other factors by partial pivoting of the unscaled A; if their product is not A either, it gives a
    `RuntimeWarning`.

    See Also
    --------
    splu, BatchedLUFactor, UpdatedFactor

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> lu = gs.splu(A)
    >>> lu.shape, lu.dtype.name, lu.engine
    ((100, 100), 'float64', 'cpu')
    >>> abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e-14
    np.True_
    >>> x = lu.solve(np.ones(100))
    """

    __slots__ = ()

    @property
    def _is_ldlt(self) -> bool:
        """Whether the values were symmetric and factored by LDL^T: L and U are made from it on request."""
        return bool(self._core.host_factor().symbolic.kind == "ldlt")

    @property
    def _block_pivots(self) -> BlockPivots:
        host = self._core.host_factor()
        d, e = host.pivots()
        return BlockPivots(d, e, host.hermitian)

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
        return self._keep("_upper", lambda: self._triangle(self._core.host_factor().upper()))

    def _pair_of_ldlt(self) -> tuple[sp.csc_array, sp.csc_array]:
        def pair() -> tuple[sp.csc_array, sp.csc_array]:
            return triangles_of(self._triangle(self._core.host_factor().lower()), self._block_pivots)

        return self._keep("_pair", pair)

    def _forget_other_pivots(self) -> None:
        """Drop kept triangles if a solve has repeated the pivoting, which changes `perm_r` and `perm_c`."""
        order = self._gather_rows, self._core.host_factor().col_perm
        if self._order is None or not all(map(np.array_equal, self._order, order)):
            self._lower = self._upper = self._pair = None
            self._order = order[0].copy(), order[1].copy()

    @property
    def _gather_rows(self) -> NDArray[np.int32]:
        """Row k of ``L @ U`` is row ``_gather_rows[k]`` of A."""
        rows: ndarray = self._core.host_factor().row_perm
        return rows[self._block_pivots.rows] if self._is_ldlt else rows

    @property
    def perm_r(self) -> NDArray[np.int32]:
        """Row k of A is row ``perm_r[k]`` of ``L @ U``; int32."""
        return inverse(self._gather_rows)

    @property
    def perm_c(self) -> NDArray[np.int32]:
        """Column k of A is column ``perm_c[k]`` of ``L @ U``; int32."""
        return inverse(self._core.host_factor().col_perm)

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


def factor_lu(
    A: Any, arguments: tuple[Any, ...] = DEFAULTS, request: Request | None = None, kind: type[LUFactor] = LUFactor
) -> LUFactor:
    """Implementation of splu; `arguments` are those of `lu_options` after the first."""
    return kind(made_lu(in_columns(A), arguments, request or automatic()))


def made_lu(A: Any, arguments: tuple[Any, ...], request: Request, borrow: bool = False) -> Made:
    """The factor of a matrix from `in_columns` for an `LUFactor`."""
    options: pipeline.ReadOptions = DEFAULT_OPTIONS
    if not all(map(is_, arguments, DEFAULTS)):
        fewer = without_usual(arguments)
        options = lambda n: lu_options(n, *fewer)  # noqa: E731
    return pipeline.factor(A, "lu", options, request, borrow)


def in_columns(A: Any) -> Any:
    """`A` as a sparse matrix, with SciPy's warning where it is not CSC."""
    if type(A) in COLUMNS:
        return A
    if not (matrix.is_sparse(A) and A.format == "csc") and not isinstance(A, FOREIGN):
        if not sp.issparse(A) or A.ndim != 2:
            A = sp.csc_array(A)
        warn("splu converted its input to CSC format", sp.SparseEfficiencyWarning)
    return A


FACTORS.update(lu=LUFactor)
