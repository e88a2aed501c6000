"""LDL^T fronts: pivots of order 1 and 2 beside dense references, postponed and perturbed ones, teams, the ladder."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.calibration import for_core
from support.analyses import factor_canonical
from support.small_matrices import EPS, canonical, rhs, whole


def core_factor(A, hermitian=True, **options):
    """The core's factor of a matrix with both triangles."""
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    symbolic = _core.analyze(ptr, ind, A.data, for_core(), ldlt=True, **options)
    return factor_canonical(
        symbolic, _core.canonical("csc", A.shape[0], ptr, ind.astype(np.int64)), A.data, hermitian=hermitian
    )


def parts(factor, n, hermitian=True):
    ptr, ind, values = factor.lower()
    d, e = factor.pivots()
    L = sp.csc_array((values, ind, ptr), shape=(n, n)).toarray()
    above = e.conj() if hermitian else e
    return L, np.diag(d) + np.diag(e[:-1], -1) + np.diag(above[:-1], 1), L.conj().T if hermitian else L.T


def dense(n, dtype, hermitian=True, seed=0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    if np.dtype(dtype).kind == "c":
        B = B + 1j * rng.standard_normal((n, n))
    return (B + (B.conj() if hermitian else B).T).astype(dtype)


def check_product(A, factor, hermitian=True, most=100.0):
    n = A.shape[0]
    L, D, upper = parts(factor, n, hermitian)
    perm = factor.col_perm
    difference = abs(L @ D @ upper - A.toarray()[np.ix_(perm, perm)]).max()
    assert difference <= most * n * EPS[A.dtype.char] * abs(A).max()
    assert np.array_equal(factor.row_perm, perm)
    return L


@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), *[(c, h) for c in "FD" for h in (0, 1)]])
@pytest.mark.parametrize("n", [*range(1, 10), 17, 32, 33, 65, 130, 300])
def test_one_front(n, dtype, hermitian):
    A = whole(dense(n, dtype, hermitian))
    factor = core_factor(A, bool(hermitian))
    L = check_product(A, factor, hermitian)
    assert abs(L).max() < 200  # 100 in modulus or beside it below a block
    if hermitian:
        eigenvalues = np.linalg.eigvalsh(A.toarray())
        assert factor.inertia()[:4] == (True, True, np.sum(eigenvalues > 0), np.sum(eigenvalues < 0))


@pytest.mark.parametrize("n", [2, 4, 8, 20, 40, 120])
@pytest.mark.parametrize("dtype", "dD")
def test_zero_diagonal(n, dtype):
    B = dense(n, dtype)
    np.fill_diagonal(B, 0)
    A = whole(B)
    factor = core_factor(A)
    check_product(A, factor)
    _, e = factor.pivots()
    assert np.count_nonzero(e) > 0 and factor.stats()["n_perturbed"] == 0


def refactored_front(B):
    """LDL^T of a dense matrix in its own order, by an analysis of another that neither pairs columns nor scales."""
    n = B.shape[0]
    factor = core_factor(whole(np.eye(n)), ordering="natural")
    assert factor.refactor(B.ravel(order="F")) == -1
    assert factor.stats()["n_reanalyzed"] == 0 and factor.method == "front"
    return factor


@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), *[(c, h) for c in "FD" for h in (0, 1)]])
@pytest.mark.parametrize("n", range(2, 9))
def test_neighbours_are_pivots_of_order_two(n, dtype, hermitian):
    """In fronts of few columns, where they stand, whatever is before and behind them."""
    for k in range(n - 1):
        B = 0.05 * dense(n, dtype, hermitian) + 3 * np.eye(n, dtype=dtype)
        B[k : k + 2, k : k + 2] = [[0, 2], [2, 0]]
        factor = core_factor(whole(np.eye(n, dtype=dtype)), bool(hermitian), ordering="natural")
        assert factor.refactor(B.ravel(order="F")) == -1
        check_product(whole(B), factor, hermitian, 10)
        assert np.flatnonzero(factor.pivots()[1]).tolist() == [k]
        assert np.array_equal(factor.col_perm, np.arange(n))


@pytest.mark.parametrize("m", [3, 10, 40, 150])
def test_columns_are_postponed_until_they_have_partners(m):
    """Two zero blocks on the diagonal of one front, wider than the blocks in which pivots are sought."""
    B = np.random.default_rng(m).standard_normal((m, m)) + 3 * np.eye(m)
    A = np.block([[np.zeros((m, m)), B], [B.T, np.zeros((m, m))]])
    factor = refactored_front(A)
    check_product(whole(A), factor, most=1e4)
    assert factor.inertia()[:4] == (True, True, m, m)
    assert factor.stats()["n_perturbed"] == 0


def test_columns_are_postponed_where_multipliers_would_be_large():
    """Pivots of a first block that are small beside the columns behind it, and no longer once those are done."""
    rng = np.random.default_rng(0)
    C = rng.uniform(-0.9, 0.9, (40, 40))
    A = np.block([[1e-3 * np.eye(40), C.T], [C, np.diag(rng.choice([-10.0, 10.0], 40))]])
    factor = refactored_front(A)
    check_product(whole(A), factor)
    assert factor.stats()["max_multiplier"] <= 100
    eigenvalues = np.linalg.eigvalsh(A)
    assert factor.inertia()[:4] == (True, True, np.sum(eigenvalues > 0), np.sum(eigenvalues < 0))


