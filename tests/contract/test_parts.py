"""What is read off a factor: L, U, D, permutations, determinants, condition, entries of the inverse, statistics."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from contract.cases import EVERY, backward_error, only, operators

STATS = {
    *(
        "analysis",
        "backward_error",
        "bytes",
        "column_levels",
        "critical_path",
        "engine",
        "fill",
        "flops",
        "method",
        "n",
    ),
    *("max_multiplier", "n_perturbed", "n_reanalyzed", "n_refactor", "n_refinement", "n_repivoted", "nnz"),
    *("n", "nnz_factor", "ordering", "seconds", "super_levels", "symmetric"),
}
ON_PROCESSOR = {"max_pivot", "min_pivot", "n_delayed", "n_off_diagonal", "n_updated", "pivot_growth"}


def check_product(case, factor, A):
    L = factor.L
    assert isinstance(L, sp.csc_array) and L.dtype == A.dtype and sp.triu(L, 1).nnz == 0
    if case.kind == "lu":
        assert sp.tril(factor.U, -1).nnz == 0 and np.all(L.diagonal() == 1)
        product = (L @ factor.U)[factor.perm_r][:, factor.perm_c]
        for perm in (factor.perm_r, factor.perm_c):
            assert perm.dtype == np.int32 and np.array_equal(np.sort(perm), np.arange(case.n))
    else:
        middle = factor.D if case.kind == "ldlt" else sp.eye_array(case.n, dtype=A.dtype)
        order = np.argsort(factor.perm)
        product = (L @ middle @ L.conj().T)[order][:, order]
        assert case.kind == "cholesky" or (np.all(L.diagonal() == 1) and abs(sp.triu(factor.D, 2)).nnz == 0)
    assert abs(product - A).max() < 1e3 * case.eps * abs(A).max()


@EVERY
def test_factors_multiply_to_the_matrix(case):
    factor = case.make()
    check_product(case, factor, case.A)
    assert factor.L is factor.L
    before = factor.L
    for put in case.places:
        factor.refactor(put(2 * case.A.data))
        check_product(case, factor, case.doubled())
        assert factor.L is not before
    assert factor.nnz >= factor.L.nnz


@EVERY
def test_solves_with_triangles_make_a_solve(case):
    factor, b = case.make(), case.b(2)
    if case.kind == "lu":
        for triangle, solve in ((factor.L, factor.solve_L), (factor.U, factor.solve_U)):
            for trans, op in operators(triangle):
                assert backward_error(op, solve(b, trans), b) < 1e3 * case.eps
        x = factor.apply_Pc(factor.solve_U(factor.solve_L(factor.apply_Pr(b))))
    else:
        y = factor.solve_L(factor.apply_P(b))
        x = factor.apply_Pt(factor.solve_Lt(factor.solve_D(y) if case.kind == "ldlt" else y))
    assert backward_error(case.A, x, b) < 1e3 * case.eps


@EVERY
def test_determinants(case):
    factor = case.make()
    for put in case.places:
        for scale in (1, 3):
            factor.refactor(put(scale * case.A.data))
            sign, logabsdet = factor.slogdet()
            expected = np.linalg.slogdet((scale * case.A).toarray().astype("D"))
            assert abs(sign - expected.sign) < 1e4 * case.eps and isinstance(sign, case.A.dtype.type)
            assert logabsdet == pytest.approx(expected.logabsdet, rel=1e4 * case.eps)
            if case.kind == "cholesky":
                assert factor.logdet() == logabsdet


@EVERY
def test_condition(case):
    factor = case.make()
    expected = 1 / np.linalg.cond(case.A.toarray(), 1)
    for scale in (1, 2):
        factor.refactor(case.puts(scale * case.A.data))
        assert 0.99 * expected < factor.rcond() < 3.5 * expected  # an estimate of the condition from below


@EVERY
def test_entries_of_the_inverse(case):
    factor = case.make()
    factor.refactor(case.puts(2 * case.A.data))
    inverse = np.linalg.inv(2 * case.A.toarray())
    atol = 1e4 * case.eps * abs(inverse).max()
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse.diagonal(), atol=atol)
    np.testing.assert_allclose(factor.trace_inverse(case.A), np.trace(inverse @ case.A), rtol=1e4 * case.eps)
    for pattern, at_least in (("A.T", case.A.nnz), ("A", case.A.nnz), ("LU", case.A.nnz + 1)):
        Z = factor.selected_inverse(pattern).tocoo()
        assert Z.nnz >= at_least and Z.dtype == case.A.dtype
        np.testing.assert_allclose(Z.data, inverse[Z.coords], atol=atol)


@only("ldlt")
def test_inertia(case):
    factor = case.make()
    values = np.linalg.eigvalsh(case.A.toarray().astype("D"))
    count = int((values > 0).sum())
    if case.dtype in "dD":
        assert factor.inertia() == gs.Inertia(count, case.n - count, 0) and factor.inertia_doubt == ""
        factor.refactor(case.puts(-case.A.data))
        assert factor.inertia() == gs.Inertia(case.n - count, count, 0)
    else:
        assert factor.inertia() in (None, gs.Inertia(count, case.n - count, 0))


@only("ldlt", dtypes="FD")
def test_complex_symmetric(case):
    turn = sp.diags_array(np.exp(1j * np.arange(case.n)).astype(case.dtype))
    A = sp.csc_array(turn @ gs.gallery.stokes(4, 4) @ turn).astype(case.dtype)
    factor = gs.ldlt(A, engine=case.engine.name, hermitian=False)
    assert not factor.hermitian and case.make().hermitian
    case.accurate(factor, A)
    order = np.argsort(factor.perm)
    assert abs((factor.L @ factor.D @ factor.L.T)[order][:, order] - A).max() < 1e3 * case.eps * abs(A).max()
    with pytest.raises(TypeError, match="complex symmetric"):
        factor.inertia()


@EVERY
def test_statistics(case):
    factor = case.make()
    factor.refactor(case.puts(2 * case.A.data))
    factor.solve(case.b())
    stats = factor.stats
    assert set(stats) >= STATS and (case.engine.on_device or set(stats) >= ON_PROCESSOR)
    assert (stats.n, stats.nnz, stats.engine, stats.n_refactor) == (case.n, case.A.nnz, case.engine.name, 1)
    assert {"analyze", "factor", "refactor", "solve"} <= set(stats["seconds"])
    assert all(seconds >= 0 for seconds in stats.seconds.values()) and stats.bytes > 0 and stats.flops > 0
    assert stats.method == factor.symbolic.method in ("column", "front")
    assert stats.symmetric == (case.kind == "ldlt")
    with pytest.raises(AttributeError, match="stats has no 'speed'"):
        _ = stats.speed


@EVERY
def test_explanations(case):
    factor = case.make()
    text = factor.explain()
    assert f"{case.engine.name}: requested by name" in text and f"matrix    {case.n} x {case.n}" in text
    kind = {} if case.kind == "lu" else {case.kind: True}
    assert case.engine.name in gs.explain(case.A, engine=case.engine.name, **kind)
    assert f"{case.n} x {case.n}" in repr(factor) and case.engine.name in repr(factor)
    assert "<table" in factor._repr_html_()
    assert factor.shape == factor.symbolic.shape == case.A.shape and factor.dtype == case.A.dtype


@EVERY
def test_factorizations_are_counted(case):
    before = gs.factorization_count()
    factor = case.make()
    factor.refactor(case.A.data)
    factor.refactor_solve(case.puts(case.A.data), case.puts(case.b()))
    assert gs.factorization_count() == before + 3
