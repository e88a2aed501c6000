"""SymmetricFactor: the common base of CholeskyFactor and LDLFactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ..typing import ArrayT
from .factor import Factor, inverse, permuted


class SymmetricFactor(Factor):
    """Factor of one triangle; parts of solves have scikit-sparse's names."""

    hermitian = True

    if TYPE_CHECKING:  # attributes of factors

        @property
        def perm(self) -> NDArray[np.int32]: ...

    @overload
    def __call__(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def __call__(self, rhs: ArrayT) -> ArrayT: ...
    def __call__(self, rhs: Any) -> Any:
        """Solve ``A x = rhs``."""
        return self.solve(rhs)

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
