"""Plan of the column engines: the static pattern of L + U for pivots that are fixed, its levels, where updates land.

The arrays and what they mean: ``core/plan/columns/plan.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core

MOST_MAPPED = 1e8  # multiply-adds up to which the place of every update is in a map


class ColumnPlan:
    """Arrays of the C++ plan as attributes.

    Attributes
    ----------
    n, nnz, n_levels : int
        nnz: entries of L + U, the unit diagonal of L not counted.
    row_perm, col_perm : ndarray of int32, shape (n,)
        Gather: ``B = (Dr A Dc)[row_perm][:, col_perm] = L U``.
    row_scale, col_scale : ndarray of float64, shape (n,) or (0,)
        By A's rows and columns; empty: ones.
    col_ptr, row, diag : ndarray of int64, int32, int64; shapes (n + 1,), (nnz,), (n,)
        L + U in compressed columns, rows ascending, and where the diagonal is.
    row_ptr, col, place : ndarray of int64, int32, int64; shapes (n + 1,), (nnz,), (nnz,)
        The same by rows, and where each entry is in the columns.
    entry_source, entry_place, entry_scale : ndarray of int64, int64, float64
        Canonical entry, its place, its factor (empty: ones).
    level, level_left : ndarray of int32, shape (n,)
        Of every column, right-looking and left-looking.
    level_ptr, level_column : ndarray of int32
        Columns by `level`, the longest first.
    u_ptr, map_ptr, map : ndarray of int64, int64, uint16 or int32
        Where updates land, if `has_maps`.
    has_maps : bool
    flops : float
        Multiply-adds of the updates.
    seconds : float
        What making the plan took [s].
    """

    def __init__(self, core: Any):
        self._core = core

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._core, name)

    @property
    def nbytes(self) -> int:
        """Of all arrays [bytes]."""
        names = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "entry_source", "entry_place", "entry_scale")
        return int(sum(getattr(self, name).nbytes for name in (*names, "level_column", "u_ptr", "map_ptr", "map")))

    def __repr__(self) -> str:
        return f"<ColumnPlan of {self.n} x {self.n}, {self.nnz:,} entries in {self.n_levels} levels>"


def make_column_plan(
    pattern: Any,
    row_perm: np.ndarray,
    col_perm: np.ndarray,
    row_scale: np.ndarray | None = None,
    col_scale: np.ndarray | None = None,
    most_mapped: float = MOST_MAPPED,
) -> ColumnPlan:
    """Plan the refactorization of matrices with this pattern and these pivots.

    Parameters
    ----------
    pattern : matrix.Pattern
        Canonical: `ptr` and `ind`.
    row_perm, col_perm : ndarray of int32, shape (n,)
        Gather; pivot k is at (row_perm[k], col_perm[k]) of A.
    row_scale, col_scale : ndarray of float64, shape (n,), optional
        By A's rows and columns; both or none, an empty array is none.
    most_mapped : float, optional
        Multiply-adds up to which there are maps.

    Returns
    -------
    ColumnPlan

    Raises
    ------
    ValueError
        Permutations of another length, or only one of the scales.
    """
    rows, cols = (None if scale is None or not len(scale) else scale for scale in (row_scale, col_scale))
    return ColumnPlan(_core.make_column_plan(pattern.ptr, pattern.ind, row_perm, col_perm, rows, cols, most_mapped))


def entries_of(pointers: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Positions of all entries of `columns`, one column after the other, where column k has pointers[k] to [k + 1]."""
    counts = pointers[columns + 1] - pointers[columns]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    positions: np.ndarray = np.arange(total) + np.repeat(pointers[columns] - ends + counts, counts)
    return positions
