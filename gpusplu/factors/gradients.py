"""Building blocks of derivatives of sparse solves, independent of the framework.

``x = solve(A, b, op)`` is the solution of ``op(A) x = b``. Three operations are closed under derivatives of any order:

- solve, which a factor does: ``dx = solve(A, db - product(dA, x, op), op)``;
- product, ``op(A) x``;
- outer, the values on A's pattern of the gradient of ``Re <y, op(A) x>`` with respect to A.

So the gradient ``g`` of x gives the gradient of b, ``y = solve(A, g, ADJOINT[op])``, and the gradient of A,
``-outer(y, x, op)``, by the factor that gave x (Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008, section 2.3.1). Gradients follow torch's convention: ``dL = Re <gradient, dx>``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .batch import BatchedFactor
from .inverse import inverse_entries, places

#: op(A) by its letter: A, its transpose, its conjugate transpose, its conjugate.
OPERATIONS = "NTHC"
#: The operation that is the conjugate transpose of each, and the transpose.
ADJOINT = dict(zip(OPERATIONS, "HCNT", strict=True))
TRANSPOSE = dict(zip(OPERATIONS, "TNCH", strict=True))


def coordinates(pointers: np.ndarray, indices: np.ndarray, by_rows: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of a matrix in compressed rows or columns."""
    major = np.repeat(np.arange(pointers.size - 1, dtype=indices.dtype), np.diff(pointers))
    return (major, indices) if by_rows else (indices, major)


def outer(op: str, rows: Any, columns: Any, y: Any, x: Any, vectors: bool) -> Any:
    """Values on A's pattern of the gradient of ``Re <y, op(A) x>`` with respect to A.

    Parameters
    ----------
    op : {"N", "T", "H", "C"}
    rows, columns : integer arrays, shape (nnz,)
        Of the entries of A.
    y, x : arrays of one framework, shape (..., n) or (..., n, k)
    vectors : bool
        Of one right-hand side, without the last dimension.

    Returns
    -------
    array, shape (..., nnz)
    """
    left, right = (x, y) if op in "TH" else (y, x)
    if op in "NH":
        right = conjugate(right)
    else:
        left = conjugate(left)
    if vectors:
        return left[..., rows] * right[..., columns]
    return (left[..., rows, :] * right[..., columns, :]).sum(-1)


def conjugate(array: Any) -> Any:
    """The conjugate of an array of any framework; a real array is returned unchanged."""
    return array.conj() if "complex" in str(array.dtype) else array


class Factored:
    """A factor of a matrix, with solves for any operation.

    Parameters
    ----------
    factor : LUFactor or BatchedLUFactor
    leave : callable, optional
        Called with the factor when this object is deleted, to reuse its memory. No other object may hold the factor.
    transposed : bool
        The factor is that of the transpose: compressed rows were passed as columns.
    """

    __slots__ = ("__weakref__", "factor", "leave", "transposed")

    def __init__(self, factor: Any, leave: Callable[[Any], None] | None = None, transposed: bool = False) -> None:
        self.factor, self.leave, self.transposed = factor, leave, transposed

    def __del__(self) -> None:
        if self.leave is not None:
            self.leave(self.factor)

    def solve(self, b: Any, op: str = "N") -> Any:
        """The solution of ``op(A) x = b``, as the factor's solve gives it."""
        if self.transposed:
            op = TRANSPOSE[op]
        if op != "C":
            return self.factor.solve(b, op)
        return conjugate(self.factor.solve(conjugate(b)))

    def adjoint_inverse(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Entries of the conjugate transpose of A's inverse where A has its own: the gradient of ``log |det A|``.

        Shape (nnz,), or (nbatch, nnz), NaN for systems that have no factor.
        """
        if self.transposed:
            rows, columns = columns, rows
        if isinstance(self.factor, BatchedFactor):
            pattern = self.factor.symbolic.parts()[0].pattern
            entries = np.take(self.factor.inverse_on_pattern(), places(pattern, rows, columns), axis=1)
        else:
            entries = inverse_entries(self.factor, columns, rows)
        return conjugate(entries)
