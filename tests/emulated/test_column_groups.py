"""Groups of columns: they cover the columns, keep to their limits, and no ticket waits for a higher one."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from support.column_reference import plan_as_numbered, planned, random_columns, random_plan

LIMITS = [(0, 0, 1), (20, 40, 8), (60, 300, 30), (10**6, 10**6, 10**6)]


@pytest.mark.parametrize("single", [(), (0,), (3, 4, 17, 48, 49)])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("n", "density", "symmetric"), [(1, 0, False), (50, 0.02, False), (80, 0.04, True)])
def test_groups(n, density, symmetric, limits, single):
    leaf, capacity, columns = limits
    single = np.array([k for k in single if k < n], np.int32)
    A, plan = random_columns(n, density, seed=n, symmetric=symmetric)
    made = planned(A, plan)
    flat, level_ptr = made.groups(n, leaf, capacity, columns, single)
    ranges = flat.reshape(-1, 2)
    assert {(k, k + 1) for k in single} <= set(map(tuple, ranges.tolist()))
    assert sorted(k for begin, end in ranges for k in range(begin, end)) == list(range(n))
    entries = plan.col_ptr[ranges[:, 1]] - plan.col_ptr[ranges[:, 0]]
    several = np.diff(ranges, axis=1).ravel() > 1
    assert (np.diff(ranges, axis=1) <= columns).all()
    assert (entries[several] <= max(leaf, capacity)).all()
    ticket, level = np.empty(n, int), np.empty(n, int)
    for t, (begin, end) in enumerate(ranges):
        ticket[begin:end] = t
        level[begin:end] = np.searchsorted(level_ptr, t, "right") - 1
    row_diag = made.row_diagonals()
    assert (plan.place[row_diag] == plan.diag).all()
    needed, needs = np.minimum(plan.row, plan.column), np.maximum(plan.row, plan.column)
    outside = ticket[needed] != ticket[needs]
    assert (ticket[needed] <= ticket[needs]).all()
    assert (level[needed] < level[needs])[outside].all()
    for begin, end in pairwise(level_ptr):
        assert end > begin
        assert (np.diff(entries[begin:end]) <= 0).all()


def tree(n, parent):
    """The plan of a matrix whose columns need their parent's only."""
    filled = np.eye(n, dtype=bool)
    for k, p in enumerate(parent):
        filled[k, p] = filled[p, k] = True
    return plan_as_numbered(sp.csc_array(filled.astype(float)))


def test_subtrees_that_do_not_lie_together():
    """(0 2), (1 3)"""
    flat, _ = tree(4, [2, 3]).groups(4, 8, 100, 4)
    assert flat.tolist() == [0, 4]


def test_subtrees_and_chains_of_a_tree():
    """Two leaves of three columns each under a chain of four: (0 1 2) (3 4 5) 6 7 8 9."""
    plan = tree(10, [2, 2, 6, 5, 5, 6, 7, 8, 9])
    flat, level_ptr = plan.groups(10, 10, 100, 3)
    assert flat.reshape(-1, 2).tolist() == [[0, 3], [3, 6], [6, 9], [9, 10]]
    assert level_ptr.tolist() == [0, 2, 3, 4]
    flat, _ = plan.groups(10, 20, 100, 6)
    assert flat.reshape(-1, 2).tolist() == [[0, 6], [6, 10]]
    flat, _ = plan.groups(10, 20, 100, 6, np.array([4, 7], np.int32))
    assert flat.reshape(-1, 2).tolist() == [[0, 4], [4, 5], [5, 7], [7, 8], [8, 10]]


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_follow(seed):
    plan = random_plan(40, 0.08, seed=seed)
    below = [plan.row[plan.diag[k] + 1 : plan.col_ptr[k + 1]].tolist() for k in range(40)]
    expected = [int(k > 0 and below[k - 1] == [k, *below[k]]) for k in range(40)]
    assert 0 < sum(expected) < 39
    assert plan.columns_that_follow().tolist() == expected
