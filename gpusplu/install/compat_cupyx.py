"""Functions that replace cupyx's: gpusplu's solvers for input that cupyx accepts, cupyx's functions for the rest.

So errors, their order, and results of singular and non-finite matrices are those of the installed CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import cupy
from cupyx.scipy import sparse
from cupyx.scipy.sparse.linalg import SuperLU as CupysSuperLU

from ..common import matrix
from ..common.options import DEFAULTS
from ..common.scipy_names import warn
from ..dispatch.selection import automatic
from ..engines.problem import Request
from ..errors import NonFiniteError, is_singular
from ..factors import solving
from ..factors.lu import LUFactor, factor_lu


class SuperLU(CupysSuperLU):  # type: ignore[misc]
    """A factor of gpusplu with the interface of CuPy's SuperLU.

    Triangles and permutations, which CuPy's own solves use, are copied to the device on first access.
    """

    def __init__(self, factor: LUFactor):
        self._factor = factor
        self.shape, self.nnz = factor.shape, factor.nnz

    L = cached_property(lambda self: matrix.to_device(self._factor.L.tocsr()))
    U = cached_property(lambda self: matrix.to_device(self._factor.U.tocsr()))
    perm_r = cached_property(lambda self: matrix.to_device(self._factor.perm_r))
    perm_c = cached_property(lambda self: matrix.to_device(self._factor.perm_c))
    _perm_r_rev = cached_property(lambda self: cupy.argsort(self.perm_r))
    _perm_c_rev = cached_property(lambda self: cupy.argsort(self.perm_c))

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve ``op(A) x = rhs``; `rhs` is cast to the dtype of the factor, as CuPy does it.

        Parameters
        ----------
        rhs : cupy.ndarray, shape (n,) or (n, k)
        trans : {"N", "T", "H"}, optional

        Returns
        -------
        x : cupy.ndarray, shape of `rhs`, Fortran-contiguous
        """
        if trans not in ("N", "T", "H") or not is_rhs(rhs, self.shape[0]):
            return super().solve(rhs, trans)
        return self._factor.solve(rhs.astype(self._factor.dtype, copy=False), trans)  # type: ignore[call-overload]


def splu(
    original: Callable[..., Any],
    A: Any,
    permc_spec: Any = None,
    diag_pivot_thresh: Any = None,
    relax: Any = None,
    panel_size: Any = None,
    options: Any = None,
) -> Any:
    """cupyx.scipy.sparse.linalg.splu, active."""
    arguments = (permc_spec, diag_pivot_thresh, relax, panel_size, options)
    if is_supported(A):
        try:
            return SuperLU(factor_lu(A.get().tocsc(), (*arguments, *DEFAULTS[len(arguments) :]), on_device()))
        except NonFiniteError:
            pass
    return original(A, *arguments)


def factorized(original: Callable[..., Any], A: Any) -> Any:
    """cupyx.scipy.sparse.linalg.factorized, active."""
    if is_supported(A):
        try:
            return SuperLU(factor_lu(A.get().tocsc(), DEFAULTS, on_device())).solve
        except NonFiniteError:
            pass
    return original(A)


def spsolve(original: Callable[..., Any], A: Any, b: Any) -> Any:
    """cupyx.scipy.sparse.linalg.spsolve, active."""
    if not (is_supported(A) and is_rhs(b, A.shape[0])):
        return original(A, b)
    if A.format != "csr":
        warn("CSR format is required. Converting to CSR format.", sparse.SparseEfficiencyWarning)
    try:
        given = A if matrix.is_compressed_on_device(A) else A.get()
        return solving.solve_stored(given, b.astype(A.dtype, copy=False), None, on_device())
    except NonFiniteError:
        pass
    except RuntimeError as error:
        if not is_singular(error):
            raise
    return original(A.tocsr(), b)


def is_supported(A: Any) -> bool:
    """Whether `A` is a matrix that CuPy's functions take."""
    return sparse.issparse(A) and len(A.shape) == 2 and A.shape[0] == A.shape[1] and A.dtype.char in "fdFD"


def is_rhs(b: Any, n: int) -> bool:
    """Whether `b` holds right-hand sides that CuPy's functions accept; subclasses of its array are left to CuPy."""
    return type(b) is cupy.ndarray and b.ndim in (1, 2) and b.shape[0] == n and b.size > 0


def on_device() -> Request:
    """Request for the choice of an engine."""
    return automatic()._replace(on_device=True)
