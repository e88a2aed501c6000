"""Schur complements: the interior factored, the interface left to the caller."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.factors.schur import Solved
from support.halves import KINDS, analyzed, dense_schur, near_definite, two_grids
from support.small_matrices import EPS, canonical, random_matrix, rhs, spd_matrix


def check_solutions(factor, A, dtype, shapes=((), (3,), (40,))):
    M = A.toarray()
    for b in (rhs(len(M), dtype, columns) for columns in shapes):
        y = np.linalg.solve(factor.schur, factor.condense(b))
        for x in (factor.expand(y), factor.expand(y, b)):
            assert x.shape == b.shape and x.dtype == b.dtype
            assert np.abs(M @ x - b).max() < 1e4 * EPS[dtype] * np.abs(x).max() * len(M)


@pytest.mark.parametrize("eliminated", [False, True])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("kind", KINDS)
def test_complement_and_both_halves_of_a_solve(dtype, kind, eliminated):
    A = KINDS[kind](60, dtype)
    indices = np.array([50, 3, 17, 4, 59, 30, 31, 32, 2, 41, 7])
    symbolic = analyzed(kind, A, indices)
    if not eliminated:
        symbolic.whole = None  # as if fronts had no pivots
    factor = symbolic.factor(A.data)
    assert factor.eliminated == eliminated and factor.dtype == A.dtype
    expected = dense_schur(A.toarray().astype("D" if dtype in "FD" else "d"), indices)
    assert factor.schur.dtype == A.dtype and factor.schur.flags.f_contiguous
    np.testing.assert_allclose(factor.schur, expected, atol=1e4 * EPS[dtype] * np.abs(expected).max())
    check_solutions(factor, A, dtype)
    inner = np.setdiff1d(np.arange(A.shape[0]), indices)
    x = factor.interior.solve(np.ones(inner.size, dtype))
    assert np.abs(A[inner][:, inner] @ x - 1).max() < 1e4 * EPS[dtype] * np.abs(x).max() * 60


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_large_fronts_and_several_roots(kind, threads):
    """Trees above the cut into tasks."""
    A, indices = two_grids(kind)
    before = _core.num_threads()
    _core.set_num_threads(threads)
    try:
        factor = analyzed(kind, A, indices).factor(A.data)
        assert factor.eliminated
        expected = dense_schur(A.toarray(), indices)
        np.testing.assert_allclose(factor.schur, expected, atol=1e-12 * np.abs(expected).max())
        check_solutions(factor, A, "d")
    finally:
        _core.set_num_threads(before)


def test_scales_of_very_different_size():
    A, indices = near_definite(60), np.arange(20, 30)
    rng = np.random.default_rng(4)
    rows, columns = (sp.diags_array(10.0 ** rng.uniform(-9, 9, 60)) for _ in range(2))
    scaled = sp.csc_array(rows @ A @ columns)
    factor = analyzed("lu", scaled, indices).factor(scaled.data)
    expected = dense_schur(A.toarray(), indices)
    assert factor.eliminated
    schur = factor.schur / rows.diagonal()[indices, None] / columns.diagonal()[indices]
    np.testing.assert_allclose(schur, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("diagonal", [1e-14, 1 + 1e-10, 1 + 1e-6], ids=["tiny", "perturbed", "growing"])
@pytest.mark.parametrize("kind", ["lu", "ldlt"])
def test_pivots_that_do_not_fit_leave_it_to_solves(kind, diagonal):
    """Pivots of a grid with such a diagonal, and of values that need none but those of their fronts."""
    easy = canonical(gallery.poisson(30, 30))
    hard, indices = easy.copy(), np.arange(30)
    hard.setdiag(diagonal)
    symbolic = analyzed(kind, easy, indices)
    factor = symbolic.factor(easy.data)
    assert factor.eliminated
    factor.refactor(hard.data)
    assert not factor.eliminated
    np.testing.assert_allclose(factor.schur, dense_schur(hard.toarray(), indices), atol=1e-12)
    factor.refactor(easy.data)
    np.testing.assert_allclose(factor.schur, symbolic.factor(easy.data).schur, atol=1e-12)


@pytest.mark.parametrize("seed", [6, 10, 17])
def test_a_part_that_is_tiny_beside_its_coupling(seed):
    """Of values whose sizes nobody analysed: the interface takes what is small beside the rest of a solution."""
    n, m, rng = 20, 3, np.random.default_rng(seed)
    dense = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.2)
    np.fill_diagonal(dense, rng.uniform(1, 2, n))
    symbolic = gs.analyze(sp.csc_array(dense), schur=np.arange(m))
    dense[m:12, m:12] *= 1e-8
    factor = symbolic.factor(sp.csc_array(dense))
    np.testing.assert_allclose(factor.schur, dense_schur(dense, np.arange(m)), rtol=1e-12)
    b = rng.standard_normal(n)
    condensed = b[:m] - dense[:m, m:] @ np.linalg.solve(dense[m:, m:], b[m:])
    np.testing.assert_allclose(factor.condense(b), condensed, rtol=1e-12)


@pytest.mark.parametrize("refine", ["auto", "never"])
def test_a_complement_that_refinement_does_not_mend_is_warned_of(refine, recwarn):
    """Solves as wrong as they are large; where the caller refines nothing, nothing is looked at."""
    A, indices = near_definite(40), np.arange(4)
    factor = analyzed("lu", A, indices, ordering="natural", refine=refine).factor(A.data)
    interior = SimpleNamespace(solve=lambda b: -factor.interior.solve(b))
    way = Solved(factor.symbolic, interior, factor.symbolic.canonical(A.data))
    assert [str(one.message) for one in recwarn] == [_core.INACCURATE_SOLVE] * (refine == "auto")
    b = rhs(40, columns=(1,))
    b[7] = np.nan
    recwarn.clear()
    way.condense(b)
    assert not recwarn.list


def test_a_pickled_analysis():
    A = spd_matrix(60)
    symbolic = analyzed("cholesky", A, np.arange(9))
    factor = pickle.loads(pickle.dumps(symbolic)).factor(A.data)
    assert factor.eliminated
    np.testing.assert_array_equal(factor.schur, symbolic.factor(A.data).schur)
    symbolic._pattern = analyzed("cholesky", spd_matrix(60, seed=1), np.arange(9))._pattern
    with pytest.raises(ValueError, match="a pickled analysis is damaged"):
        pickle.loads(pickle.dumps(symbolic))


def test_an_interior_that_is_not_definite_is_refused_and_the_factor_stays():
    A = spd_matrix(60)
    factor = analyzed("cholesky", A, [1, 2, 3]).factor(A.data)
    before = factor.schur.copy()
    bad = A.copy()
    bad[40, 40] = -1.0
    with pytest.raises(gs.NotPositiveDefiniteError) as caught:
        factor.refactor(bad.data)
    assert caught.value.column == 40
    np.testing.assert_array_equal(factor.schur, before)
    check_solutions(factor, A, "d")


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


@pytest.mark.parametrize("eliminated", [False, True])
def test_values_that_the_caller_edits_afterwards_are_not_those_of_the_interior(eliminated):
    A, b, inner = spd_matrix(40), rhs(37), np.arange(3, 40)
    symbolic = analyzed("cholesky", A, [0, 1, 2])
    if not eliminated:
        symbolic.whole = None
    edited = A.copy()
    factor = symbolic.factor(edited.data)
    edited.data *= np.random.default_rng(0).uniform(1, 2, A.nnz)
    np.testing.assert_allclose(A[inner][:, inner] @ factor.interior.solve(b), b, rtol=1e-9)
    assert factor.eliminated == eliminated


def test_no_interface_and_complex_right_hand_sides():
    A, b = near_definite(30), rhs(30, "D")
    factor = gs.analyze(A, schur=[]).factor(A.data)
    assert factor.schur.shape == (0, 0) and factor.condense(b).shape == (0,)
    factor = gs.analyze(A, schur=[0, 5]).factor(A.data)
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)), b)
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-9)


@pytest.mark.parametrize("eliminated", [True, False])
def test_a_complex_solution_of_the_interface_of_real_right_hand_sides(eliminated):
    """Of a system on the interface that is not S alone: the interior's part follows from it."""
    A, b, y, inner = spd_matrix(30), rhs(30, "d", (2,)), rhs(2, "D", (2,)), np.setdiff1d(np.arange(30), [0, 5])
    symbolic = gs.analyze(A, schur=[0, 5], cholesky=True)
    if not eliminated:
        symbolic.whole = None
    factor = symbolic.factor(A.data)
    x = factor.expand(y, b)
    assert factor.eliminated == eliminated and x.dtype == np.dtype("D")
    np.testing.assert_array_equal(x[[0, 5]], y)
    M = A.toarray()
    np.testing.assert_allclose(M[np.ix_(inner, inner)] @ x[inner], b[inner] - M[np.ix_(inner, [0, 5])] @ y, rtol=1e-9)


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


