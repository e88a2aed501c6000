"""Where to divide the columns of crisscross LU: predicted seconds of the sparse part and of the dense corner.

Chen, Wang, Yang et al. (crisscross blocked LU for circuit matrices on GPUs, eqs. 16-19) choose the division point by
two curves over p, the time of the sparse part, which grows with p, and that of the dense part, which falls. The text of
the paper was not at hand: the two curves and their sum are its idea, what they are made of is ours.

Sparse part. A column's warp takes the updates of its row indices in ascending order, each when the column that it needs
is finished. An update by column j costs c_j = UPDATE + SLICE ceil(|L(:, j)| / 32). With t(j) the time when column j is
finished, column k is finished at

    t(k) = COLUMN + max over j with U(j, k) of  t(j) + sum of c_i over i >= j with U(i, k).

Which columns come last is not left to the ordering: a corner of m columns has those of the highest levels
(crisscross.py), so that what is cut off is the end of every long chain and not of the last one only. Positions
below are in that order.

The curve is START, the latest of these times before p, what all these updates cost by the warps that work side by side,
and for U12 and the Schur complement CORNER, TERM for each of their multiply-adds, and DEPTH for each level of columns
before p, which U12 is no deeper than, as many times as the device has to be filled with two columns a multiprocessor.

Dense part. The plan of the corner predicts itself, as any plan of fronts does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .columns import entries_of
from .crisscross import dense_seconds
from .fronts import Limits

LARGEST_CORNER = 4096


class SparseCosts(NamedTuple):
    """Constants of the sparse curve [s]; `warps` is how many of them keep a multiprocessor busy."""

    start: float = 2e-6
    column: float = 0.88e-6
    update: float = 0.0
    slice: float = 0.28e-6
    warps: float = 2.1
    corner: float = 8e-6
    depth: float = 0.3e-6
    term: float = 1e-11


#: One H200, double precision.
H200 = SparseCosts()


@dataclass(frozen=True)
class Curves:
    """Predicted seconds over division points.

    Attributes
    ----------
    division : ndarray of int64
        Candidates, n (no corner) among them, descending.
    sparse, dense : ndarray of float64, same shape
        Of a factorization.
    """

    division: np.ndarray
    sparse: np.ndarray
    dense: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Of both parts."""
        total: np.ndarray = self.sparse + self.dense
        return total

    @property
    def best(self) -> int:
        """Division point of the least total; of equals the smallest corner."""
        return int(self.division[np.argmin(self.total)])


def candidates(n: int, largest: int = LARGEST_CORNER) -> np.ndarray:
    """Division points with corners of 0, 16, 18, .. columns, each an eighth larger than the one before."""
    sizes = [0]
    size = 16.0
    while size <= min(n, largest):
        sizes.append(round(size))
        size *= 1.125
    return n - np.array(sizes)


def predict_divisions(
    plan: Any,
    dtype: Any,
    limits: Limits | None = None,
    division: np.ndarray | None = None,
    costs: SparseCosts = H200,
) -> Curves:
    """Both curves.

    Parameters
    ----------
    plan : ColumnPlan
    dtype : dtype
        Of the factor.
    limits : Limits, optional
        Of the device.
    division : ndarray of int, optional
        Points to look at; `candidates` unless given.
    costs : SparseCosts, optional

    Returns
    -------
    Curves

    Notes
    -----
    Cost: a few passes over the entries of U, and a step for every level of columns.
    """
    limits = limits or Limits()
    division = candidates(plan.n) if division is None else np.asarray(division)
    dense = np.array([dense_seconds(plan.n - int(p), dtype, limits)[0] for p in division])
    return Curves(division, _sparse_curve(_Updates(plan, costs), division, limits.multiprocessors), dense)


class _Updates:
    """Entries of U above the diagonal, column by column, and what the updates that they stand for cost."""

    def __init__(self, plan: Any, costs: SparseCosts):
        n = self.n = plan.n
        self.costs, self.ptr = costs, np.asarray(plan.u_ptr)
        column = np.repeat(np.arange(n), np.diff(plan.col_ptr))
        above = plan.row < column
        self.row, self.column = plan.row[above], column[above]
        below = np.diff(plan.col_ptr) - np.diff(self.ptr) - 1
        self.below = below[self.row]
        self.cost = costs.update + costs.slice * -(-self.below // 32)
        sums = np.concatenate(([0.0], np.cumsum(self.cost)))
        self.rest = sums[self.ptr[self.column + 1]] - sums[:-1]  # this update and those after it in the column
        self.level, self.levels = np.asarray(plan.level_left), np.asarray(plan.level)
        self.finish = self._finish(self.level)

    def _finish(self, level: np.ndarray) -> np.ndarray:
        """Time when each column is finished if all are sparse."""
        finish = np.full(self.n, self.costs.column)
        order = np.argsort(level, kind="stable")
        begins = np.searchsorted(level[order], np.arange(1, level.max(initial=0) + 2))
        first = order[begins[0] :]  # without those of the first level, which wait for nobody
        entries = entries_of(self.ptr, first)
        row, rest = self.row[entries], self.rest[entries]
        ptr = np.concatenate(([0], np.cumsum(np.diff(self.ptr)[first])))
        for a, b in zip(begins[:-1] - begins[0], begins[1:] - begins[0], strict=True):
            here = slice(ptr[a], ptr[b])
            ready = finish[row[here]] + rest[here]
            finish[first[a:b]] = self.costs.column + np.maximum.reduceat(ready, ptr[a:b] - ptr[a])
        return finish


def _sparse_curve(updates: _Updates, division: np.ndarray, multiprocessors: int) -> np.ndarray:
    costs, n, order = updates.costs, updates.n, np.argsort(updates.levels, kind="stable")

    def before(of_columns: np.ndarray) -> np.ndarray:
        """Sums over the columns before every position."""
        return np.concatenate(([0.0], np.cumsum(of_columns[order])))

    latest = np.concatenate(([0.0], np.maximum.accumulate(updates.finish[order])))
    depth = np.concatenate(([0], np.maximum.accumulate(updates.level[order]) + 1))
    spent = before(np.bincount(updates.column, updates.cost, n))
    terms = before(np.bincount(updates.row, updates.below, n)) - before(np.bincount(updates.column, updates.below, n))
    seconds = costs.start + latest + spent / (costs.warps * multiprocessors)
    fills = -(-np.arange(n, 0, -1) // (2 * multiprocessors))
    seconds[:n] += costs.corner + costs.depth * depth[:n] * fills + costs.term * terms[:n]
    curve: np.ndarray = seconds[division]
    return curve
