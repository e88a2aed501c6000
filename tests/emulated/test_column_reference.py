"""The reference of the column plan: its arrays lead to L U = B and to solutions, and say what they should."""

import numpy as np
import pytest

from support import column_reference as reference
from support.small_matrices import dtypes


@pytest.mark.parametrize("dtype", dtypes("dD"))
@pytest.mark.parametrize(("n", "density"), [(1, 0.0), (2, 1.0), (9, 0.3), (40, 0.05), (60, 0.1)])
def test_factors_and_solutions(n, density, dtype):
    A, plan = reference.random_columns(n, density, dtype, seed=n)
    lu = reference.factor(plan, A.data)
    L, U = reference.factors(plan, lu)
    np.testing.assert_allclose(L @ U, reference.permuted(plan, A), rtol=0, atol=1e-12 * n)
    b = np.random.default_rng(n).normal(size=(n, 2)).astype(dtype)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        np.testing.assert_allclose(op @ reference.solve(plan, lu, b, trans), b, rtol=0, atol=1e-11)


def test_rows_are_the_columns_again():
    _, plan = reference.random_columns(30, 0.1)
    assert (plan.row[plan.place] == np.repeat(np.arange(30), np.diff(plan.row_ptr))).all()
    assert (plan.column[plan.place] == plan.col).all()
    assert (plan.row[plan.diag] == np.arange(30)).all()


def test_corrected_levels_wait_for_rows_of_L_too():
    filled = np.eye(3, dtype=bool)
    filled[2, 0] = filled[2, 1] = True
    left, right = reference.column_levels(filled)
    assert left.tolist() == [0, 0, 0]
    assert right.tolist() == [0, 0, 1]
