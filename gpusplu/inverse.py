"""Parts of the inverse of a factored matrix: some of its entries, its diagonal, traces of products with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from . import matrix

PATTERNS = ("A.T", "A")
AT_ONCE = 32  # columns of the identity that are solved for


class PartsOfInverse:
    """What factors know of the inverse without forming it."""

    __slots__ = ()

    if TYPE_CHECKING:  # what factors have
        shape: Any
        dtype: Any
        solve: Any
        _core: Any
        _pattern: Any

    def selected_inverse(self, pattern: str = "A.T") -> sp.csc_array:
        """Entries of the inverse on a sparse pattern.

        The factors give the entry (j, i) of the inverse wherever A has an entry (i, j), at about twice the arithmetic
        of a factorization (the recurrence of Takahashi, Fagan and Chen, 1973); the pattern of A itself is the same
        where it is symmetric. That these entries make ones of the diagonals of ``inv(A) @ A`` and ``A @ inv(A)`` is
        checked, and where they do not, they are found with other pivots or by solves.

        Parameters
        ----------
        pattern : {"A.T", "A"}, optional
            Of the result. "A.T" is what the gradient of ``slogdet().logabsdet`` needs: with respect to A[i, j] it is
            entry (j, i) of the inverse. For entries that only "A" has, there are solves.

        Returns
        -------
        Z : csc_array, shape (n, n)
            ``Z[j, i]`` is entry (j, i) of the inverse; what is exactly zero is stored.

        Raises
        ------
        ValueError
            `pattern` is unknown.
        """
        if pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {PATTERNS}, got {pattern!r}")
        known = self._pattern
        if pattern == "A.T":
            by_rows = (self._core.inverse_on_pattern(), known.ind.copy(), pointers(known))
            return sp.csr_array(by_rows, shape=self.shape).tocsc()
        entries = inverse_entries(self, known.ind, columns(known))
        return sp.csc_array((entries, known.ind.copy(), pointers(known)), shape=self.shape)

    def inverse_diagonal(self) -> ndarray:
        """Diagonal of the inverse, shape (n,); where A has no entry on its own, solves are needed."""
        everyone = np.arange(self.shape[0])
        return inverse_entries(self, everyone, everyone)

    def trace_inverse(self, B: Any) -> Any:
        """Trace of ``inv(A) @ B`` for a sparse matrix B; entries of B where A has none cost solves.

        Parameters
        ----------
        B : sparse matrix or array_like, shape (n, n)

        Returns
        -------
        trace : scalar

        Raises
        ------
        ValueError
            B has another shape than A.
        """
        B = sp.coo_array(matrix.to_host(B))
        if B.shape != self.shape:
            raise ValueError(f"trace_inverse: B has shape {B.shape}, but A has shape {self.shape}")
        B.sum_duplicates()
        return inverse_entries(self, B.col, B.row) @ B.data


def pointers(pattern: matrix.Pattern) -> ndarray:
    """Of compressed columns, as wide as SciPy has them."""
    pointers: ndarray = pattern.ptr.astype(np.int32 if pattern.nnz <= np.iinfo(np.int32).max else np.int64)
    return pointers


def columns(pattern: matrix.Pattern) -> ndarray:
    """Column of each canonical entry."""
    return np.repeat(np.arange(pattern.n), np.diff(pattern.ptr))


def inverse_entries(factor: PartsOfInverse, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse: those that the factor gives, the others by solves."""
    pattern = factor._pattern
    n = pattern.n
    keys = columns(pattern) * n + pattern.ind  # ascending
    wanted = rows.astype(np.int64) * n + cols  # A's entry (c, r) gives (r, c)
    if np.array_equal(keys, wanted):
        return factor._core.inverse_on_pattern()  # type: ignore[no-any-return]
    place = np.searchsorted(keys, wanted)
    found = np.zeros(wanted.size, bool)
    inside = place < keys.size
    found[inside] = keys[place[inside]] == wanted[inside]
    entries = np.empty(wanted.size, factor.dtype)
    if found.any():
        entries[found] = factor._core.inverse_on_pattern()[place[found]]
    if not found.all():
        entries[~found] = solved_entries(factor, rows[~found], cols[~found])
    return entries


def solved_entries(factor: PartsOfInverse, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse by solves, with A for whole columns or its transpose for rows."""
    sides = [("N", *np.unique(cols, return_inverse=True), rows), ("T", *np.unique(rows, return_inverse=True), cols)]
    trans, units, unit_of, taken = min(sides, key=lambda side: side[1].size)
    order = np.argsort(unit_of, kind="stable")
    begin = np.searchsorted(unit_of[order], np.arange(0, units.size + AT_ONCE, AT_ONCE))
    entries = np.empty(rows.size, factor.dtype)
    for block, first in enumerate(range(0, units.size, AT_ONCE)):
        some = units[first : first + AT_ONCE]
        identity = np.zeros((factor.shape[0], some.size), factor.dtype, order="F")
        identity[some, np.arange(some.size)] = 1
        asked = order[begin[block] : begin[block + 1]]
        entries[asked] = factor.solve(identity, trans)[taken[asked], unit_of[asked] - first]
    return entries
