"""Pivots that fail: perturbed and counted in LU, the right column reported in Cholesky."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu.common.timing import backward_error
from support.fronts import Fronts
from support.small_matrices import canonical


def policy(n):
    """Pairs of columns whose second pivot cancels exactly: [[1, 1], [1, 1]] blocks."""
    A = sp.block_diag([sp.coo_array(np.ones((2, 2)))] * n + [sp.eye_array(1)]).tolil()
    return canonical(A)


def test_perturbed_pivots_are_counted():
    fronts = Fronts(policy(5), match=False)
    info = fronts.factor(perturb_below=1e-8, tiny_below=1e-12)
    assert info["status"] == "ok"
    assert info["n_perturbed"] == 5
    U = fronts.upper()
    assert np.count_nonzero(U.diagonal() == 1e-12) == 5  # nothing below these pivots would be better
    B = fronts.permuted()
    assert abs((fronts.lower() @ U - B).toarray()).max() <= 1.1e-8


def test_pivots_above_better_rows_are_perturbed_more():
    A = sp.lil_array(sp.block_diag([sp.coo_array(np.ones((2, 2)))] * 20 + [20 * sp.eye_array(20) + np.ones((20, 20))]))
    A[range(40), 40 + np.arange(40) // 2] = A[40 + np.arange(40) // 2, range(40)] = 0.1
    A[range(1, 40, 2), 40 + np.arange(20)[::-1]] = 0.2
    fronts = Fronts(canonical(A), match=False)
    assert fronts.factor(perturb_below=1e-8, tiny_below=1e-12)["n_perturbed"] == 20
    assert np.count_nonzero(fronts.upper().diagonal() == 1e-8) == 20


def test_zero_pivot_without_perturbation_is_reported():
    assert Fronts(policy(2), match=False).factor()["status"] == "not_finite"


def test_rows_are_exchanged_inside_a_front():
    A = canonical(np.array([[1e-10, 1.0], [1.0, 1e-10]]))
    fronts = Fronts(A, match=False)
    info = fronts.factor()
    assert info["n_off_diagonal"] >= 1
    b = np.array([1.0, 2.0])
    for trans, M in (("N", A), ("T", A.T)):
        assert backward_error(M, fronts.solve(b, trans), b) < 1e-15


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 57, 399])
def test_not_positive_definite_column(bad, count, threads):
    threads(count)
    path = sp.diags_array([-np.ones(19)] * 2, offsets=[-1, 1], shape=(20, 20))
    grid = sp.kron(path, sp.eye_array(20)) + sp.kron(sp.eye_array(20), path) + 4.5 * sp.eye_array(400)
    A = grid.tolil()
    A[bad, bad] = -3.0
    A = canonical(A)
    fronts = Fronts(A, cholesky=True)
    info = fronts.factor()
    assert info["status"] == "not_positive_definite"
    # The first column whose leading minor, in elimination order, is not positive definite.
    dense = A.toarray()[np.ix_(fronts.col_perm, fronts.col_perm)]
    k = next(k for k in range(400) if np.linalg.eigvalsh(dense[: k + 1, : k + 1])[0] <= 0)
    assert info["column"] == fronts.col_perm[k]
    pivot = dense[k, k] - dense[k, :k] @ np.linalg.solve(dense[:k, :k], dense[:k, k])
    assert info["min_pivot"] == pytest.approx(pivot, rel=1e-10)
    good = canonical(grid)
    assert fronts.factor(good.data)["status"] == "ok"  # and the same fronts still factor what is definite
    b = np.ones(400)
    assert backward_error(good, fronts.solve(b), b) < 1e-15
