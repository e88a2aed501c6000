"""splu of symmetric matrices by LDL^T: what users of splu see of it, and where it goes back to LU."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, rhs

N = 600


def kkt(dtype="d", hermitian=True):
    """Pivots of order 2, entries of all phases if complex."""
    K = gallery.kkt(420, 180, barrier=0.1)
    assert K.shape[0] == N
    if np.dtype(dtype).kind != "c":
        return K.astype(dtype)
    turn = np.exp(1j * np.arange(N))
    return canonical(sp.diags_array(turn) @ K @ sp.diags_array(turn.conj() if hermitian else turn)).astype(dtype)


def mended(A):
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
    lu = gs.splu(mended(A) if dtype == "D" and hermitian else A)
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
    hermitian = mended(kkt("D", True))
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
    A, H = kkt("D", False), mended(kkt("D", True))
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
    A = mended(kkt("D"))
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
