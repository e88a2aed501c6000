"""A matrix divided by an interface: which unknowns that is, and the four blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..common import matrix


class Block(NamedTuple):
    """A part of the matrix: its pattern, and which canonical values of the whole are in it."""

    pattern: sp.csc_array
    entries: np.ndarray

    def of(self, canonical: np.ndarray) -> sp.csc_array:
        return self.with_values(canonical[self.entries])

    def with_values(self, values: np.ndarray) -> sp.csc_array:
        return sp.csc_array((values, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)


def divided(pattern: matrix.Pattern, indices: np.ndarray) -> tuple[np.ndarray, list[list[Block]]]:
    """The other unknowns, ascending, and the blocks of both: ``[[A_II, A_IS], [A_SI, A_SS]]``."""
    inside = np.ones(pattern.n, bool)
    inside[indices] = False
    inner = np.flatnonzero(inside)
    shape = (pattern.n, pattern.n)
    rows = sp.csc_array((np.arange(pattern.nnz), pattern.ind, pattern.ptr), shape=shape).tocsr()
    sets = (inner, indices)
    parts = [[rows[one].tocsc()[:, other] for other in sets] for one in sets]
    for part in (*parts[0], *parts[1]):
        part.sort_indices()
    return inner, [[Block(part, part.data) for part in row] for row in parts]


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
