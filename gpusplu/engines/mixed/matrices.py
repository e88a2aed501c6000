"""The matrix in double precision, for residuals: on the host or on a device, like its factor."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ... import _core
from ...common import matrix
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
