"""precision="mixed" on the processor: as accurate as double precision, or double precision after all, which it says."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import canonical, conditioned, random_matrix, rhs, spd_matrix, with_singular_values

ENOUGH = 2e-15  # backward errors up to which nothing is refined, about
KINDS = {gs.splu: random_matrix, gs.cholesky: spd_matrix, gs.ldlt: spd_matrix}


def test_memory_triangles_inertia_and_other_features():
    A = gallery.named("convdiff:18")
    mixed, double = (gs.splu(A, precision=precision) for precision in ("mixed", "double"))
    assert mixed.stats.bytes < 0.75 * double.stats.bytes
    A = random_matrix()
    lu, U = gs.splu(A, precision="mixed"), np.eye(60)[:, :2]
    for scale in (1, 2):
        assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - scale * A).max() < 1e-14 * abs(A).max()
        assert lu.stats.n_double == scale
        lu.refactor_solve(2 * A.data, rhs(60))
    x = gs.splu(A, precision="mixed").updated(U, U).solve(rhs(60))
    assert backward_error(A + U @ U.T, x, rhs(60)) < ENOUGH
    inside = gs.analyze(A, schur=[3, 5], precision="mixed").factor(A)
    np.testing.assert_allclose(inside.schur, gs.analyze(A, schur=[3, 5]).factor(A).schur, rtol=1e-11)
    A = canonical(spd_matrix() - 3 * sp.eye_array(50))
    for make, matrix in KINDS.items():
        mixed, double = make(matrix(), precision="mixed"), make(matrix())
        np.testing.assert_allclose(mixed.rcond(), double.rcond(), rtol=1e-6)
        np.testing.assert_allclose(mixed.inverse_diagonal(), double.inverse_diagonal(), rtol=1e-9)
        assert (mixed.stats.precision, mixed.stats.n_double) == ("mixed", 1)
    assert gs.ldlt(A, precision="mixed").inertia() == gs.ldlt(A).inertia() is not None
    assert "precision" not in gs.splu(A, precision="auto").stats  # on the processor double
    with pytest.raises(RuntimeError, match="exactly singular"):
        gs.splu(sp.csc_array(np.ones((3, 3))), precision="mixed")


@pytest.mark.parametrize("accepted", [True, False])
def test_updates_leave_the_values_of_the_caller(accepted):
    A, b, c = spd_matrix(), rhs(50), np.zeros(50)
    c[7] = 0.5 if accepted else 1e3
    given, M = A.copy(), A.copy()
    factor = gs.cholesky(given, precision="mixed")
    if accepted:
        factor.downdate(c)
        M[7, 7] -= 0.25
    else:
        with pytest.raises(gs.NotPositiveDefiniteError):
            factor.downdate(c)
    np.testing.assert_array_equal(given.data, A.data)
    given.data *= 2
    assert backward_error(M, factor.solve(b), b) < ENOUGH
    assert factor.logdet() == pytest.approx(np.linalg.slogdet(M.toarray())[1], rel=1e-10)


@pytest.mark.parametrize("dtype", "dD")
def test_slow_refinement_becomes_gmres(dtype):
    A = conditioned(1e8, dtype)
    lu = gs.splu(A, precision="mixed")
    for b in (rhs(60, dtype), A @ rhs(60, dtype, (4,))):
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            assert backward_error(op, lu.solve(b, trans), b) < ENOUGH
    assert lu.stats.n_gmres > 0
    assert (lu.stats.precision, lu.stats.n_double) == ("mixed", 0)
    assert "GMRES" in lu.explain()


def test_a_few_small_singular_values_take_a_few_iterations():
    A = with_singular_values(np.where(np.arange(60) < 3, 1e-10, 1.0))
    lu = gs.splu(A, precision="mixed")
    assert backward_error(A, lu.solve(rhs(60)), rhs(60)) < ENOUGH
    assert 0 < lu.stats.n_gmres < 40
    assert lu.stats.n_double == 0


@pytest.mark.parametrize("size", [1e14, 1e16])
def test_where_nothing_converges_the_factor_is_double(size):
    A = conditioned(size)
    lu, b = gs.splu(A, precision="mixed"), A @ np.ones(60)
    assert backward_error(A, lu.solve(b), b) < ENOUGH
    assert lu.stats.precision == "double" and "refinement" in lu.stats.why_double
    assert lu.rcond() == gs.splu(A).rcond()


@pytest.mark.parametrize("scale", [1e-300, 1e-45, 1e45, 1e300])
@pytest.mark.parametrize("make", [gs.splu, gs.cholesky], ids=lambda make: make.__name__)
def test_values_out_of_range(make, scale):
    A = KINDS[make]()
    b, refactored = scale * (A @ np.ones(A.shape[0])), make(A, precision="mixed")
    refactored.refactor(scale * A.data)
    for factor in (make(canonical(scale * A), precision="mixed"), refactored):
        assert abs(factor.solve(b) - 1).max() < 1e-11
        assert (factor.stats.precision, factor.stats.n_double) == ("double", 1)
        assert "range" in factor.stats.why_double


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-45, 1e45, 1e200, 1e307])
def test_right_hand_sides_of_any_size(scale):
    A = random_matrix()
    lu = gs.splu(A, precision="mixed")
    b = rhs(60, "d", (3,)) * [scale, 1, 1 / scale if scale > 1e-300 else 1]
    x, known = lu.solve(b), gs.splu(A).solve(b)
    np.testing.assert_allclose(x, known, rtol=1e-9, atol=1e-321)
    assert lu.stats.precision == ("mixed" if scale > 1e-300 else "double")  # of subnormals nothing is known


def test_solutions_of_one_entry():
    """All others are rounding errors, whose rows are not small beside themselves."""
    for make in (gs.splu, gs.cholesky):
        A = gallery.named("poisson:30x30")
        factor = make(A, precision="mixed")
        for k in (0, 450, 899):
            x = factor.solve(A[:, [k]].toarray())
            assert abs(x[:, 0] - np.eye(900)[k]).max() < 1e-13
        assert factor.stats.precision == "mixed"


@pytest.mark.parametrize("condition", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_blocks_that_a_norm_does_not_see(condition, scale):
    B = conditioned(condition**0.5, n=20).toarray()
    tail = scale * (B @ B.T)
    A = canonical(sp.block_diag([gallery.named("poisson:6x6"), (tail + tail.T) / 2]))
    for make in (gs.cholesky, gs.splu):
        x = make(A, precision="mixed").solve(A @ np.ones(56))
        assert abs(x - 1).max() < 100 * condition * 2e-16


def test_analyses_know_their_precision():
    A = random_matrix()
    for precision in ("double", "mixed", "double", "mixed"):
        lu = gs.splu(A, precision=precision)
        assert ("precision" in lu.stats) == (precision == "mixed")
    assert gs.cache_info().hits == 2
    symbolic = gs.analyze(A, precision="mixed")
    for copy in (symbolic, pickle.loads(pickle.dumps(symbolic))):
        for lu in (copy.factor(A), pickle.loads(pickle.dumps(copy.factor(A)))):
            assert lu.stats.precision == "mixed"
            assert backward_error(A, lu.solve(rhs(60)), rhs(60)) < ENOUGH
