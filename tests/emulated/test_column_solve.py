"""Solves of the column engines against the reference, on the emulator."""

import numpy as np
import pytest

from support import emulated
from support.column_driver import groups, solve
from support.column_reference import factor, random_columns
from support.column_reference import solve as expected_solve
from support.small_matrices import EPS, dtypes


def rhs(n, dtype, columns=1):
    rng = np.random.default_rng(n)
    b = rng.normal(size=(n, columns))
    return (b + 1j * rng.normal(size=b.shape) if np.dtype(dtype).kind == "c" else b).astype(dtype)


def check(plan, lu, b, trans, x):
    expected = expected_solve(plan, lu, b, trans)
    assert np.abs(x - expected).max() < 100 * EPS[b.dtype.char] * np.abs(expected).max()


@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("trans", "NTH")
def test_solutions(dtype, trans):
    A, plan = random_columns(70, 0.05, dtype, seed=1)
    lu = factor(plan, A.data)
    for columns, nrhs in ((1, 1), (4, 6)):
        b = rhs(70, dtype, nrhs)
        check(plan, lu, b, trans, solve(plan, groups(plan, 40, 100, 12), lu, b, trans, columns, seed=3))


@pytest.mark.parametrize("limits", [(0, 0, 1), (10000, 10000, 500)])
@pytest.mark.parametrize("n", [1, 160])
def test_groups_and_long_rows(n, limits):
    A, plan = random_columns(n, 0.1, seed=n)
    assert n == 1 or np.diff(plan.row_ptr).max() > 128
    lu, b = factor(plan, A.data), rhs(n, "d")
    for trans in "NT":
        check(plan, lu, b, trans, solve(plan, groups(plan, *limits), lu, b, trans))


def test_bits_repeat_in_any_order_of_threads_and_by_levels():
    A, plan = random_columns(80, 0.05, seed=5)
    lu, b, here = factor(plan, A.data), rhs(80, "d", 3), groups(plan, 40, 100, 12)
    for trans in "NT":
        x = solve(plan, here, lu, b, trans)
        assert solve(plan, here, lu, b, trans, seed=2, grid=1).tobytes() == x.tobytes()
        assert solve(plan, here, lu, b, trans, by_levels=True, seed=1).tobytes() == x.tobytes()
        assert solve(plan, groups(plan, 0, 0, 1), lu, b, trans).tobytes() == x.tobytes()
        assert solve(plan, here, lu, b, trans, columns=4).tobytes() == x.tobytes()


def test_packets_of_an_earlier_solve_are_not_taken():
    A, plan = random_columns(60, 0.05, seed=6)
    lu, b, here = factor(plan, A.data), rhs(60, "d"), groups(plan, 40, 100, 12)
    with pytest.raises(emulated.EmulationError, match="waited too long"):
        solve(plan, here, lu, b, skipped=here.level_ptr[1])
