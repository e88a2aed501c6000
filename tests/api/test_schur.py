"""Schur complements: the interior factored, the interface left to the caller."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix


def near_definite(n, dtype="d"):
    """Unsymmetric, and regular without any of its unknowns."""
    A = spd_matrix(n, dtype)
    A.data *= np.random.default_rng(2).uniform(0.95, 1.05, A.nnz).astype(A.data.real.dtype)
    return A


def dense_schur(M, indices):
    inner = np.setdiff1d(np.arange(len(M)), indices)
    left = M[np.ix_(indices, inner)] @ np.linalg.inv(M[np.ix_(inner, inner)])
    return M[np.ix_(indices, indices)] - left @ M[np.ix_(inner, indices)]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("cholesky", [False, True])
def test_complement_and_both_halves_of_a_solve(dtype, cholesky):
    A = (spd_matrix if cholesky else near_definite)(60, dtype)
    indices = np.array([50, 3, 17, 4, 59])
    factor = gs.analyze(A, cholesky=cholesky, schur=indices).factor(A.data)
    M = A.toarray()
    expected = dense_schur(M.astype("D" if dtype in "FD" else "d"), indices)
    assert factor.schur.dtype == A.dtype
    np.testing.assert_allclose(factor.schur, expected, atol=1e4 * EPS[dtype] * np.abs(expected).max())
    for b in (rhs(60, dtype), rhs(60, dtype, (3,))):
        y = np.linalg.solve(factor.schur, factor.condense(b))
        for x in (factor.expand(y), factor.expand(y, b)):
            assert x.shape == b.shape and np.abs(M @ x - b).max() < 1e4 * EPS[dtype] * np.abs(x).max() * len(M)


def test_a_mask_and_one_triangle():
    A = spd_matrix(30)
    mask = np.zeros(30, bool)
    mask[[2, 9, 20]] = True
    factor = gs.analyze(sp.tril(A), cholesky=True, schur=mask).factor(sp.tril(A))
    np.testing.assert_allclose(factor.schur, dense_schur(A.toarray(), np.array([2, 9, 20])), rtol=1e-9)
    with pytest.raises(gs.PatternMismatchError):
        gs.analyze(A, schur=mask).factor(sp.eye_array(30))


def test_refactor():
    A, b = near_definite(40), rhs(40)
    factor = gs.analyze(A, schur=[1, 2, 3]).factor(A.data)
    factor.refactor(3 * A.data)
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)))
    np.testing.assert_allclose(x, np.linalg.solve(3 * A.toarray(), b), rtol=1e-9)
    before = factor.schur.copy()
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(np.full(A.nnz, np.nan))
    with pytest.raises(RuntimeError, match="exactly singular"):
        factor.refactor(0 * A.data)
    np.testing.assert_array_equal(factor.schur, before)
    np.testing.assert_allclose(factor.expand(np.linalg.solve(factor.schur, factor.condense(b))), x)


def test_no_interface_and_complex_right_hand_sides():
    A, b = near_definite(30), rhs(30, "D")
    factor = gs.analyze(A, schur=[]).factor(A.data)
    assert factor.schur.shape == (0, 0) and factor.condense(b).shape == (0,)
    factor = gs.analyze(A, schur=[0, 5]).factor(A.data)
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)), b)
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-9)


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([1, 1], ValueError, "index 1 occurs more than once"),
        ([20], ValueError, r"numbers in range\(20\)"),
        ([-1], ValueError, r"numbers in range\(20\)"),
        ([[1]], ValueError, r"numbers in range\(20\)"),
        ([0.5], TypeError, "must be integers or a mask"),
        (np.ones(20, bool), ValueError, "all unknowns"),
    ],
)
def test_other_indices_are_refused(indices, error, message):
    with pytest.raises(error, match=message):
        gs.analyze(random_matrix(20), schur=indices)


def test_what_cannot_be_expanded():
    A = near_definite(20)
    factor = gs.analyze(A, schur=[1]).factor(A.data)
    with pytest.raises(RuntimeError, match="condense a right-hand side first"):
        factor.expand(np.ones(1))
    factor.condense(np.ones(20))
    with pytest.raises(ValueError, match=r"y must have shape \(1,\)"):
        factor.expand(np.ones(2))
    with ThreadPoolExecutor(1) as other, pytest.raises(RuntimeError, match="condense a right-hand side first"):
        other.submit(factor.expand, np.ones(1)).result()  # that thread has condensed nothing
