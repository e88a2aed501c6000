"""Solves with A + U V^H by a factor of A."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.small_matrices import EPS, random_matrix, rhs


def low_rank(n, k, dtype="d", seed=3):
    return rhs(n, dtype, (k,), seed), rhs(n, dtype, (k,), seed + 1)


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_solves(dtype, trans, rank):
    A, b = random_matrix(50, dtype), rhs(50, dtype)
    U, V = low_rank(50, rank, dtype)
    updated = gs.splu(A).updated(U, V)
    M = A.toarray() + U @ V.conj().T
    op = {"N": M, "T": M.T, "H": M.conj().T}[trans]
    x = updated.solve(b, trans)
    assert (x.dtype, updated.rank, updated.shape) == (np.dtype(dtype), rank, (50, 50))
    assert np.abs(b - op @ x).max() < 100 * EPS[dtype] * (np.abs(op).sum(axis=1).max() * np.abs(x).max() + 1)
    assert updated.backward_error < 100 * EPS[dtype]


def test_right_hand_sides_and_vectors_of_every_kind():
    A, (U, V) = random_matrix(40), low_rank(40, 1)
    lu, M = gs.splu(A), A.toarray() + U @ V.T
    for u, v in [(U, V), (U[:, 0], V[:, 0]), (sp.csc_array(U), sp.coo_array(V)), (U.tolist(), V)]:
        np.testing.assert_allclose(lu.updated(u, v).solve(rhs(40)), np.linalg.solve(M, rhs(40)), rtol=1e-9)
    many, C = rhs(40, "D", (3,)), rhs(40, "D", (2,), 3)
    updated = lu.updated(C, 1j * C)
    np.testing.assert_allclose(updated.slogdet(), np.linalg.slogdet(A.toarray() - 1j * C @ C.conj().T), rtol=1e-10)
    x, large = lu.updated(1e8 * U, V).solve(rhs(40)), A.toarray() + 1e8 * U @ V.T  # is no reason to refuse
    assert np.abs(large @ x - rhs(40)).max() < 100 * EPS["d"] * (np.abs(large).sum(axis=1).max() * np.abs(x).max())
    np.testing.assert_allclose(lu.updated(U, V).solve(many), np.linalg.solve(M, many), rtol=1e-9)
    with pytest.raises(ValueError, match="b is of incompatible size"):
        lu.updated(U, V).solve(np.ones(39))
    with pytest.raises(ValueError, match=r"U must have shape \(40,\) or \(40, k\)"):
        lu.updated(np.ones(39))
    with pytest.raises(ValueError, match="the same number of columns"):
        lu.updated(np.ones((40, 2)), np.ones(40))
    with pytest.raises(TypeError, match="updated: U and V are float64, and the factor float32"):
        gs.splu(A.astype("f")).updated(U)


def test_an_update_that_makes_the_matrix_singular_is_refused():
    A = sp.eye_array(20, format="csc")
    e = np.zeros(20)
    e[3] = 1
    lu = gs.splu(A)
    for scale in (1.0, 1 - 1e-12):
        with pytest.raises(gs.IllConditionedUpdateError, match="factor A") as caught:
            lu.updated(e, -scale * e)
        assert caught.value.rcond < 1e-8 and pickle.loads(pickle.dumps(caught.value)).rcond == caught.value.rcond
    np.testing.assert_allclose(lu.updated(e, -0.5 * e).solve(np.ones(20))[3], 2)


@pytest.mark.parametrize("dtype", [float, complex])
def test_columns_that_are_not_finite_are_refused(dtype):
    lu, bad, good = gs.splu(sp.eye_array(20, format="csc", dtype=dtype)), np.ones(20, dtype), np.ones(20, dtype)
    bad[3] = np.nan
    for columns, name in (((bad, good), "U"), ((good, bad), "V"), ((bad,), "U")):
        with pytest.raises(gs.NonFiniteError, match=f"updated: all values of {name}"):
            lu.updated(*columns)


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", "fD")
def test_an_update_of_a_row_beside_which_A_is_nothing(dtype, trans):
    """What cancels in the steps of Woodbury's formula is as large as the update."""
    A, x = random_matrix(30, dtype), rhs(30, dtype)
    U, V = np.zeros((30, 1), dtype), rhs(30, dtype, (1,), 4)
    U[3] = 4 / EPS[dtype]
    updated, M = gs.splu(A).updated(U, V), A.toarray() + U @ V.conj().T
    op = {"N": M, "T": M.T, "H": M.conj().T}[trans].astype(np.result_type(dtype, "d"))
    b = (op @ x).astype(dtype)
    for _ in range(2):
        found = updated.solve(b, trans)
        rows = np.abs(op) @ np.abs(found) + np.abs(b)
        assert (np.abs(b - op @ found) <= np.sqrt(EPS[dtype]) * rows).all()
        assert updated.backward_error < 100 * EPS[dtype]


@pytest.mark.filterwarnings("always::RuntimeWarning")
@pytest.mark.parametrize("seed", [3, 17, 21, 24, 33, 35])
def test_digits_that_are_lost_are_warned_of(seed, recwarn):
    """A is small beside the update in all rows, and decides the solution in all directions but one."""
    A, U, V = random_matrix(30, "f"), 1e6 * rhs(30, "f", (1,), seed), rhs(30, "f", (1,), seed + 100)
    M = A.toarray() + U.astype("d") @ V.astype("d").T
    b = (M @ rhs(30)).astype("f")
    x = gs.splu(A).updated(U.astype("f"), V).solve(b)
    accurate = np.abs(b - M @ x).max() < 100 * EPS["f"] * (np.abs(M).sum(axis=1).max() * np.abs(x).max())
    assert accurate or "not accurate" in str(recwarn.pop(RuntimeWarning).message)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies(copied):
    A, (U, V) = random_matrix(30), low_rank(30, 2, "D")
    lu = gs.splu(A)
    updated = lu.updated(U, V)
    again = copied(updated)
    assert (again.dtype, again.rank) == (updated.dtype, 2)
    np.testing.assert_allclose(again.solve(np.ones(30, "D")), updated.solve(np.ones(30, "D")), rtol=1e-9)
    lu.refactor(2 * A.data)
    with pytest.raises(RuntimeError, match="refactored since"):
        copied(updated)
