"""The curves that the division point of crisscross LU is chosen by."""

import numpy as np
import pytest
from column_reference import random_columns

from gpusplu.plans.crisscross import dense_seconds
from gpusplu.plans.crisscross_model import H200, SparseCosts, candidates, predict_divisions
from gpusplu.plans.fronts import Limits

COSTS = SparseCosts(start=3.0, column=0.7, update=0.11, slice=0.013, warps=2.0, corner=5.0, depth=0.31, term=0.017)


def sparse_seconds(plan, p, costs, multiprocessors):
    """The curve by its definition; the columns of the highest levels are in the corner."""
    finish = np.zeros(plan.n)
    below = plan.col_ptr[1:] - plan.diag - 1
    before = np.zeros(plan.n, bool)
    before[sorted(range(plan.n), key=lambda k: (plan.level[k], k))[:p]] = True
    spent = terms = 0.0
    for k in range(plan.n):
        upper = plan.row[plan.col_ptr[k] : plan.diag[k]]
        cost = costs.update + costs.slice * np.ceil(below[upper] / 32)
        ready = [finish[j] + cost[t:].sum() for t, j in enumerate(upper)]
        finish[k] = costs.column + max(ready, default=0.0)
        spent += cost.sum() if before[k] else 0.0
        terms += below[upper[before[upper]]].sum() if not before[k] else 0.0
    seconds = costs.start + finish[before].max(initial=0.0) + spent / (costs.warps * multiprocessors)
    if p == plan.n:
        return seconds
    fills = np.ceil((plan.n - p) / (2 * multiprocessors))
    return (
        seconds
        + costs.corner
        + costs.depth * fills * (plan.level_left[before].max(initial=-1) + 1)
        + costs.term * terms
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_curves_are_those_of_the_definition(seed):
    _, plan = random_columns(90, 0.04, seed=seed)
    division = np.array([90, 89, 60, 30, 0])
    limits = Limits(multiprocessors=7)
    curves = predict_divisions(plan, "d", limits, division, COSTS)
    expected = [sparse_seconds(plan, p, COSTS, 7) for p in division]
    np.testing.assert_allclose(curves.sparse, expected, rtol=1e-12)
    np.testing.assert_array_equal(curves.dense, [dense_seconds(90 - p, "d", limits)[0] for p in division])


def test_the_best_is_the_least_total():
    _, plan = random_columns(90, 0.04, seed=1)
    curves = predict_divisions(plan, "d")
    assert curves.total[list(curves.division).index(curves.best)] == curves.total.min()
    dear = predict_divisions(plan, "d", costs=H200._replace(column=1e-3))
    assert dear.best == curves.division.min()
    cheap = predict_divisions(plan, "d", costs=H200._replace(column=0.0, update=0.0, slice=0.0))
    assert cheap.best == 90


def test_candidates():
    division = candidates(1000)
    sizes = 1000 - division
    assert sizes[0] == 0 and sizes[1] == 16 and sizes[-1] > 850
    assert (np.diff(sizes) > 0).all() and sizes.max() <= 1000
    assert candidates(5).tolist() == [5]
    assert (100_000 - candidates(100_000)).max() <= 4096


def test_one_column():
    _, plan = random_columns(1, 0)
    assert predict_divisions(plan, "d").best == 1
