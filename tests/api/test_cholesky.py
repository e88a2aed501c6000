"""CholeskyFactor: one triangle or both, refactor, what is not positive definite."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, random_matrix, rhs, spd_matrix


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("triangle", [sp.csc_array, sp.tril, sp.triu])
def test_cholesky(dtype, triangle):
    A = spd_matrix(dtype=dtype)
    ch = gs.cholesky(triangle(A))
    for columns in ((), (1,), (7,)):
        b = rhs(50, dtype, columns)
        x = ch.solve(b)
        assert (x.dtype, x.shape) == (b.dtype, b.shape)
        assert backward_error(A, x, b) < 50 * EPS[dtype]
        np.testing.assert_array_equal(ch(b), x)
    for trans, op in (("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, ch.solve(b, trans), b) < 50 * EPS[dtype]
    assert sp.triu(ch.L, 1).nnz == 0
    product = ch.L @ ch.L.conj().T
    assert abs(product - A[ch.perm][:, ch.perm]).max() < 100 * EPS[dtype] * abs(A).max()
    expected = np.linalg.slogdet(A.toarray())
    assert abs(ch.logdet() - expected.logabsdet) < 1e4 * EPS[dtype]
    assert ch.slogdet().sign == 1
    exact = 1 / np.linalg.cond(A.toarray(), 1)
    assert exact * 0.98 <= ch.rcond() <= exact * 10


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize(
    "triangle", [sp.csc_array, sp.tril, sp.triu, lambda A: sp.tril(A).tocsr(), lambda A: sp.triu(A).tocoo()]
)
def test_cholesky_refactor(dtype, triangle):
    A, b = spd_matrix(dtype=dtype), rhs(50, dtype)
    part = triangle(A)
    ch = gs.cholesky(part)
    D = sp.diags_array(np.linspace(1, 3, 50)).astype(A.dtype)
    new = canonical(D @ A @ D)
    scaled = triangle(new)
    assert scaled.nnz == part.nnz
    for values in (scaled.data, scaled, sp.tril(new), new):
        ch.refactor(part.data)
        ch.refactor(values)
        assert backward_error(new, ch.solve(b), b) < 50 * EPS["d"]
        assert abs(ch.L @ ch.L.conj().T - new[ch.perm][:, ch.perm]).max() < 100 * EPS["d"] * abs(new).max()


def test_cholesky_says_which_column():
    A = spd_matrix()
    A[23, 23] = -1
    with pytest.raises(gs.NotPositiveDefiniteError, match="column 23 of A has pivot") as caught:
        gs.cholesky(A, ordering=np.roll(np.arange(50), -24))
    assert caught.value.column == 23
    assert caught.value.pivot < 0
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.parametrize("how", ["indefinite", "NaN", "other pattern", "not Hermitian"])
def test_cholesky_refactor_leaves_the_old_factor(how):
    A, b = spd_matrix(), rhs(50)
    ch = gs.cholesky(A)
    before = ch.solve(b)
    bad, kind = A.copy(), gs.NonFiniteError
    if how == "indefinite":
        bad.data, kind = -A.data, gs.NotPositiveDefiniteError
    elif how == "NaN":
        bad.data[5] = np.nan
    elif how == "other pattern":
        bad, kind = sp.eye_array(50, format="csc"), gs.PatternMismatchError
    else:
        bad.data[1], kind = bad.data[1] + 1, gs.NotHermitianError
    with pytest.raises(kind):
        ch.refactor(bad)
    np.testing.assert_array_equal(ch.solve(b), before)
    ch.refactor(A.data)
    np.testing.assert_array_equal(ch.solve(b), before)


def test_cholesky_of_an_unsymmetric_matrix():
    with pytest.raises(gs.NotHermitianError, match="not Hermitian; pass one triangle only"):
        gs.cholesky(random_matrix())


def test_symbolic_of_cholesky():
    A, b = spd_matrix(), rhs(50)
    sym = pickle.loads(pickle.dumps(gs.analyze(sp.tril(A), cholesky=True)))
    ch = sym.factor(sp.tril(A).data * 2)
    assert isinstance(ch, gs.CholeskyFactor)
    assert backward_error(2 * A, ch.solve(b), b) < 50 * EPS["d"]
