"""Where to divide the columns of crisscross LU: predicted seconds of the sparse part and of the dense trailing block.

Chen, Wang, Yang et al. (crisscross blocked LU for circuit matrices on GPUs, section 6.2.1) try every division point p
and take the least sum of two terms (eq. 18): the flops of either part over a rate, which was fitted as a logarithm of
the flops for the sparse part (eq. 16) and of the order for the dense one (eq. 17, flops by eq. 19). The sum and the
search are from the paper; gpusplu models the two terms differently, because waiting, not flops, decides on GPUs here.

The ordering alone does not determine which columns are in the trailing block: it has the columns that would be finished
last if all were sparse (core/plan/columns/trailing.hpp). A column that waits for one of them is finished later still,
so they can be moved to the end without fill, and the trailing block cuts off the end of every long chain, whether it
has many columns or a single long one. Positions below are in that order.

Sparse part. Columns before p take START, the latest of their times, and the cost of all their updates divided by the
warps that run concurrently. U12 and the Schur complement are computed meanwhile, and take TRAILING longer; WAVE for
each round but the first of columns of the trailing block, two per multiprocessor, and DEPTH for each column of the
longest chain of L before p, which bounds the depth of U12; ENTRY for each entry and OWN for each multiply-add of the
column that takes longest by them; TERM for each of all multiply-adds.

Dense part. The plan of the trailing block predicts its own seconds, like any plan of fronts; a front alone on the
device takes BLOCK times as long if it fits a block, else TILES times.

Predictions have errors, so there is a trailing block only if it is predicted to be faster than none by MARGIN.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ...cost.calibration import costs_of
from ...cost.model import Costs
from ...cost.table import shipped
from ...cuda.layout import constant
from ..supernodal.plan import SHARED, Limits
from .plan import dense_seconds

LARGEST_BLOCK = 4096
PANEL = constant(SHARED, "PANEL")
MOST_TERMS = 20_000_000  # of 8 bytes each
MARGIN = 0.05


PARTS = "crisscross.columns", "crisscross.trailing", "crisscross.dense"
NAMES = [name for part in PARTS for name in shipped()[part]]
#: Constants of the curves [s]; `warps` is how many keep a multiprocessor busy, `block` and `tiles` are ratios.
TrailingCosts: Any = namedtuple("TrailingCosts", [*NAMES, "warps"], defaults=[5.6])  # type: ignore[misc]


def trailing_costs(costs: Costs) -> Any:
    """`TrailingCosts` from the table."""
    return TrailingCosts(**{name: cost for part in PARTS for name, cost in costs[part].items()})


@dataclass(frozen=True)
class Curves:
    """Predicted seconds over division points.

    Attributes
    ----------
    division : ndarray of int64
        Candidates, n (no trailing block) among them, descending.
    columns, trailing, dense : ndarray of float64, same shape
        Of a factorization: of the columns before the division, of U12 and the Schur complement, of the trailing block.
    order : ndarray of int64, shape (n,)
        Columns as they are finished: the last ones are in the trailing block.
    """

    division: np.ndarray
    columns: np.ndarray
    trailing: np.ndarray
    dense: np.ndarray
    order: np.ndarray

    @property
    def sparse(self) -> np.ndarray:
        """Seconds of all but the factorization of the trailing block."""
        return self.columns + self.trailing

    @property
    def total(self) -> np.ndarray:
        """Seconds of both parts."""
        return self.sparse + self.dense

    @property
    def best(self) -> int:
        """Division point with the least total, the last of equal ones; n if it gains less than MARGIN."""
        total = self.total
        best = int(np.argmin(total))
        without = np.flatnonzero(self.division == len(self.order))
        if without.size and total[best] > (1 - MARGIN) * total[without[0]]:
            best = int(without[0])
        return int(self.division[best])


def candidates(n: int) -> np.ndarray:
    """Division points: trailing blocks of 0, 16, 24, .. 192, 256, .. columns, from 1024 on about an eighth larger."""
    sizes, size = [0], 16
    while size <= min(n, LARGEST_BLOCK):
        sizes.append(size)
        size += 8 if size < 192 else max(64, size // 512 * 64)
    return n - np.array(sizes)


def predict_divisions(
    plan: Any,
    dtype: Any,
    limits: Limits | None = None,
    division: np.ndarray | None = None,
    costs: Any = None,
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
        Points to evaluate; default: `candidates`, if there are at most MOST_TERMS to list.
    costs : TrailingCosts, optional
        Default: constants without a device.

    Returns
    -------
    Curves

    Notes
    -----
    Cost: a few passes over the entries of U, and for every point one over those of the trailing block's columns.
    """
    limits, costs = limits or Limits(), costs or trailing_costs(costs_of())
    updates = _Updates(plan, costs, limits.costs)
    if division is None:
        division = candidates(plan.n)
        division = division[updates.terms[division] <= MOST_TERMS]
    division = np.asarray(division)
    dense = np.array([_dense_seconds(plan.n - int(p), dtype, limits, costs) for p in division])
    columns = updates.columns(limits.multiprocessors)[division]
    trailing = np.array([updates.trailing(int(p), limits.multiprocessors) for p in division])
    return Curves(division, columns, trailing, dense, updates.order)


