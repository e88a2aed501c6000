"""How a Schur complement is made, by fronts or by solves, the two halves of solves with it, and numbers of unknowns."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from . import matrix
from .rhs import complex_dtype

if TYPE_CHECKING:
    from .schur import SchurSymbolic

AT_ONCE = 64  # columns of the interface that are solved for together


class Way(Protocol):
    """How a Schur complement was made, and the two halves of solves with it.

    Right-hand sides are (n, k) and Fortran-contiguous, of the dtype of the factor.
    """

    schur: np.ndarray

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `expand` goes on from, and the right-hand sides of the interface."""

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray: ...


class Eliminated:
    """By fronts that left the interface (core/numeric/partial_factor.hpp)."""

    def __init__(self, core: Any, complement: np.ndarray, m: int):
        self.schur, self._core, self._m = complement.reshape((m, m), order="F"), core, m

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        halfway = np.empty_like(b)
        self._core.condense(b, halfway)
        return halfway, halfway[len(b) - self._m :]

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray:
        whole, x = halfway.copy(order="F"), np.empty_like(b)
        whole[len(b) - self._m :] = y
        self._core.expand(b, whole, x)
        return x


class Solved:
    """By solves with a factor of the interior."""

    def __init__(self, symbolic: SchurSymbolic, interior: Any, canonical: np.ndarray):
        (_, right), (below, corner) = ([block.of(canonical) for block in row] for row in symbolic.blocks)
        self._symbolic, self._interior, self._right, self._below = symbolic, interior, right, below
        self.schur = np.asfortranarray(corner.toarray())
        filled = np.flatnonzero(np.diff(right.indptr))
        for first in range(0, filled.size, AT_ONCE):
            columns = filled[first : first + AT_ONCE]
            self.schur[:, columns] -= below @ interior.solve(right[:, columns].toarray(order="F"))

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inner = self._interior.solve(np.asfortranarray(b[self._symbolic.inner]))
        return inner, b[self._symbolic.indices] - self._below @ inner

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray:
        x = np.empty_like(b)
        x[self._symbolic.indices] = y
        x[self._symbolic.inner] = halfway - self._interior.solve(np.asfortranarray(self._right @ y))
        return x


class Condensed(NamedTuple):
    """Of the right-hand sides that a thread condensed last: their shape and dtype, themselves, half of their solve."""

    shape: tuple[int, ...]
    dtype: np.dtype
    b: np.ndarray
    halfway: np.ndarray

    def as_complex(self) -> Condensed:
        """The same of real right-hand sides whose imaginary parts are zero."""
        b, halfway = (
            np.asfortranarray(np.concatenate((one, np.zeros_like(one)), axis=1)) for one in (self.b, self.halfway)
        )
        return Condensed(self.shape, complex_dtype(self.dtype), b, halfway)


def in_columns(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy of shape (n, k), Fortran-contiguous; for a real `dtype`, imaginary parts are further columns."""
    columns = array.reshape((len(array), prod(array.shape[1:])), order="F")
    if columns.dtype.kind == "c" and dtype.kind == "f":
        columns = np.concatenate((columns.real, columns.imag), axis=1)
    return np.array(columns, dtype, order="F")


def as_given(columns: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Columns that `in_columns` would make of an array of `dtype`, one of right-hand sides of `shape`, as such."""
    if dtype.kind == "c" and columns.dtype.kind == "f":
        half = columns.shape[1] // 2
        columns = columns[:, :half] + dtype.type(1j) * columns[:, half:]
    return np.asfortranarray(columns.reshape((len(columns), *shape[1:]), order="F"))


def read_indices(indices: Any, n: int) -> np.ndarray:
    """Numbers of unknowns, or a mask of them, as an array of intp.

    Raises
    ------
    ValueError
        They repeat, lie outside of ``range(n)``, or are all of it.
    TypeError
        They are no integers.
    """
    given = np.asarray(matrix.to_host(indices))
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        given = given.astype(np.intp)
    if given.dtype.kind not in "iu":
        raise TypeError(f"schur: indices must be integers or a mask, got {given.dtype.name}")
    if given.ndim != 1 or ((given < 0) | (given >= n)).any():
        raise ValueError(f"schur: indices must be a list of numbers in range({n})")
    if np.unique(given).size != given.size:
        values, counts = np.unique(given, return_counts=True)
        raise ValueError(f"schur: index {int(values[counts > 1][0])} occurs more than once")
    if given.size == n:
        raise ValueError("schur: indices are all unknowns, so that nothing is left to factor")
    return given.astype(np.intp)