def test_a_refactorization_that_ends_while_the_complement_is_solved_for_leaves_all_as_it_was(monkeypatch):
    A, b = near_definite(40), rhs(40)
    symbolic = gs.analyze(A, schur=[1, 2, 3])
    symbolic._whole = None  # as if fronts had no pivots
    factor = symbolic.factor(A.data)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gpusplu.factors.schur.Solved", interrupted)
        with pytest.raises(KeyboardInterrupt):
            factor.refactor(3 * A.data)
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)))
    np.testing.assert_allclose(x, np.linalg.solve(A.toarray(), b), rtol=1e-9)
    inner = np.setdiff1d(np.arange(40), [1, 2, 3])
    np.testing.assert_allclose(A[inner][:, inner] @ factor.interior.solve(b[inner]), b[inner], rtol=1e-9)


def test_without_an_interface_the_interior_is_all():
    A, b = near_definite(30), rhs(30, columns=(2,))
    factor = gs.analyze(A, schur=[]).factor(A.data)
    for one in (b, b[:, 0], 1j * b):
        y = factor.condense(one)
        assert y.shape == (0, *one.shape[1:])
        np.testing.assert_allclose(factor.expand(y), np.linalg.solve(A.toarray(), one), rtol=1e-9)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_of_the_values_held(kind, copied):
    A, b = KINDS[kind](40), rhs(KINDS[kind](40).shape[0])
    indices = [*range(len(b) - 4, len(b))]
    factor = analyzed(kind, A, indices).factor(A.data)
    factor.refactor(2 * A.data)
    again = copied(factor)
    factor.refactor(3 * A.data)
    np.testing.assert_allclose(again.schur, 2 * dense_schur(A.toarray(), indices), rtol=1e-8, atol=1e-10)
    x = again.expand(np.linalg.solve(again.schur, again.condense(b)))
    np.testing.assert_allclose(2 * A @ x, b, atol=1e-9)


@pytest.mark.parametrize("method", ["by fronts", "by solves"])
def test_an_interior_that_the_caller_refactors_is_not_solved_with(method):
    A, indices, b = near_definite(40), [*range(36, 40)], rhs(40)
    ordering = "natural" if method == "by solves" else "auto"
    factor = analyzed("lu", A, indices, ordering=ordering).factor(A.data)
    factor.interior.refactor(7 * factor.interior.parts()[0].values())
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)))
    np.testing.assert_allclose(A @ x, b, atol=1e-9)
    inner = A[:36][:, :36]
    np.testing.assert_allclose(inner @ factor.interior.solve(b[:36]), b[:36], atol=1e-9)


def test_numbers_of_the_interface_cannot_be_edited():
    A = near_definite(40)
    with pytest.raises(ValueError, match="read-only"):
        analyzed("lu", A, [38, 39]).indices[0] = 0