def _dense_seconds(m: int, dtype: Any, limits: Limits, costs: Any) -> float:
    rows = -(-m // PANEL) * PANEL
    in_block = _core.front_ld(rows) * rows * np.dtype(dtype).itemsize <= limits.shared_memory_bytes
    return dense_seconds(m, dtype, limits)[0] * (costs.block if in_block else costs.tiles)


def finishing_times(plan: Any, costs: Any, all_costs: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``struct ColumnTimes`` of core/plan/columns/trailing.hpp."""
    times = plan.column_times(plan.has_maps, all_costs, *costs[costs._fields.index("column") :][:5])
    return times["finish"], times["last"], times["depth"]


class _Updates:
    """Costs of updates of columns, and finishing times of columns."""

    def __init__(self, plan: Any, costs: Any, all_costs: Any):
        n = self.n = plan.n
        self.costs, self.plan = costs, plan
        column = np.repeat(np.arange(n), np.diff(plan.col_ptr))
        above = plan.row < column
        row, column = plan.row[above], column[above]
        below = (np.diff(plan.col_ptr) - np.diff(plan.u_ptr) - 1)[row]
        finish, last, depth = finishing_times(plan, costs, all_costs)
        self.order = np.argsort(last, kind="stable")
        self.position = np.empty(n, np.int64)
        self.position[self.order] = np.arange(n)
        self.latest = self._before(finish, np.maximum.accumulate)
        self.depth = self._before(depth, np.maximum.accumulate)
        self.spent = self._before(np.bincount(column, costs.update + costs.slice * -(-below // 32), n), np.cumsum)
        given, taken = (self._before(np.bincount(of, below, n), np.cumsum) for of in (row, column))
        self.terms = given - taken  # from columns before a position to those after it

    def _before(self, of_columns: np.ndarray, accumulate: Any) -> np.ndarray:
        """Accumulated value over the columns before every position."""
        return np.concatenate(([0.0], accumulate(of_columns[self.order])))

    def columns(self, multiprocessors: int) -> np.ndarray:
        """Seconds of the columns before every position."""
        costs = self.costs
        return costs.start + self.latest + self.spent / (costs.warps * multiprocessors)

    def trailing(self, p: int, multiprocessors: int) -> float:
        """Seconds of U12 and the Schur complement."""
        if p == self.n:
            return 0.0
        costs, waves = self.costs, -(-(self.n - p) // (2 * multiprocessors))
        longest = self.plan.longest_trailing_column(self.position, p, costs.entry, costs.own)
        seconds = costs.trailing + (waves - 1) * (costs.wave + costs.depth * self.depth[p]) + costs.term * self.terms[p]
        return float(seconds + longest)
