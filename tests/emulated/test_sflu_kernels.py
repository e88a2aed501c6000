"""The synchronization-free factorization against the reference, on the emulator."""

import numpy as np
import pytest

from support import emulated
from support.column_driver import Factorization, groups
from support.column_reference import factor, random_columns
from support.small_matrices import EPS, dtypes

# Columns by themselves, small groups, whole subtrees, and all in one.
LIMITS = [(0, 0, 1), (30, 60, 12), (200, 400, 40), (10000, 10000, 500)]


def check(plan, values, lu):
    expected = factor(plan, values)
    error = np.abs(lu - expected).max() / np.abs(expected).max()
    assert error < 50 * EPS[values.dtype.char]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("n", "density", "symmetric"), [(1, 0, False), (60, 0.03, False), (70, 0.06, True)])
def test_groups(n, density, symmetric, limits):
    A, plan = random_columns(n, density, seed=n, symmetric=symmetric)
    run = Factorization(plan, groups(plan, *limits), "d", capacity=max(limits[1], 20))
    lu, status = run.run(A.data, seed=7)
    check(plan, A.data, lu)
    assert status["n_perturbed"] == 0 and status["not_finite"] == 0


@pytest.mark.parametrize("dtype", dtypes("fFD"))
@pytest.mark.parametrize("maps", [True, False])
def test_scalars_with_and_without_maps(dtype, maps):
    A, plan = random_columns(60, 0.06, dtype, seed=3)
    lu, _ = Factorization(plan, groups(plan), dtype, maps=maps).run(A.data)
    check(plan, A.data, lu)


def test_long_columns_and_wide_maps():
    A, plan = random_columns(150, 0.2, seed=1)
    assert np.diff(plan.col_ptr).max() > 128
    here = groups(plan, 200, 1000, 40)
    for maps in (True, False):
        lu, _ = Factorization(plan, here, "d", maps=maps, capacity=1000).run(A.data)
        check(plan, A.data, lu)
    plan.map = plan.map.astype(np.int32)
    for places in (2, 20, 150):
        lu, _ = Factorization(plan, here, "d", capacity=1000, places=places).run(A.data)
        check(plan, A.data, lu)
    lu, _ = Factorization(plan, here, "d", capacity=100).run(A.data)  # all in global memory
    check(plan, A.data, lu)


def test_bits_repeat_in_any_order_of_threads_and_by_levels():
    A, plan = random_columns(80, 0.05, seed=5)
    run = Factorization(plan, groups(plan, 40, 100, 12), "d")
    lu, _ = run.run(A.data)
    for seed, by_levels in ((0, True), (1, False), (2, False), (3, True)):
        again, _ = run.run(A.data, seed=seed, grid=1 + seed, by_levels=by_levels)
        assert again.tobytes() == lu.tobytes()
    single, _ = Factorization(plan, groups(plan, 0, 0, 1), "d").run(A.data)
    assert single.tobytes() == lu.tobytes()


def test_columns_of_other_groups_are_waited_for():
    A, plan = random_columns(60, 0.05, seed=5)
    here = groups(plan, 40, 100, 12)
    run = Factorization(plan, here, "d")
    run.run(A.data)
    with pytest.raises(emulated.EmulationError, match="waited too long"):
        run.run(A.data, level_ptr=here.level_ptr[[1, -1]])


def test_new_values_on_the_same_buffers():
    A, plan = random_columns(60, 0.05, seed=6)
    run = Factorization(plan, groups(plan), "d")
    run.run(A.data)
    lu, _ = run.run(A.data * np.linspace(1, 1.3, A.nnz))
    check(plan, A.data * np.linspace(1, 1.3, A.nnz), lu)


def test_small_pivots_are_replaced_and_counted():
    A, plan = random_columns(20, 0.0, shuffled=False)
    A.data[[3, 5]] = -1e-13, 1e-17
    lu, status = Factorization(plan, groups(plan), "d").run(A.data, tiny=1e-8, singular=1e-15)
    assert lu[plan.diag[[3, 5]]].tolist() == [-1e-8, 1e-8]
    assert (status["n_perturbed"], status["n_tiny"]) == (2, 1)


def test_growth_and_pivots_that_are_not_finite_are_reported():
    A, plan = random_columns(40, 0.1, seed=2, shuffled=False)
    A.data[A.indices == np.repeat(np.arange(40), np.diff(A.indptr))] *= 1e-3
    lu, status = Factorization(plan, groups(plan), "d").run(A.data)
    below = plan.row > plan.column
    assert np.abs(lu[below]).max() > 64
    assert status["growth"] == pytest.approx(np.abs(lu[below]).max(), rel=1e-5)
    A.data[0] = np.nan
    _, status = Factorization(plan, groups(plan), "d").run(A.data)
    assert status["not_finite"] > 0
