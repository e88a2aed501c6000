"""The curves that the division point of crisscross LU is chosen by."""

import numpy as np
import pytest

from gpusplu.cost.table import shipped
from gpusplu.engines.crisscross import model as crisscross_model
from gpusplu.engines.crisscross.model import Curves, TrailingCosts, candidates, predict_divisions, trailing_costs
from gpusplu.engines.crisscross.plan import dense_seconds
from gpusplu.engines.supernodal.plan import Limits
from support.column_reference import random_plan

COSTS = TrailingCosts(
    start=3.0,
    column=0.7,
    update=0.11,
    slice=0.013,
    long_column=4.0,
    long_depth=0.5,
    warps=2.0,
    trailing=5.0,
    wave=0.9,
    depth=0.31,
    entry=0.021,
    own=0.033,
    term=0.017,
    block=0.7,
    tiles=1.3,
)


def finishing_times(plan, costs):
    """Of every column, and with those that have to come before it."""
    finish, last = np.zeros(plan.n), np.zeros(plan.n)
    below = plan.col_ptr[1:] - plan.diag - 1
    for k in range(plan.n):
        for j in plan.row[plan.col_ptr[k] : plan.diag[k]]:
            finish[k] = max(finish[k], finish[j]) + costs.update + costs.slice * np.ceil(below[j] / 32)
        finish[k] += costs.column
        needed = [j for j in range(k) if j in plan.row[plan.col_ptr[k] : plan.diag[k]]]
        needed += [j for j in range(k) if k in plan.row[plan.diag[j] : plan.col_ptr[j + 1]]]
        last[k] = max([finish[k], *last[needed]])
    return finish, last


def sparse_seconds(plan, p, costs, multiprocessors):
    """The curve by its definition."""
    finish, last = finishing_times(plan, costs)
    below = plan.col_ptr[1:] - plan.diag - 1
    before = np.zeros(plan.n, bool)
    before[sorted(range(plan.n), key=lambda k: (last[k], k))[:p]] = True
    spent = terms = longest = 0.0
    for k in range(plan.n):
        upper = plan.row[plan.col_ptr[k] : plan.diag[k]]
        cost = costs.update + costs.slice * np.ceil(below[upper] / 32)
        spent += cost.sum() if before[k] else 0.0
        if not before[k]:
            own = below[upper[before[upper]]].sum()
            terms += own
            longest = max(longest, costs.own * own + costs.entry * (plan.col_ptr[k + 1] - plan.col_ptr[k]))
    seconds = costs.start + finish[before].max(initial=0.0) + spent / (costs.warps * multiprocessors)
    if p == plan.n:
        return seconds
    waves = np.ceil((plan.n - p) / (2 * multiprocessors))
    chain = np.ones(plan.n)
    for k in range(plan.n):
        for i in plan.row[plan.diag[k] + 1 : plan.col_ptr[k + 1]]:
            chain[i] = max(chain[i], chain[k] + 1)
    depth = chain[before].max(initial=0)
    return seconds + costs.trailing + (waves - 1) * (costs.wave + costs.depth * depth) + longest + costs.term * terms


@pytest.mark.parametrize("seed", [1, 2])
def test_columns_in_the_order_of_their_times(seed):
    plan = random_plan(90, 0.04, seed=seed)
    order = predict_divisions(plan, "d", costs=COSTS).order
    last = finishing_times(plan, COSTS)[1]
    np.testing.assert_array_equal(order, np.lexsort((np.arange(90), last)))
    position = np.argsort(order)
    column = np.repeat(np.arange(90), np.diff(plan.col_ptr))
    order_kept = np.sign(position[plan.row] - position[column]) == np.sign(plan.row - column)
    assert order_kept.all()


@pytest.mark.parametrize("seed", [1, 2])
def test_curves_are_those_of_the_definition(seed):
    plan = random_plan(90, 0.04, seed=seed)
    division = np.array([90, 89, 60, 30, 0])
    limits = Limits(multiprocessors=7)
    curves = predict_divisions(plan, "d", limits, division, COSTS)
    expected = [sparse_seconds(plan, p, COSTS, 7) for p in division]
    np.testing.assert_allclose(curves.sparse, expected, rtol=1e-12)
    np.testing.assert_allclose(curves.dense, [0.7 * dense_seconds(90 - p, "d", limits)[0] for p in division])
    small = Limits(shared_memory_bytes=50_000, multiprocessors=7)
    dense = predict_divisions(plan, "d", small, division, COSTS).dense
    expected = [(1.3 if p == 0 else 0.7) * dense_seconds(90 - p, "d", small)[0] for p in division]
    np.testing.assert_allclose(dense, expected)


def test_the_best_is_the_least_total():
    plan = random_plan(90, 0.04, seed=1)
    curves = predict_divisions(plan, "d")
    assert curves.total[list(curves.division).index(curves.best)] == curves.total.min()
    dear = predict_divisions(plan, "d", costs=trailing_costs(shipped())._replace(column=1e-3))
    assert dear.best <= 10 < curves.best
    cheap = predict_divisions(plan, "d", costs=trailing_costs(shipped())._replace(column=0.0, update=0.0, slice=0.0))
    assert cheap.best == 90


def test_no_trailing_block_that_gains_little():
    order = np.arange(9)
    division, columns = np.array([9, 5, 3]), np.array([100.0, 80, 60])

    def best(trailing, dense, first=0):
        return Curves(*(np.array(x, float)[first:] for x in (division, columns, trailing, dense)), order).best

    assert best([0, 10, 10], [0, 6, 28]) == 9
    assert best([0, 10, 10], [0, 4, 28]) == 5
    assert best([0, 10, 10], [0, 4, 28], 1) == 5
    assert best([0, 10, 10], [0, 4, 20], 1) == 3


def test_trailings_of_too_many_terms_are_left_out(monkeypatch):
    plan = random_plan(90, 0.04, seed=1)
    terms = np.array([plan.count_trailing_terms(p) for p in candidates(90)])
    monkeypatch.setattr(crisscross_model, "MOST_TERMS", np.median(terms))
    assert (predict_divisions(plan, "d", costs=COSTS).division == 90).sum() == 1
    assert 1 < len(predict_divisions(plan, "d", costs=COSTS).division) < len(terms)


def test_candidates():
    division = candidates(1000)
    sizes = 1000 - division
    assert sizes[0] == 0 and sizes[1] == 16 and sizes[-1] > 850
    assert (np.diff(sizes) > 0).all() and sizes.max() <= 1000
    assert candidates(5).tolist() == [5]
    assert (100_000 - candidates(100_000)).max() <= 4096


def test_one_column():
    plan = random_plan(1, 0)
    assert predict_divisions(plan, "d").best == 1
