"""Updates and downdates of Cholesky factors, and solves with A + U V^H by a factor of A."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix


def definite(dtype="d", size=12):
    """A Hermitian finite element matrix: entries where any two unknowns of an element meet."""
    A = gallery.elasticity(size // 4, size // 4, size // 4)
    return phased(A / abs(A).max(), dtype, hermitian=True)


def fitting(A, k, seed=0, scale=0.5):
    """k columns whose entries are pairwise in the pattern of `A`."""
    rng, columns = np.random.default_rng(seed), []
    pattern = abs(A).tocsr()
    for _ in range(k):
        clique = [int(rng.integers(A.shape[0]))]
        for j in rng.permutation(pattern[[clique[0]]].indices):
            if len(clique) < 6 and all(pattern[i, j] for i in clique) and j not in clique:
                clique.append(int(j))
        column = np.zeros(A.shape[0], A.dtype)
        column[clique] = scale * rhs(len(clique), A.dtype.char, seed=int(rng.integers(99)))
        columns.append(column)
    return np.array(columns).T.reshape(A.shape[0], k)


def check(ch, M, dtype):
    """That the factor is one of M, in all that it answers."""
    n, b = len(M), rhs(len(M), dtype, (2,))
    x = ch.solve(b)
    assert np.abs(M @ x - b).max() < 200 * EPS[dtype] * (np.abs(M).sum(axis=1).max() * np.abs(x).max() + 5)
    L, perm = ch.L.toarray(), ch.perm
    assert np.abs(L @ L.conj().T - M[np.ix_(perm, perm)]).max() < n * EPS[dtype] * np.abs(M).max()
    np.testing.assert_allclose(ch.logdet(), np.linalg.slogdet(M)[1], rtol=1e4 * EPS[dtype], atol=1e4 * EPS[dtype])
    x = copy.copy(ch).solve(b)  # which factors the values held
    assert np.abs(M @ x - b).max() < 200 * EPS[dtype] * (np.abs(M).sum(axis=1).max() * np.abs(x).max() + 5)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("k", [1, 3, 11])
def test_changes_inside_of_the_pattern(dtype, k):
    A = definite(dtype)
    C = fitting(A, k)
    ch = gs.cholesky(A)
    M = A.toarray()
    before = gs.factorization_count()
    ch.update(C)
    check(ch, M + C @ C.conj().T, dtype)
    ch.downdate(sp.csc_array(C[:, :1]))
    check(ch, M + C[:, 1:] @ C[:, 1:].conj().T, dtype)
    ch.downdate(C[:, 1:] if k > 1 else np.zeros(len(M), dtype))
    check(ch, M, dtype)
    assert ch.stats.n_updated == 3 and gs.factorization_count() == before + 3  # the copies of `check`


def test_columns_are_changed_and_not_all_factored_again(monkeypatch):
    """By the path: what is not on it keeps its bits."""
    A = canonical(gallery.poisson(40, 40))
    ch = gs.cholesky(A, engine="cpu")
    before, place = ch.L, int(np.flatnonzero(ch.perm == 0)[0])
    c = np.zeros(1600)
    c[0] = 0.5
    ch.update(c)
    changed = np.flatnonzero(np.abs(ch.L - before).tocsc().max(axis=0).toarray())
    assert place in changed and 0 < changed.size < 400
    assert ch.stats.n_refactor == 0


@pytest.mark.parametrize("dtype", "dD")
def test_changes_outside_of_the_pattern(dtype):
    A = spd_matrix(40, dtype)
    ch = gs.cholesky(A)
    assert (A.toarray() == 0).any()
    C = np.zeros((40, 2), dtype)
    C[[1, 20, 33], 0] = rhs(3, dtype)
    C[[0, 39], 1] = rhs(2, dtype)
    M = A.toarray()
    ch.update(C)
    check(ch, M + C @ C.conj().T, dtype)
    before = gs.factorization_count()
    ch.downdate(C)
    assert gs.factorization_count() == before  # it has the entries now
    check(ch, M, dtype)
    for one in (ch, pickle.loads(pickle.dumps(ch))):
        one.refactor(2 * A.data)
        check(one, 2 * M, dtype)
        one.refactor(A)
        check(one, M, dtype)
        with pytest.raises(gs.NonFiniteError):
            one.refactor(np.full(A.nnz, np.nan))
        with pytest.raises(gs.PatternMismatchError):
            one.refactor(sp.eye_array(40))
        check(one, M, dtype)


def test_one_triangle_and_vectors_of_every_kind():
    A = spd_matrix(30)
    M, c = A.toarray(), rhs(30)
    twice = sp.csc_array((np.r_[c / 4, 3 * c / 4, 0 * c], np.r_[:30, :30, :30], [0, 90]), shape=(30, 1))
    for given in (c, c[:, None], sp.csc_array(c[:, None]), sp.coo_array(c[:, None]), c.tolist(), twice):
        ch = gs.cholesky(sp.tril(A))
        ch.update(given)
        check(ch, M + np.outer(c, c), "d")
    np.testing.assert_array_equal(twice.data[:30], c / 4)  # as it was
    ch.update(np.zeros((30, 0)))
    check(ch, M + np.outer(c, c), "d")
    with pytest.raises(gs.NotPositiveDefiniteError):
        ch.refactor(-sp.tril(A).data)
    check(ch, M + np.outer(c, c), "d")
    updated = ch.updated(c)
    ch.update(c)
    with pytest.raises(RuntimeError, match="refactored since"):
        updated.solve(c)
    ch.refactor(sp.tril(A).data)
    for change in (ch.update, ch.downdate):
        with pytest.raises(gs.NonFiniteError):
            change(1e200 * c)
        with pytest.raises(ValueError, match=r"C must have shape \(30,\) or \(30, k\)"):
            change(np.ones(29))
    with pytest.raises(MemoryError, match="solve with updated"):
        gs.cholesky(sp.eye_array(30000)).update(np.ones(30000))
    check(ch, M, "d")
    empty = gs.cholesky(sp.csc_array((0, 0)))
    for shape in ((0,), (0, 2), (0, 0)):
        empty.update(np.ones(shape))
        empty.downdate(np.ones(shape))
    assert empty.logdet() == 0


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("inside", [False, True])
def test_a_downdate_that_is_not_definite_is_refused_and_the_factor_stays(dtype, inside):
    A = definite(dtype)
    ch = gs.cholesky(A)
    C = fitting(A, 3, scale=0.1)
    if inside:
        C[:, 1] *= 1000
    else:
        C[[0, len(C) // 2, -1], 1] = 50
    b, M = rhs(len(C), dtype), A.toarray()
    x, version = ch.solve(b), ch.version
    with pytest.raises(gs.NotPositiveDefiniteError):
        ch.downdate(C)
    np.testing.assert_array_equal(ch.solve(b), x)
    check(ch, M, dtype)
    ch.update(C)
    check(ch, M + C @ C.conj().T, dtype)
    assert ch.version > version


def test_a_downdate_that_leaves_a_singular_matrix_or_few_digits():
    """Whether a factorization of the values finds them definite decides."""
    A = canonical(gallery.poisson(20, 20))
    e = np.zeros(400)
    e[7] = 1.0
    schur = 1 / np.linalg.inv(A.toarray())[7, 7]
    for left, definite in ((0.0, False), (-1e-10, False), (1e-10, True), (1e-4, True)):
        ch = gs.cholesky(A)
        c = np.sqrt(schur * (1 - left)) * e
        if left == 0.0:
            c *= 1 + 1e-15
        try:
            ch.downdate(c)
        except gs.NotPositiveDefiniteError:
            assert not definite
            check(ch, A.toarray(), "d")
        else:
            assert definite
            b = rhs(400)
            x = ch.solve(b)
            M = A.toarray() - np.outer(c, c)
            assert np.abs(M @ x - b).max() < 1e-13 * (8 * np.abs(x).max() + 5)


def low_rank(n, k, dtype="d", seed=3):
    return rhs(n, dtype, (k,), seed), rhs(n, dtype, (k,), seed + 1)


def test_right_hand_sides_and_vectors_of_every_kind():
    A, (U, V) = random_matrix(40), low_rank(40, 1)
    lu, M = gs.splu(A), A.toarray() + U @ V.T
    for u, v in [(U, V), (U[:, 0], V[:, 0]), (sp.csc_array(U), sp.coo_array(V)), (U.tolist(), V)]:
        np.testing.assert_allclose(lu.updated(u, v).solve(rhs(40)), np.linalg.solve(M, rhs(40)), rtol=1e-9)
    np.testing.assert_array_equal(lu.updated(U[:, :0]).solve(rhs(40)), lu.solve(rhs(40)))
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
