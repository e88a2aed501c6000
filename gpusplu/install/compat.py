"""Functions that replace SciPy's: gpusplu's solvers with SuperLU's strictness, and SciPy's for unsupported input.

SciPy's callers rely on more than results: a complex right-hand side of a real factor raises, the permutations hold a
reference to their factor, and NaN or Inf in A has no separate error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..common import matrix
from ..common.options import DEFAULTS
from ..common.rhs import check_trans
from ..common.scipy_names import original as scipys
from ..common.scipy_names import umfpack_is_demanded
from ..errors import NonFiniteError
from ..factors import solving
from ..factors.lu import LUFactor, factor_lu


class SuperLUFactor(LUFactor):
    """LUFactor that behaves like scipy.sparse.linalg.SuperLU in every detail that SciPy's tests check."""

    __slots__ = ("_as_scipys",)

    @property
    def L(self) -> Any:
        """As SciPy's; the same object until the values or the pivots change."""
        return self._of_scipys_kind("L", super().L)

    @property
    def U(self) -> Any:
        """As SciPy's; the same object until the values or the pivots change."""
        return self._of_scipys_kind("U", super().U)

    def _of_scipys_kind(self, name: str, made: Any) -> Any:
        if isinstance(made, triangle_kind()):
            return made
        kept = getattr(self, "_as_scipys", {})
        if kept.get(name, (None,))[0] is not made:
            kept = self._as_scipys = {**kept, name: (made, triangle_kind()(made))}
        return kept[name][1]

    def _solve_any(self, rhs: Any, trans: Any) -> Any:
        fits = not isinstance(rhs, np.ndarray) or rhs.dtype == self._dtype or np.can_cast(rhs.dtype, self._dtype)
        if not fits:
            check_trans(trans)
            if 0 < rhs.ndim < 3:  # else SciPy reports the dimension first
                rhs.astype(self._dtype, casting="safe")
        return super()._solve_any(rhs, trans)

    @property
    def perm_r(self) -> np.ndarray:
        """Row k of A is row ``perm_r[k]`` of ``L @ U``; int32."""
        return owned(super().perm_r, self)

    @property
    def perm_c(self) -> np.ndarray:
        """Column k of A is column ``perm_c[k]`` of ``L @ U``; int32."""
        return owned(super().perm_c, self)


@cache
def triangle_kind() -> type:
    """Class of L and U in the installed SciPy: csc_matrix in SciPy 1.13, for which ``L * U`` is the matrix product."""
    return type(scipys("splu")(sp.csc_array(np.ones((1, 1)))).L)


class Owner:
    """Exposes the memory of an array and holds a reference to another object."""

    __slots__ = ("__array_interface__", "references")

    def __init__(self, array: np.ndarray, owner: object):
        self.__array_interface__ = array.__array_interface__
        self.references = (array, owner)


def owned(array: np.ndarray, owner: object) -> np.ndarray:
    """An array with the same memory that keeps `owner` alive."""
    return np.asarray(Owner(array, owner))


def splu(
    original: Callable[..., Any],
    A: Any,
    permc_spec: Any = None,
    diag_pivot_thresh: Any = None,
    relax: Any = None,
    panel_size: Any = None,
    options: Any = None,
) -> Any:
    """scipy.sparse.linalg.splu, active."""
    arguments = (permc_spec, diag_pivot_thresh, relax, panel_size, options)
    if is_foreign(A):
        return original(A, *arguments)
    try:
        return factor_lu(A, (*arguments, *DEFAULTS[len(arguments) :]), kind=SuperLUFactor)
    except NonFiniteError:
        return original(in_columns(A), *arguments)


def factorized(original: Callable[..., Any], A: Any) -> Any:
    """scipy.sparse.linalg.factorized, active."""
    if is_foreign(A) or umfpack_is_demanded():
        return original(A)
    try:
        return factor_lu(A, kind=SuperLUFactor).solve
    except NonFiniteError:
        return original(in_columns(A))


def spsolve(original: Callable[..., Any], A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """scipy.sparse.linalg.spsolve, active."""
    if is_foreign(A) or is_foreign(b):
        return original(A, b, permc_spec, use_umfpack)
    try:
        if solving.is_plain(A, b, use_umfpack):
            return solving.solve_dense(A, b, permc_spec)
        return solving.spsolve(A, b, permc_spec, use_umfpack)
    except NonFiniteError:
        by_rows = sp.issparse(A) and A.format == "csr"
        x = original(A if by_rows and not sp.issparse(b) else in_columns(A), b, permc_spec, use_umfpack)
        return type(A)(x) if by_rows and sp.issparse(x) else x


def in_columns(A: Any) -> Any:
    """`A` as CSC: gpusplu has warned about its format already, and SciPy would warn again."""
    return A if sp.issparse(A) and A.format == "csc" else sp.csc_array(A)


def is_foreign(A: Any) -> bool:
    """Whether to leave `A` to SciPy, which treats such arrays in its own manner."""
    return matrix.is_cupy(A) or matrix.is_pydata(A)
