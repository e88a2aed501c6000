"""LDL^T by ldlt, and by splu in place of LU: orders, inertia, symmetries, singular matrices, delayed columns."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, phased, rhs


def saddle(dtype="d", hermitian=True, n=40, m=15, seed=0):
    """Zero diagonal block, both signs of eigenvalues, entries of all phases if complex."""
    rng = np.random.default_rng(seed)

    def block(rows, cols):
        B = sp.random_array((rows, cols), density=0.1, rng=rng)
        return B + 1j * sp.random_array((rows, cols), density=0.1, rng=rng) if np.dtype(dtype).kind == "c" else B

    def mirrored(B):
        return B.conj().T if hermitian else B.T

    H, J = block(n, n), block(m, n) + sp.eye_array(m, n)
    H = H + mirrored(H) + sp.diags_array(rng.uniform(-1, 3, n))
    return canonical(sp.block_array([[H, mirrored(J)], [J, None]])).astype(dtype)


def product(factor):
    upper = factor.L.conj().T if factor.hermitian else factor.L.T
    return factor.L @ factor.D @ upper


def counts(A):
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    return int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0)), 0


@pytest.mark.parametrize("triangle", [sp.tril, sp.triu, lambda A: sp.triu(A).tocoo()])
def test_one_triangle_of_a_complex_symmetric_matrix(triangle):
    A, b = saddle("D", False), rhs(55, "D", (7,))
    factor = gs.ldlt(triangle(A), hermitian=False)
    factor.refactor(2 * triangle(A).data)
    assert not factor.hermitian and backward_error(2 * A, factor.solve(b), b) < 50 * EPS["D"]
    assert factor.D.nnz == np.count_nonzero(factor.D.diagonal()) + 2 * sp.tril(factor.D, -1).nnz
    assert abs(product(factor) - 2 * A[factor.perm][:, factor.perm]).max() < 1e-12 * abs(A).max()
    assert "fronts" in factor.explain() and "LDL^T" in repr(factor.symbolic)


NAMES = ["kkt:200x80x1", "kkt:200x80x4", "stokes:9x8", "stokes:4x3x5", "mixed:12x11"]


@pytest.mark.parametrize("name", [*NAMES, "helmholtz:25", "helmholtz:20x30", "helmholtz:9x8x7", "power:12x9"])
def test_gallery(name):
    A = gallery.named(name)
    factor = gs.ldlt(A)
    b = rhs(A.shape[0])
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    scale = 1 / np.sqrt(abs(A).max(axis=0).toarray().ravel())
    assert factor.inertia() == counts(canonical(sp.diags_array(scale) @ A @ sp.diags_array(scale)))


def test_inertia_follows_the_values():
    """A spectrum that is shifted through its eigenvalues, by refactorizations."""
    A = gallery.poisson(8, 7)
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    factor = gs.ldlt(A)
    values = A.data.copy()
    diagonal = A.indices == np.repeat(np.arange(56), np.diff(A.indptr))
    for below in (0, 1, 5, 20, 55):
        shift = (eigenvalues[below - 1] + eigenvalues[below]) / 2 if below else 0.0
        factor.refactor(values - shift * diagonal)
        assert factor.inertia() == (56 - below, below, 0)


def test_nearly_singular_matrices_have_no_inertia():
    A = gallery.poisson(8, 7)
    smallest = np.linalg.eigvalsh(A.toarray())[0]
    factor = gs.ldlt(canonical(A - smallest * (1 + 1e-15) * sp.eye_array(56)))
    assert factor.inertia() is None
    assert "too close to a singular matrix" in factor.inertia_doubt
    factor.refactor(A.data)
    assert factor.inertia() == (56, 0, 0) and factor.inertia_doubt == ""


def in_order(A, factor, order):
    """L D L^H is the matrix in this order, if one is given."""
    assert sp.triu(factor.L, 1).nnz == 0 and sp.tril(factor.D, -2).nnz == sp.triu(factor.D, 2).nnz == 0
    np.testing.assert_array_equal(factor.L.diagonal(), 1)
    assert abs(product(factor) - A[factor.perm][:, factor.perm]).max() < 1e4 * EPS[A.dtype.char] * abs(A).max()
    np.testing.assert_array_equal(factor.perm, np.arange(A.shape[0])[order] if order is not None else factor.perm)


@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), ("D", True), ("D", False)])
def test_orders_of_the_caller(dtype, hermitian):
    """A quasidefinite matrix has an LDL^T in every order. Blocks of order 2 have their columns side by side."""
    grid, J = gallery.poisson(13, 9), sp.random_array((30, 117), density=0.1, rng=3)
    definite = phased(sp.block_array([[grid, J.T], [J, -sp.eye_array(30)]]), dtype, hermitian)
    perm, swapped = np.random.default_rng(8).permutation(147).astype(np.int32), np.array([[0, 2.0], [2, 0]])
    for ordering, order in (("natural", slice(None)), (perm, perm), (np.arange(147)[::-1], slice(None, None, -1))):
        factor = gs.ldlt(definite, ordering=ordering)
        in_order(definite, factor, order)
        factor.refactor(2 * definite.data)
        in_order(2 * definite, factor, order)
    A = phased(gallery.kkt(60, 20), dtype, hermitian)
    for ordering in ("natural", np.arange(80)[::-1]):
        factor = gs.ldlt(A, ordering=ordering)
        in_order(A, factor, None)
        assert sorted(factor.perm.tolist()) == list(range(80)) and (not hermitian or factor.inertia() == (60, 20, 0))
    swap = phased(sp.block_diag([grid, swapped, grid]), dtype, hermitian)
    factor = gs.ldlt(swap, ordering="natural")
    in_order(swap, factor, slice(None))
    assert abs(factor.D[118, 117]) == pytest.approx(2)
    apart = sp.lil_array((6, 6))
    apart.setdiag([0, 3, 4, 5, 0, 6])
    apart[0, 4] = apart[4, 0] = 7
    in_order(canonical(apart), gs.ldlt(canonical(apart), ordering="natural"), [0, 4, 1, 2, 3, 5])


def test_which_symmetry_a_complex_matrix_has():
    symmetric = saddle("D", False)
    assert not gs.ldlt(symmetric).hermitian
    with pytest.raises(gs.NotHermitianError, match="not Hermitian"):
        gs.ldlt(symmetric, hermitian=True)
    with pytest.raises(gs.NotHermitianError, match="the conjugate of"):
        gs.ldlt(sp.tril(symmetric + 1j * sp.eye_array(55)))  # one triangle means Hermitian, and its diagonal is real
    assert gs.ldlt(saddle("D")).hermitian and gs.ldlt(saddle("d").astype("D")).hermitian
    diagonal = gs.ldlt(sp.diags_array(1j * np.arange(1.0, 5), format="csc"))
    assert not diagonal.hermitian
    np.testing.assert_allclose(diagonal.solve(np.ones(4, "D")), -1j / np.arange(1.0, 5))


def test_delayed_columns_are_found_once():
    gs.cache_clear()
    A = gallery.mixed_elements(60, 60)
    options = {"ordering": "nd"}
    assert [gs.ldlt(A, **options).stats.n_delayed > 0 for _ in range(3)] == [True, False, False]
    symbolic = gs.analyze(A, ldlt=True, **options)
    factors = [symbolic.factor(A.data) for _ in range(3)]
    assert [factor.stats.n_delayed > 0 for factor in factors] == [True, False, False]
    assert {factor.inertia() for factor in factors} == {(2 * 60 * 61, 3600, 0)}
    b = rhs(A.shape[0])
    assert max(backward_error(A, factor.solve(b), b) for factor in factors) < 10 * EPS["d"]


N = 600


def kkt(dtype="d", hermitian=True):
    """Pivots of order 2, entries of all phases if complex."""
    K = gallery.kkt(420, 180, barrier=0.1)
    assert K.shape[0] == N
    if np.dtype(dtype).kind != "c":
        return K.astype(dtype)
    turn = np.exp(1j * np.arange(N))
    return canonical(sp.diags_array(turn) @ K @ sp.diags_array(turn.conj() if hermitian else turn)).astype(dtype)


def exactly_hermitian(A):
    """Hermitian to the last bit: products round the two triangles differently."""
    lower = sp.tril(A, -1)
    return canonical(lower + lower.conj().T + sp.diags_array(A.diagonal().real))


def is_solved(lu, A, tolerance=100):
    b = rhs(N, A.dtype, (3,))
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, lu.solve(b, trans), b) < tolerance * EPS[A.dtype.char]


@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), ("F", False), ("D", True), ("D", False)])
def test_facade(dtype, hermitian):
    A = kkt(dtype, hermitian)
    lu = gs.splu(exactly_hermitian(A) if dtype == "D" and hermitian else A)
    assert isinstance(lu, gs.LUFactor) and lu.stats.symmetric and lu.symbolic.kind == "lu"
    is_solved(lu, A)
    L, U = lu.L, lu.U
    assert L is lu.L and U is lu.U
    assert sp.triu(L, 1).nnz == 0 and sp.tril(U, -1).nnz == 0 and np.all(L.diagonal() == 1)
    assert np.any(lu.perm_r != lu.perm_c)  # pivots of order 2 whose rows were exchanged
    assert abs((L @ U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e4 * EPS[dtype] * abs(A).max()
    b = rhs(N, dtype)
    steps = lu.apply_Pc(lu.solve_U(lu.solve_L(lu.apply_Pr(b))))
    assert backward_error(A, steps, b) < 1e4 * EPS[dtype]
    expected = np.linalg.slogdet(A.toarray().astype("D" if np.dtype(dtype).kind == "c" else "d"))
    assert lu.slogdet().logabsdet == pytest.approx(expected.logabsdet, rel=1e3 * EPS[dtype])
    assert abs(lu.slogdet().sign - expected.sign) < 1e4 * EPS[dtype]


@pytest.mark.parametrize(
    "given",
    [
        *({"permc_spec": "NATURAL"}, {"diag_pivot_thresh": 0.9}, {"options": {"SymmetricMode": True}}),
        *({"pivoting": "partial"}, {"pivoting": "static"}, {"ordering": "natural"}, {"refine": "never"}),
    ],
)
def test_who_says_how_lu_has_to_be_made_gets_lu(given):
    lu = gs.splu(kkt(), **given)
    assert not lu.stats.symmetric
    if given.get("pivoting") != "static" and given.get("refine") != "never":
        is_solved(lu, kkt())


SUPERLUS = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 1.0, "relax": 1, "panel_size": 10}


@pytest.mark.parametrize(
    "options", [{}, {"ordering": "amd"}, {"expected_refactors": 20}, {"refine": "always"}, SUPERLUS, {"permc_spec": 3}]
)
def test_others_get_what_is_predicted_to_be_faster(options):
    assert gs.splu(kkt(), **options).stats.symmetric
    assert not gs.splu(gallery.convection_diffusion(9), **options).stats.symmetric
    assert not gs.splu(gallery.poisson(9, 9), **options).stats.symmetric  # columns are predicted to be faster
    options = {name: value for name, value in options.items() if name not in SUPERLUS}
    assert not gs.analyze(kkt(), **options).factor(kkt().data).stats.symmetric  # for any values


def changed(A, by):
    """One entry off the diagonal, relatively."""
    A = A.copy()
    off_diagonal = np.flatnonzero(A.indices != np.repeat(np.arange(N), np.diff(A.indptr)))
    A.data[off_diagonal[-1]] *= 1 + by
    return A


def test_how_symmetric_a_matrix_has_to_be():
    assert gs.splu(changed(kkt(), EPS["d"])).stats.symmetric
    assert not gs.splu(changed(kkt(), 1e-13)).stats.symmetric
    fewer = kkt()
    fewer.data[np.flatnonzero(fewer.indices < np.repeat(np.arange(N), np.diff(fewer.indptr)))[-1]] = 0
    fewer.eliminate_zeros()
    assert not gs.splu(fewer).stats.symmetric
    phases = kkt("D", False)
    assert gs.splu(phases).stats.symmetric
    phases.data[0] *= 1j  # of the diagonal
    assert gs.splu(phases).stats.symmetric
    hermitian = exactly_hermitian(kkt("D", True))
    hermitian.data[0] += 1j
    assert not gs.splu(hermitian).stats.symmetric


def test_refactor_takes_any_values():
    A = kkt()
    lu = gs.splu(A)
    lu.refactor(1.5 * A.data)
    is_solved(lu, 1.5 * A)
    assert lu.stats.symmetric and lu.L.shape == lu.U.shape
    other = changed(A, 0.1)
    lu.refactor(other.data)
    is_solved(lu, other)
    assert not lu.stats.symmetric
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - other).max() < 1e-8
    lu.refactor(A.data)  # LU from then on
    is_solved(lu, A)
    assert not lu.stats.symmetric


def test_other_symmetries_of_complex_values():
    A, H = kkt("D", False), exactly_hermitian(kkt("D", True))
    lu = gs.splu(A)
    for values in (H, A, H.conj(), canonical(kkt().astype("D"))):
        lu.refactor(values.data)
        is_solved(lu, values)
        assert lu.stats.symmetric
        expected = np.linalg.slogdet(values.toarray())
        assert abs(lu.slogdet().sign - expected.sign) < 1e-10


def test_spsolve_and_factorized():
    A, b = kkt(), rhs(N)
    matrices = [A, canonical(1.1 * A), canonical(0.9 * A), changed(A, 0.1), A]
    for matrix in matrices:  # from the third on by a factor that was left
        for read in (sp.csc_array, sp.csr_matrix):
            assert backward_error(matrix, gs.spsolve(read(matrix), b), b) < 100 * EPS["d"]
        assert backward_error(matrix, gs.factorized(matrix)(b), b) < 100 * EPS["d"]
    assert gs.cache_info().hits > 5
    singular = A.copy()
    singular.data[A.indptr[3] : A.indptr[4]] = 0
    with pytest.warns(sp.linalg.MatrixRankWarning):
        assert np.all(np.isnan(gs.spsolve(singular, b)))


def test_explanations_and_other_features():
    A = kkt()
    lu, inverse = gs.splu(A), np.linalg.inv(A.toarray())
    for text in (gs.explain(A), lu.explain(), gs.explain(A, ldlt=True)):
        assert "LDL^T: A is symmetric or Hermitian" in text
    assert "by LDL^T" in gs.explain(A) and "LDL^T" not in gs.explain(changed(A, 0.1))
    np.testing.assert_allclose(lu.inverse_diagonal(), inverse.diagonal(), rtol=1e-6, atol=1e-9 * abs(inverse).max())
    assert lu.stats.n_repivoted == 0
    A = exactly_hermitian(kkt("D"))
    lu = gs.splu(A, precision="mixed")
    assert lu.stats.symmetric and lu.stats.precision == "mixed"
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e4 * EPS["D"] * abs(A).max()


def test_pickles_and_batches_of_its_analysis():
    A = kkt()
    lu = gs.splu(A)
    again = pickle.loads(pickle.dumps(lu))
    assert again.stats.symmetric
    is_solved(again, A)
    other = changed(A, 0.1)
    batch = lu.symbolic.factor(np.stack([A.data, other.data]))
    b = rhs(N, "d", (2,))
    x = batch.solve(b.T.copy())
    for k, matrix in enumerate((A, other)):
        assert backward_error(matrix, x[k], b[:, k]) < 100 * EPS["d"]


def test_delayed_columns_are_remembered():
    """By the core's way from a matrix to its factor, and by that through Python."""
    A = gallery.mixed_elements(76, 76)
    for options in ({}, {"expected_refactors": 6}):
        gs.cache_clear()
        assert [gs.splu(A, **options).stats.n_delayed > 0 for _ in range(3)] == [True, False, False]
