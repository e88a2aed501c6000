"""Factor kernels of fronts that a warp or a block holds, in the emulator, against the reference factor."""

import numpy as np
import pytest
from factor_driver import factor
from solve_driver import EPS, Pattern, canonical, case

from gpusplu import _core
from gpusplu.plan import make_plan


def largest_error(done: np.ndarray, expected: np.ndarray) -> float:
    known = ~np.isnan(expected)
    assert np.isfinite(done[known]).all()
    return float(np.abs(done[known] - expected[known]).max() / np.abs(expected[known]).max())


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("dtype", "fdFD")
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


def test_rows_are_pivoted_inside_blocks():
    rng = np.random.default_rng(3)
    A = canonical(rng.standard_normal((16, 16)) * (1 - np.eye(16)) + 1e-13 * np.eye(16))
    pattern = Pattern(A.indptr.astype(np.int64), A.indices.astype(np.int32))
    symbolic = _core.analyze(pattern.ptr, pattern.ind, A.data, method="front", matching=False)
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
