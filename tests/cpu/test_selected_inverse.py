"""Entries of the inverse, its diagonal and traces beside NumPy's dense inverse."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.factors import inverse
from support.analyses import analyze, factor_canonical
from support.small_matrices import EPS, canonical, phased, random_matrix


def core_factor(A, method, analysis=None, **options):
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    symbolic = analyze(ptr, ind.astype(np.int32), A.data, method=method, **(analysis or {}))
    return factor_canonical(symbolic, _core.canonical("csc", A.shape[0], ptr, ind), A.data, **options)


def dense_inverse(A):
    return np.linalg.inv(A.toarray().astype("D" if A.dtype.kind == "c" else "d"))


def close(found, expected, dtype, factor=200):
    return abs(found - expected).max() <= factor * EPS[np.dtype(dtype).char] * abs(expected).max()


def stored(A):
    """Ones where A has entries, zeros that are stored among them."""
    return sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape).toarray()


def on_pattern(P, A=None):
    """Entry (j, i) of the inverse of A, or of P, for each canonical entry (i, j) of P."""
    columns = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    return dense_inverse(P if A is None else A)[columns, P.indices]


def block_triangular(dtype="d", seed=0):
    """Diagonal blocks of several sizes with entries above them, rows and columns in disorder."""
    rng = np.random.default_rng(seed)
    A = sp.block_diag([random_matrix(n, dtype, seed + n, 0.2) for n in (1, 25, 1, 1, 14, 30)], format="csc")
    n = A.shape[0]
    blocks = np.repeat(np.arange(6), (1, 25, 1, 1, 14, 30))
    above = sp.random_array((n, n), density=0.05, rng=rng, format="coo").astype(A.dtype)
    above.data *= blocks[above.row] < blocks[above.col]
    return canonical((A + above)[rng.permutation(n)][:, rng.permutation(n)])


MATRICES = {
    "unsymmetric": lambda dtype: random_matrix(90, dtype, density=0.05),
    "dense": lambda dtype: random_matrix(150, dtype, density=0.8),
    "block triangular": block_triangular,
    "mesh": lambda dtype: phased(gallery.poisson(13, 17), dtype, hermitian=True),
    "elasticity": lambda dtype: phased(gallery.elasticity(4, 3, 3), dtype, hermitian=True),
}


@pytest.mark.parametrize("method", ["column", "front"])
@pytest.mark.parametrize(("dtype", "largest"), [("f", 50), ("d", 450), ("F", 50), ("D", 450)])
def test_rows_and_columns_of_all_sizes(method, dtype, largest):
    """Scales of entries are out of the range of products of two of them."""
    A = random_matrix(60, dtype, density=0.1)
    columns = np.repeat(np.arange(60), np.diff(A.indptr))
    powers = np.random.default_rng(0).integers(-largest, largest, (2, 60))
    scale = 2.0 ** (powers[0, A.indices] + powers[1, columns])
    scaled = A.copy()
    scaled.data = (A.data * scale).astype(dtype)
    lu = core_factor(scaled, method)
    assert close(lu.inverse_on_pattern() * scale, on_pattern(A), dtype)
    assert lu.stats()["n_repivoted"] == 0


@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("density", [0, 0.02, 0.9])
def test_trace_inverse(dtype, density):
    A = random_matrix(90, dtype, density=0.05)
    lu = gs.splu(A)
    C = sp.random_array(A.shape, density=density, rng=np.random.default_rng(1), format="coo")
    for B in (A, 2 * A.T, C, C.tocsr() * 1j, C.toarray()):
        dense = B.toarray() if sp.issparse(B) else B
        expected = np.trace(dense_inverse(A) @ dense)
        size = np.sum(abs(dense_inverse(A)) * abs(dense.T))
        assert abs(lu.trace_inverse(B) - expected) <= 100 * EPS[dtype] * size
    with pytest.raises(ValueError, match=r"B has shape \(3, 3\)"):
        lu.trace_inverse(sp.eye_array(3))


@pytest.mark.parametrize("kind", [gs.splu, gs.cholesky])
@pytest.mark.parametrize("name", ["poisson:120x120", "elast:9x9x9"])
def test_entries_do_not_depend_on_the_number_of_threads(kind, name, threads):
    A = gallery.named(name)
    factor = kind(A)
    assert factor.stats.method == "front"
    entries = []
    for count in (1, 2, 3):
        threads(count)
        entries.append(factor._core.inverse_on_pattern())
    np.testing.assert_array_equal(entries[0], entries[1])
    np.testing.assert_array_equal(entries[0], entries[2])
    at = A.nnz // 2
    column = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))[at]
    unit = np.zeros(A.shape[0])
    unit[A.indices[at]] = 1
    assert entries[0][at] == pytest.approx(factor.solve(unit)[column], rel=1e-10)


def test_perturbed_pivots_are_chosen_anew():
    """Solves are refined; the entries of the inverse of a perturbed matrix cannot be."""
    A = sp.lil_array(gallery.poisson(8, 8))
    A[[2, 27, 43], [2, 27, 43]] = 1e-10
    lu = core_factor(canonical(A), "front", {"matching": False, "ordering": "amd"})
    assert lu.method == "front" and lu.stats()["n_perturbed"] > 0
    assert close(lu.inverse_on_pattern(), on_pattern(canonical(A)), "d")
    assert lu.method == "front" and lu.stats()["n_repivoted"] == 1


def test_a_few_that_are_missed_are_solved_for():
    """Where one front has large multipliers: another factorization takes 20 s."""
    A = gallery.helmholtz(300, 300)
    factor = gs.analyze(A, engine="cpu").factor(A.data)
    assert factor.stats.method == "front" and factor.stats.n_perturbed == 0
    terms = factor.selected_inverse().T.multiply(A).tocsc()
    assert factor.stats.n_repivoted == 0
    for axis in (0, 1):
        missed = abs(1 - terms.sum(axis=axis)) / (1 + abs(terms).sum(axis=axis))
        assert missed.max() < EPS["d"] ** (2 / 3)


def growing(diagonal=1e-9, n=40):
    """Random numbers with a tiny diagonal, for pivots that stay there."""
    A = np.random.default_rng(0).uniform(-1, 1, (n, n))
    A[np.arange(n), np.arange(n)] *= diagonal
    return sp.csc_array(A)


NATURAL = {"matching": False, "ordering": "natural"}


@pytest.mark.parametrize("diagonal", [1e-7, 1e-9])
def test_pivots_that_grew_are_chosen_anew(diagonal):
    A = growing(diagonal)
    lu = core_factor(A, "column", NATURAL, pivot_threshold=0.0)
    before = lu.stats()
    assert before["max_multiplier"] > 0.1 / diagonal
    assert close(lu.inverse_on_pattern(), on_pattern(A), "d")
    assert lu.stats() == {**before, "n_repivoted": before["n_repivoted"] + 1}  # no solves, and the factor stays


@pytest.mark.parametrize("dtype", "fdFD")
def test_entries_beside_small_ones_of_the_matrix(dtype):
    """Large multipliers spoil them, and the ones do not tell."""
    small = EPS[dtype] ** 0.6
    A = sp.csc_array(np.array([[4, 1], [1, 4]], dtype))
    B = sp.csc_array(np.array([[3 * small, 1], [1.1, 7 * small]], dtype))
    lu = gs.splu(A, diag_pivot_thresh=0.0)
    lu.refactor(B.data)
    assert lu.stats["max_multiplier"] > 0.1 / small
    assert close(lu.selected_inverse().toarray(), dense_inverse(B), dtype, 10)


def test_rows_that_a_front_has_exchanged():
    A = canonical(sp.kron(gallery.poisson(6, 6), np.ones((4, 4))))
    A.data = np.random.default_rng(0).standard_normal(A.nnz)
    lu = core_factor(A, "front", {"matching": False})
    before = lu.stats()
    assert lu.method == "front" and before["n_off_diagonal"] > 50
    assert close(lu.inverse_on_pattern(), on_pattern(A), "d", 1e4)
    assert lu.stats() == before


def test_pivots_that_must_stay_leave_solves():
    A = growing()
    lu = core_factor(A, "column", NATURAL, pivot_threshold=0.0, pivoting="static")
    assert lu.stats()["max_multiplier"] > 1e8
    assert close(lu.inverse_on_pattern(), on_pattern(A), "d", 1e4)


def test_entries_that_stay_wrong_are_said_to_be():
    A = growing(1e-14)
    lu = core_factor(A, "column", NATURAL, pivot_threshold=0.0, pivoting="static")
    with pytest.warns(RuntimeWarning, match="entries of the inverse are not finite, or not accurate"):
        lu.inverse_on_pattern()


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("method", ["column", "front"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_entries_that_are_named(name, method, dtype):
    """All that A has and all that its factors have come with the factor, and nothing else is said to."""
    A = MATRICES[name](dtype)
    lu, n = core_factor(A, method), A.shape[0]
    ptr, ind, _ = lu.inverse_on_factors()
    has = sp.csc_array((np.ones(ind.size), ind, ptr), shape=A.shape).toarray().T > 0
    rng, expected = np.random.default_rng(3), dense_inverse(A)
    asked = [(i.ravel(), j.ravel()) for i, j in (np.indices(A.shape), rng.integers(0, n, (2, 300)))]
    for rows, columns in (*asked, (np.arange(n), np.arange(n)), A.nonzero()):
        entries, missing = lu.inverse_at(rows.astype(np.int32), columns.astype(np.int32))
        given = np.ones(rows.size, bool)
        given[missing] = False
        assert given[has[rows, columns]].all()
        assert abs(entries - expected[rows, columns])[given].max() <= 200 * EPS[dtype] * abs(expected).max()
    for _ in range(2):
        assert lu.method == method and close(lu.inverse_on_pattern(), on_pattern(A), dtype)
        A.data *= np.linspace(1, 1.5, A.nnz).astype(A.real.dtype)
        lu.refactor(A.data)  # compiles nodes of several columns
    assert lu.stats()["n_repivoted"] == 0


@pytest.mark.parametrize("count", [0, 1])
def test_entries_far_from_all_others_are_not_computed(count):
    A = sp.block_diag([gallery.poisson(20, 20)] * 2, format="csc")
    lu = core_factor(A, "front", {"matching": False})
    far = np.full(count, 799, np.int32)
    entries, missing = lu.inverse_at(far, 0 * far)
    assert (entries == 0).all() and missing.tolist() == list(range(count))
    with pytest.raises(ValueError, match="800"):
        lu.inverse_at(np.array([0], np.int32), np.array([800], np.int32))
    with pytest.raises(ValueError, match="columns has 2 entries"):
        lu.inverse_at(np.array([0], np.int32), np.array([0, 1], np.int32))


@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("dtype", "fdFD")
def test_diagonal_of_saddle_points_comes_with_the_factor(dtype, hermitian):
    """Symmetric factors have places for it, whether or not A has."""
    B = (sp.random_array((400, 120), density=0.02, rng=np.random.default_rng(0)) + sp.eye_array(400, 120)).astype(dtype)
    if B.dtype.kind == "c":
        B.data *= np.exp(1j * np.arange(B.nnz))
    H = phased(gallery.poisson(20, 20), dtype, hermitian)
    A = canonical(sp.block_array([[H, B], [B.conj().T if hermitian else B.T, None]]))
    factor = gs.ldlt(A, hermitian=hermitian)
    before = gs.factorization_count()
    diagonal = factor.inverse_diagonal()
    assert gs.factorization_count() == before
    assert diagonal.dtype == A.dtype
    assert close(diagonal, dense_inverse(A).diagonal(), dtype, 2000)
    assert factor.stats.n_repivoted == 0


@pytest.mark.parametrize("n_wanted", [5, 300])
def test_entries_that_the_factor_does_not_give(n_wanted):
    """A few are solved for; for many, a matrix with explicit zeros in their places is factored."""
    A = canonical(sp.block_diag([gallery.poisson(20, 20), gallery.poisson(20, 20)]) + 0.1 * sp.eye_array(800, k=400))
    lu = gs.splu(A)
    rows, cols = np.arange(n_wanted), np.arange(n_wanted) * 7 % 400
    wider = inverse.wider_factor(lu, rows, cols)
    assert (wider is None) == (n_wanted == 5)
    expected = dense_inverse(A)[rows, cols]
    assert close(inverse.inverse_entries(lu, rows, cols), expected, "d")
    if wider:
        assert close(inverse.wider_entries(*wider, rows, cols), expected, "d")


def test_what_has_no_entries():
    lu = gs.splu(sp.csc_array((0, 0)))
    assert lu.selected_inverse().shape == (0, 0)
    assert lu.inverse_diagonal().shape == (0,)
    assert lu.trace_inverse(sp.csc_array((0, 0))) == 0
    assert gs.splu(sp.eye_array(3, format="csc")).trace_inverse(sp.csc_array((3, 3))) == 0
