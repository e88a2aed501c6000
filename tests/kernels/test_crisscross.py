"""Crisscross LU by its parts on the emulator: sparse columns, the corner they leave, the front it becomes."""

from itertools import pairwise

import emulated
import numpy as np
import pytest
from column_driver import Factorization, Groups
from column_reference import assemble, factor, random_columns

from gpusplu import _core
from gpusplu.crisscross_plan import dense_seconds, dense_symbolic, divide

pytestmark = pytest.mark.skipif(emulated.compiler() is None, reason="no C++ compiler")

EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}


def partial(plan, values, p):
    """L + U of the columns before p, U12, and the Schur complement, in the order of the plan."""
    lu = assemble(plan, values)
    u = 0
    for k in range(plan.n):
        begin, end = plan.col_ptr[k], plan.col_ptr[k + 1]
        for e in range(begin, plan.diag[k]):
            j = plan.row[e]
            if j < p:
                at = begin + plan.map[plan.map_ptr[u] : plan.map_ptr[u + 1]].astype(int)
                lu[at] -= lu[plan.diag[j] + 1 : plan.col_ptr[j + 1]] * lu[e]
            u += 1
        if k < p:
            lu[plan.diag[k] + 1 : end] /= lu[plan.diag[k]]
    return lu


def divided(plan, p, dtype="d", limits=(40, 200, 12)):
    """The division, the plan as the sparse kernel sees it, and its groups."""
    parts = divide(plan, p, dtype)
    plan.diag = parts.diag
    return parts, Groups(*_core.column_groups(*parts.truncated, *limits))


@pytest.mark.parametrize("p", [0, 1, 30, 59, 60])
def test_division(p):
    _, plan = random_columns(60, 0.05, seed=4)
    parts = divide(plan, p, "d")
    for k in range(60):
        column = plan.row[plan.col_ptr[k] : plan.col_ptr[k + 1]]
        assert parts.diag[k] - plan.col_ptr[k] == (column < min(k, p)).sum()
        row = plan.col[plan.row_ptr[k] : plan.row_ptr[k + 1]]
        assert parts.row_diag[k] - plan.row_ptr[k] == (row < min(k, p)).sum()
        col_ptr, rows, diag = parts.truncated
        kept = column if k < p else [*column[column < p], k]
        np.testing.assert_array_equal(rows[col_ptr[k] : col_ptr[k + 1]], kept)
        assert rows[diag[k]] == k
    if p == 60:
        assert parts.corner is None
        return
    assert parts.corner.nf == 1 and parts.corner.n == 60 - p
    expected = [e for e in range(plan.nnz) if plan.row[e] >= p and plan.column[e] >= p]
    assert sorted(parts.corner.entry_source) == expected


@pytest.mark.parametrize("p", [-1, 61])
def test_divisions_outside_are_rejected(p):
    _, plan = random_columns(60, 0.05, seed=4)
    with pytest.raises(ValueError, match="60 columns"):
        divide(plan, p, "d")


@pytest.mark.parametrize("m", [1, 2, 3, 70])
def test_dense_symbolic_is_one_front(m):
    symbolic = dense_symbolic(m)
    assert symbolic.super_ptr.tolist() == [0, m]
    assert symbolic.row_perm.tolist() == symbolic.col_perm.tolist() == list(range(m))


def test_larger_corners_take_longer():
    seconds = [dense_seconds(m, "d") for m in (0, 50, 200, 800)]
    assert seconds[0] == (0, 0)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(seconds))


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("capacity", [300, 10])
@pytest.mark.parametrize("p", [0, 40, 70])
def test_sparse_part(dtype, capacity, p):
    A, plan = random_columns(70, 0.04, dtype, seed=7)
    expected = partial(plan, A.data, p)
    if p == 70:
        np.testing.assert_array_equal(expected, factor(plan, A.data))
    _, groups = divided(plan, p)
    run = Factorization(plan, groups, dtype, capacity=capacity, division=p)
    lu, status = run.run(A.data, seed=5)
    assert np.abs(lu - expected).max() < 50 * EPS[dtype] * np.abs(expected).max()
    assert status["n_perturbed"] == status["not_finite"] == 0
    again, _ = run.run(A.data, seed=2, grid=1)
    assert again.tobytes() == lu.tobytes()


def test_sparse_part_without_maps():
    A, plan = random_columns(70, 0.05, seed=8)
    expected = partial(plan, A.data, 45)
    _, groups = divided(plan, 45)
    lu, _ = Factorization(plan, groups, "d", maps=False, capacity=300, division=45).run(A.data)
    assert np.abs(lu - expected).max() < 50 * EPS["d"] * np.abs(expected).max()
