"""Factor kernels of fronts that a warp or a block holds, in the emulator, against the reference factor."""

import numpy as np
import pytest

from gpusplu.engines.supernodal.plan import make_plan
from support import plan_reference
from support.analyses import analyze
from support.emulated import EmulationError
from support.factor_driver import factor
from support.front_plans import Pattern
from support.plan_reference import PANEL, largest_error
from support.small_matrices import EPS, canonical, dtypes
from support.solve_driver import case


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("name", ["arrow", "dense"])
def test_factor_equals_reference(name, dtype, cholesky):
    small = case(name, dtype, cholesky)
    done = factor(small.plan, np.asarray(small.A.data))
    assert largest_error(done.factor, small.factor) < 1e4 * EPS[dtype]
    assert done.status["n_perturbed"] == 0


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("small_rows", [0, 72])
def test_trees_of_fronts(small_rows, cholesky):
    tree = case("poisson:20x20", "d", cholesky, small_rows=small_rows)
    assert tree.plan.level.max() > 1
    done = factor(tree.plan, np.asarray(tree.A.data))
    assert largest_error(done.factor, tree.factor) < 1e3 * EPS["d"]
    again = factor(tree.plan, np.asarray(tree.A.data), seed=5)
    np.testing.assert_array_equal(done.factor, again.factor)  # bitwise, NaN where nothing is written


@pytest.mark.parametrize("small_rows", [0, 72])
def test_fronts_of_blocks_wait_for_children_of_earlier_phases(small_rows):
    tree = case("poisson:20x20", "d", False, small_rows=small_rows)
    waiting = 1 if small_rows else 2
    assert (tree.plan.phase == 0).any() and (tree.plan.phase == waiting).any()
    with pytest.raises(EmulationError, match="waited too long"):
        factor(tree.plan, np.asarray(tree.A.data), first=waiting)
    records = tree.plan.front_records
    earlier = records["children"] - records["pending"]
    climbed = (np.asarray(tree.plan.phase) == waiting) & (records["pending"] > 0) & (earlier > 0)
    assert climbed.any()
    with pytest.raises(EmulationError, match="waited too long"):  # those that blocks climb to wait too
        factor(tree.plan, np.asarray(tree.A.data), first=waiting, arrived=np.flatnonzero(~climbed))


def test_rows_are_pivoted_inside_blocks():
    rng = np.random.default_rng(3)
    A = canonical(rng.standard_normal((16, 16)) * (1 - np.eye(16)) + 1e-13 * np.eye(16))
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front", matching=False)
    for rows in (16, 1):  # the warp's kernel, the block's
        plan = make_plan(symbolic, pattern, "d", warp_rows=rows)
        done = factor(plan, A.data)
        inverse = done.factor[:256].reshape(16, 16, order="F")
        B = A.toarray()[plan.row_perm][:, plan.col_perm]
        assert np.abs(inverse @ B - np.eye(16)).max() < 1e-11
        assert done.status["n_perturbed"] == 0


def test_tiny_pivots_are_replaced_and_counted():
    singular = case("dense", "d", False)
    values = np.zeros_like(singular.A.data)
    done = factor(singular.plan, values)
    assert done.status["n_perturbed"] == singular.plan.n
    assert np.isfinite(done.factor[~np.isnan(singular.factor)]).all()


def test_pivots_that_are_not_positive_are_counted():
    definite = case("dense", "d", True)
    done = factor(definite.plan, -np.asarray(definite.A.data))
    assert done.status["n_perturbed"] > 0


@pytest.mark.parametrize("dtype", dtypes("fFD"))
def test_order_of_threads_does_not_matter(dtype):
    tree = case("poisson:20x20", dtype, False)
    values = np.asarray(tree.A.data)
    done = [factor(tree.plan, values, seed=seed).factor for seed in (1, 2)]
    np.testing.assert_array_equal(*done)


@pytest.mark.parametrize("name", ["add20", "memplus"])
def test_circuits(real_matrix, name):
    A = canonical(real_matrix(name)).astype(float)
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front", ordering="nd")
    plan = make_plan(symbolic, pattern, "d")
    fronts = plan.front_records
    assert fronts["entry_count"].max() > 4 * 512  # more than what is loaded ahead
    if name == "memplus":
        assert fronts["partial_count"].max() > 1
        assert plan.level[np.asarray(plan.phase) == 2].max() > 1
    done = factor(plan, A.data, seed=3)
    assert largest_error(done.factor, plan_reference.factor(plan, A.data, items=False)[0]) < 1e-10
    assert done.status["n_perturbed"] == done.status["not_finite"] == 0


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("name", ["arrow", "dense"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_reported(name, cholesky, bad):
    small = case(name, "d", cholesky)
    values = np.array(small.A.data)
    values[np.flatnonzero(small.A.tocoo().row == small.A.tocoo().col)[200 if name == "arrow" else 70]] = bad
    with np.errstate(invalid="ignore"):
        assert factor(small.plan, values).status["not_finite"] > 0


def test_large_multipliers_are_reported_by_warps():
    arrow = case("arrow", "d", False)
    values = np.array(arrow.A.data)
    values[arrow.A.tocoo().row == arrow.A.tocoo().col] *= 1e-5
    assert_growth(arrow.plan, values)


def test_large_multipliers_are_reported_by_blocks():
    A = np.eye(40) * 3
    A[:4, :4] *= 1e-5
    A[4:, :4] = 1 + np.arange(36)[:, None] * 0.1
    A[:4, 4:] = 1e-3
    A = canonical(A)
    pattern = Pattern(A)
    natural = np.arange(40, dtype=np.int32)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front", matching=False, perm=natural)
    assert_growth(make_plan(symbolic, pattern, "d"), A.data)


def assert_growth(plan, values: np.ndarray) -> None:
    done = factor(plan, values)
    largest = max(np.abs(multipliers(plan, done.factor, f)).max(initial=0) for f in range(plan.nf))
    assert largest > 64
    np.testing.assert_allclose(done.status["growth"], largest, rtol=1e-5)


def multipliers(plan, arena: np.ndarray, f: int) -> np.ndarray:
    """Entries of X = A21 D of a front, below the diagonal blocks."""
    R, W = int(plan.rows[f]), int(plan.width[f])
    lower = arena[int(plan.factor_offset[f]) :][: R * W].reshape(W, R).T
    return lower[np.arange(R)[:, None] // PANEL > np.arange(W) // PANEL] if plan.phase[f] else lower[W:]
