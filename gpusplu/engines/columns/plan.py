"""Plan of the column engines: the static pattern of L + U for fixed pivots, its levels, the targets of updates.

The arrays and what they mean: ``core/plan/columns/plan.hpp``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...common.view import View

MOST_MAPPED = 1e8  # multiply-adds up to which the place of every update is in a map


class LuPattern(NamedTuple):
    """Compressed columns of L + U, rows ascending, the diagonal included once.

    Attributes
    ----------
    col_ptr : ndarray of int64, shape (n + 1,)
    row : ndarray of int32, shape (nnz,)
    diag : ndarray of int64, shape (n,)
        Place of every diagonal entry.
    """

    col_ptr: np.ndarray
    row: np.ndarray
    diag: np.ndarray


class ColumnPlan(View):
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
        L + U in compressed columns, rows ascending, and the position of the diagonal.
    row_ptr, col, place : ndarray of int64, int32, int64; shapes (n + 1,), (nnz,), (nnz,)
        The same by rows, and the position of each entry in the columns.
    entry_source, entry_place, entry_scale : ndarray of int64, int64, float64
        Canonical entry, its place, its factor (empty: ones).
    level, level_left : ndarray of int32, shape (n,)
        Of every column, right-looking and left-looking.
    level_ptr, level_column : ndarray of int32
        Columns by `level`, the longest first.
    u_ptr, map_ptr, map : ndarray of int64, int64, uint16
        Targets of updates, if `has_maps`.
    has_maps : bool
    flops : float
        Multiply-adds of the updates.
    seconds : float
        Seconds for making the plan [s].
    symbolic : {"host", "device"}
        Where L + U was found.
    """

    def __init__(self, core: Any, symbolic: str = "host"):
        super().__init__(core)
        self.symbolic = symbolic

    @property
    def nbytes(self) -> int:
        """Size of all arrays [bytes]."""
        names = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "entry_source", "entry_place", "entry_scale")
        return int(sum(getattr(self, name).nbytes for name in (*names, "level_column", "u_ptr", "map_ptr", "map")))


def make_column_plan(
    pattern: Any,
    row_perm: np.ndarray,
    col_perm: np.ndarray,
    row_scale: np.ndarray | None = None,
    col_scale: np.ndarray | None = None,
    most_mapped: float = MOST_MAPPED,
    columns: LuPattern | None = None,
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
    columns : LuPattern, optional
        Of L + U, if a device has found them.

    Returns
    -------
    ColumnPlan

    Raises
    ------
    ValueError
        Permutations of another length, only one of the scales, or columns of another matrix.
    """
    rows, cols = (None if scale is None or not len(scale) else scale for scale in (row_scale, col_scale))
    arrays = (pattern.ptr, pattern.ind, row_perm, col_perm, rows, cols)
    made = _core.make_column_plan(*arrays, most_mapped, columns)
    return ColumnPlan(made, "host" if columns is None else "device")


def entries_of(pointers: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Positions of all entries of `columns`, one column after the other, where column k has pointers[k] to [k + 1]."""
    counts = pointers[columns + 1] - pointers[columns]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) + np.repeat(pointers[columns] - ends + counts, counts)
