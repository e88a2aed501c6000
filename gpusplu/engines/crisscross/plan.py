"""Plan of crisscross LU: a column plan with its last columns as one dense block.

With the division point p, columns and rows before p are sparse and those from p on are the trailing block:

    B = [A11 A12; A21 A22],   A11 = L11 U11,   L21 = A21 U11^-1,   U12 = L11^-1 A12,   S = A22 - L21 U12 = L22 U22.

Columns before p are factored as usual, with the rows from p on that are L21. Those from p on are updated by them only,
which leaves U12 above and S below row p. S is then one dense front of the supernodal engine, which reads its entries
from the places of S among the columns; entries that are fill of the front only are zero.

In the paper (section 6.2, eqs. 13-15) L11, U11 and U12 come together, by rows (ParFact); L21 follows (ComFact), then S
(SpMul) and its LU (DenFact). By columns L21 comes with L11 and U11 instead, and U12 with S.

Nested dissection places separators all over the matrix, each the end of a long chain of columns. The columns at the
end of all chains come last only if `trailing_last` moves those that are finished last to the end, without fill.

The algorithm is that of Chen, Wang, Yang et al., crisscross blocked LU for circuit matrices on GPUs; columns, the
division into kernels, the front in the trailing block and the order that puts columns there are gpusplu's.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import _core
from ..supernodal.plan import Limits, Plan, make_plan, predict


@dataclass(frozen=True)
class Division:
    """A division of the columns of a column plan.

    Attributes
    ----------
    division : int
        First column of the trailing block; n if there is none.
    diag, row_diag : ndarray of int64, shape (n,)
        Position of the diagonal in a column and in a row of the column plan; in those of the trailing block, of its
        begin.
    trailing : Plan or None
        The trailing block as a single front; ``entry_source`` are places of the column plan.
    multiply_adds : float
        Of the updates by columns before it.
    """

    division: int
    diag: np.ndarray
    row_diag: np.ndarray
    trailing: Plan | None
    multiply_adds: float


def trailing_last(order: np.ndarray, division: int) -> np.ndarray:
    """The order of the columns that puts the last ones of `order` at the end, in a trailing block from `division` on.

    No earlier column may wait for a column of the trailing block, so that L + U is only permuted. Columns before it
    keep their order, and so do its own.

    Returns
    -------
    order : ndarray of int64, shape (n,)
        Gather.
    """
    return np.concatenate((np.sort(order[:division]), np.sort(order[division:])))


def divide(plan: Any, division: int, dtype: Any, limits: Limits | None = None) -> Division:
    """Make rows and columns from `division` on a dense trailing block.

    Parameters
    ----------
    plan : ColumnPlan
    division : int
    dtype : dtype
        Of the factor.
    limits : Limits, optional
        Of the device.

    Raises
    ------
    ValueError
        `division` is not in 0 .. n.
    """
    n, p = plan.n, division
    if not 0 <= p <= n:
        raise ValueError(f"division is {division}, the matrix has {n} columns")
    every = np.arange(n, dtype=np.int32)
    column = np.repeat(every, np.diff(plan.col_ptr))
    first = np.minimum(every, p)  # first of the rows that end a column's part of U
    above = plan.row < first[column]
    diag = plan.col_ptr[:-1] + np.bincount(column[above], minlength=n)
    of_row = np.repeat(every, np.diff(plan.row_ptr))
    row_diag = plan.row_ptr[:-1] + np.bincount(of_row[plan.col < first[of_row]], minlength=n)
    trailing = _trailing(plan, p, dtype, limits) if p < n else None
    below = np.diff(plan.col_ptr) - np.diff(plan.u_ptr) - 1
    return Division(p, diag, row_diag, trailing, float(below[plan.row[above]].sum(dtype=np.float64)))


def _trailing(plan: Any, p: int, dtype: Any, limits: Limits | None) -> Plan:
    """One front of all columns from p on."""
    begin = int(plan.col_ptr[p])
    places = begin + np.flatnonzero(plan.row[begin:] >= p)
    column = np.repeat(np.arange(plan.n - p), np.diff(plan.col_ptr[p:]))[places - begin]
    ptr = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=plan.n - p)))).astype(np.int64)
    pattern = SimpleNamespace(ptr=ptr, ind=np.ascontiguousarray(plan.row[places] - p))
    trailing = make_plan(_core.one_supernode(plan.n - p), pattern, dtype, limits)
    vars(trailing)["entry_source"] = places[np.asarray(trailing.entry_source)].astype(np.int32)
    return trailing


def dense_seconds(m: int, dtype: Any, limits: Limits | None = None) -> tuple[float, float]:
    """Predicted seconds of the factorization of a trailing block of order m, and of a solve with it."""
    return predict(_core.one_supernode(m), dtype, limits) if m else (0.0, 0.0)