def test_all_columns_of_a_front_are_delayed():
    """Pairs of columns without pivots, coupled to a few columns of the front above: that must not get lost."""
    rng, pairs, root = np.random.default_rng(0), 8, 60
    n = 2 * pairs + root
    B = np.zeros((n, n))
    B[2 * pairs :, 2 * pairs :] = rng.standard_normal((root, root))
    for k in range(pairs):
        B[2 * pairs + rng.permutation(root)[:3], 2 * k : 2 * k + 2] = rng.standard_normal((3, 2))
    B = B + B.T
    stored = sp.coo_array((B != 0) | (block_diag(*[np.ones((2, 2))] * pairs, np.eye(root)) != 0))
    A = sp.csc_array((B[stored.row, stored.col], (stored.row, stored.col)), shape=(n, n))
    good = sp.csc_array((np.where(stored.row == stored.col, 1.0, 0.0), (stored.row, stored.col)), shape=(n, n))
    factor = gs.analyze(good, ldlt=True, ordering="natural").factor(A)
    b = rhs(n)
    assert backward_error(A, factor.solve(b), b) < 10 * EPS["d"]
    assert factor.stats.n_delayed >= 2 * pairs and factor.stats.method == "front"
    eigenvalues = np.linalg.eigvalsh(B)
    assert factor.inertia() == (np.sum(eigenvalues > 0), np.sum(eigenvalues < 0), 0)


def test_perturbed_pivots_are_certified():
    """Values with many zero pivots on an analysis that was made for good ones."""
    n, m = 60, 30
    A = gallery.kkt(n, m, barrier=1.0)
    K = sp.csc_array(A + sp.diags_array(np.r_[np.full(n, 30.0), np.full(m, -30.0)]))
    factor = gs.ldlt(canonical(K))
    saddle = K.copy()
    columns = np.repeat(np.arange(n + m), np.diff(K.indptr))
    saddle.data[(K.indices == columns) & (columns >= n)] = 0
    factor.refactor(saddle.data)
    b = rhs(n + m)
    assert backward_error(saddle, factor.solve(b), b) < 10 * EPS["d"]
    assert factor.inertia() == (n, m, 0)
    L, D, perm = factor.L, factor.D, factor.perm
    assert abs(L @ D @ L.T - saddle[perm][:, perm]).max() < 1e-6 * abs(saddle).max()


@pytest.mark.parametrize("power", [40, 200])
def test_bad_scales(power):
    A = gallery.kkt(200, 80)
    scale = sp.diags_array(2.0 ** np.random.default_rng(1).integers(-power, power, 280))
    B = canonical(scale @ A @ scale)
    factor = gs.ldlt(B)
    assert factor.inertia() == (200, 80, 0)
    b = B @ np.ones(280)
    assert backward_error(B, factor.solve(b), b) < 10 * EPS["d"]


def test_the_same_bits_on_any_number_of_threads(threads):
    A = gallery.stokes(11, 11, 11)
    b, found = rhs(A.shape[0]), []
    for count in (1, 2, 3):
        threads(count)
        factor = core_factor(A)
        found.append((factor.solve(b), *factor.pivots(), factor.col_perm))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_pairs_stay_in_one_front():
    A = gallery.kkt(300, 120)
    symbolic = _core.analyze(A.indptr.astype(np.int64), A.indices, A.data, for_core(), ldlt=True)
    place = np.empty(420, int)
    place[symbolic.col_perm] = np.repeat(np.arange(symbolic.nsuper), np.diff(symbolic.super_ptr))
    beside = [set(place[A.indices[A.indptr[j] : A.indptr[j + 1]]]) for j in range(300, 420)]
    assert all(place[300 + k] in beside[k] for k in range(120))
    np.testing.assert_array_equal(symbolic.row_perm, symbolic.col_perm)
    np.testing.assert_array_equal(symbolic.row_scale, symbolic.col_scale)


def test_good_diagonals_are_not_matched():
    A = gallery.helmholtz(20, 20, waves=1.5)
    symbolic = _core.analyze(A.indptr.astype(np.int64), A.indices, A.data, for_core(), ldlt=True)
    np.testing.assert_array_equal(symbolic.row_scale, 0.5)


def test_where_no_symmetric_pivots_help_lu_does():
    """Values of which one triangle is another matrix's, which only the core can be given: solves with what was factored
    are found wrong."""
    A, b = gallery.kkt(60, 20), rhs(80)
    factor = gs.ldlt(A)
    lopsided = sp.csc_array(sp.tril(A) + 3 * sp.triu(A, 1))
    factor._core.refactor(lopsided.data, None, True)
    assert backward_error(lopsided, factor.solve(b), b) < 10 * EPS["d"]
    assert factor.stats.method == "column" and factor.stats.n_repivoted > 0
    assert "column LU" in factor.explain()
    for ask in (lambda: factor.L, lambda: factor.D, lambda: factor.perm):
        with pytest.raises(gs.NoSymmetricFactorError, match="LU with partial pivoting"):
            ask()
    assert abs(factor.slogdet().logabsdet - np.linalg.slogdet(lopsided.toarray()).logabsdet) < 1e-9
    factor.refactor(A.data)
    assert factor.stats.method == "front" and factor.inertia() == (60, 20, 0)


@pytest.mark.parametrize("ldlt", [False, True])
def test_memory_does_not_grow_with_refactorizations(ldlt, threads):
    """Blocks that one thread takes and another gives back."""
    A = gallery.kkt(6000, 2400, barrier=1e-4)
    threads(2)
    factor = gs.analyze(A, ldlt=ldlt, engine="cpu").factor(A.data)
    assert factor.stats.method == "front"
    sizes = []
    for _ in range(400):
        factor.refactor(A.data)
        sizes.append(factor.stats.bytes)
    assert max(sizes) < 1.3 * max(sizes[:100])
