"""Structure: the pattern of a JAX matrix on the host, found again by its content."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..factors.gradients import coordinates

# Axes of an operand without a batch: of values, of vectors, and of the index arrays of each layout.
VALUES, VECTORS = 1, 2
INDEX_AXES = {"bcsr": (1, 1), "bcoo": (2,)}
# Of the last dimension of BCOO's indices, and of its padding: entries with such an index are none.
ROW, COLUMN = 0, 1


class Structure:
    """Index arrays of a square matrix, as a value: equal where the arrays are, hashable, immutable.

    Parameters
    ----------
    n : int
    layout : {"bcsr", "bcoo"}
    index : tuple of ndarray
        Of BCSR column indices and row pointers; of BCOO its indices, shape (nse, 2). Copied.

    Attributes
    ----------
    size : int
        Stored values, padding included.
    """

    def __init__(self, n: int, layout: str, index: tuple[np.ndarray, ...]):
        self.n, self.layout = n, layout
        self.index = tuple(np.array(array, order="C") for array in index)
        self.size = index[0].shape[0]
        self._hash = hash((n, layout, *(array.tobytes() for array in self.index)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        if self is other:
            return True
        if (self._hash, self.n, self.layout) != (other._hash, other.n, other.layout):
            return False
        return all(map(np.array_equal, self.index, other.index))

    def __repr__(self) -> str:
        return f"Structure({self.n} x {self.n}, {self.layout}, {self.size} entries)"

    @property
    def transposed(self) -> bool:
        """Whether `matrix` is the transpose: the core requires compressed columns, and BCSR has compressed rows."""
        return self.layout == "bcsr"

    @cached_property
    def kept(self) -> Any:
        """What takes the values that are entries out of all: a slice or an array; None for all of them."""
        if self.layout == "bcsr":
            entries = int(self.index[1][-1])
            return None if entries >= self.size else slice(entries)
        inside = (self.index[0] < self.n).all(axis=1)
        return None if inside.all() else np.flatnonzero(inside)

    @cached_property
    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries."""
        if self.layout == "bcsr":
            indices, pointers = self.index
            return coordinates(pointers, indices[: pointers[-1]], by_rows=True)
        index = self.index[0] if self.kept is None else self.index[0][self.kept]
        return np.ascontiguousarray(index[:, ROW]), np.ascontiguousarray(index[:, COLUMN])

    @cached_property
    def _template(self) -> Any:
        rows, columns = self.coordinates
        zeros, shape = np.zeros(rows.size, np.int8), (self.n, self.n)
        if self.layout == "bcoo":
            return sp.coo_array((zeros, (rows, columns)), shape=shape)
        indices, pointers = self.index
        pointers = pointers.astype(indices.dtype, copy=False)
        return sp.csc_array((zeros, indices[: rows.size], pointers), shape=shape)

    def entries(self, values: np.ndarray) -> np.ndarray:
        """Those of the values that are entries, shape (..., entries)."""
        return values if self.kept is None else np.ascontiguousarray(values[..., self.kept])

    def matrix(self, entries: np.ndarray) -> Any:
        """A SciPy matrix around entries: A, or its transpose where `transposed` says so."""
        made = self._template.__class__.__new__(self._template.__class__)
        made.__dict__.update(self._template.__dict__)
        made.data = entries
        return made

    def padded(self, entries: np.ndarray, padding: int = 0) -> np.ndarray:
        """Values with zeros for padding, or something else, shape (..., size), of entries."""
        if self.kept is None:
            return entries
        values = np.full((*entries.shape[:-1], self.size), padding, entries.dtype)
        values[..., self.kept] = entries
        return values


#: Structures of index arrays that only a callback sees.
SEEN = _core.Patterns()


def seen(n: int, layout: str, index: tuple[np.ndarray, ...]) -> Structure:
    """The structure of index arrays, which are read and compared at the speed of memory."""
    first, second = index if layout == "bcsr" else (index[0].reshape(-1), index[0][:0, 0])
    arrays = n, np.ascontiguousarray(first), np.ascontiguousarray(second)
    known: Any = SEEN.find(layout, *arrays)
    if known is not None:
        return known.value
    structure = Structure(n, layout, index)
    # With the coordinates and the template, which come when they are needed.
    SEEN.keep(layout, *arrays, structure, 3 * sum(array.nbytes for array in index))
    return structure
