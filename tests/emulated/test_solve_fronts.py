"""Solve kernels against the matrix: every scalar, kind, transpose, class of front and number of right-hand sides."""

import numpy as np
import pytest

from support import solve_driver as driver
from support.small_matrices import EPS, dtypes

# (matrix, caps that put its fronts into other phases)
CASES = {
    "phases 0 and 2": ("poisson:13x11", {}),
    "phases 0 to 2": ("poisson:13x11", {"warp_rows": 4, "small_rows": 12, "block_rows": 240}),
    "all phases": ("circuit:12x12", {"warp_rows": 4, "small_rows": 8, "block_rows": 16}),
    "warps for small fronts": ("poisson:9x9x9", {"warp_rows": 4, "multiprocessors": 1}),
    "many children": ("arrow", {}),
    "one front": ("dense", {}),
    "large fronts": ("poisson:9x9x9", {"block_rows": 48}),
    "only large fronts": ("poisson:13x11", {"warp_rows": 0, "block_rows": 1}),
}


def rhs(n, dtype, nrhs):
    rng = np.random.default_rng(nrhs)
    b = rng.standard_normal((n, nrhs) if nrhs else n)
    if dtype in "FD":
        b = b + 1j * rng.standard_normal(b.shape)
    return b.astype(dtype)


def check(case, trans, nrhs):
    b = rhs(case.plan.n, case.scalar, nrhs)
    x = driver.solve(case, b, trans, seed=1)
    assert driver.backward_error(case, x, b, trans) < 50 * EPS[case.scalar], (trans, nrhs)
    # Another order of threads and another number of blocks: other bits would be a race.
    assert np.array_equal(x, driver.solve(case, b, trans, seed=2, grid=5)), (trans, nrhs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("cholesky", [False, True], ids=["lu", "cholesky"])
def test_solve(cholesky, dtype, name):
    matrix, parameters = CASES[name]
    if cholesky and matrix.startswith("circuit"):
        matrix = "poisson:13x11"
    case = driver.case(matrix, dtype, cholesky, **parameters)
    for trans in "NTH":
        check(case, trans, 0)
    check(case, "N", 3)
    check(case, "H", 5)


@pytest.mark.parametrize("cholesky", [False, True], ids=["lu", "cholesky"])
def test_many_right_hand_sides(cholesky):
    case = driver.case("poisson:6x6x6", "d", cholesky, warp_rows=8, block_rows=32)
    for nrhs in (32, 33):
        check(case, "N", nrhs)
    check(case, "T", 32)


def test_columns_do_not_depend_on_their_neighbours():
    case = driver.case("poisson:13x11", "d", False)
    b = rhs(case.plan.n, "d", 6)
    assert np.array_equal(driver.solve(case, b)[:, 2:5], driver.solve(case, np.ascontiguousarray(b[:, 2:5])))
