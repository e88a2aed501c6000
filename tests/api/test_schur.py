"""Schur complements: the interior factored, the interface left to the caller."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines import registry
from support.halves import KINDS, analyzed, dense_schur, near_definite, two_grids
from support.small_matrices import EPS, canonical, rhs, spd_matrix
from support.toy_engine import ToyEngine, ToyFactor

#: Elimination by fronts, and solves for the columns of the interface.
BOTH = pytest.mark.parametrize("by_fronts", [True, False])


def made(A, indices, by_fronts, **options):
    factor = gs.analyze(A, schur=indices, pivoting="auto" if by_fronts else "partial", **options).factor(A.data)
    assert factor.eliminated == by_fronts and not factor.symbolic.indices.flags.writeable
    return factor


def check_solutions(factor, M, columns=((), (3,), (40,)), dtype="d"):
    for b in (rhs(len(M), dtype, shape) for shape in columns):
        y = np.linalg.solve(factor.schur, factor.condense(b))
        for x in (factor.expand(y), factor.expand(y, b)):
            assert x.shape == b.shape and x.dtype == b.dtype
            assert np.abs(M @ x - b).max() < 1e4 * EPS[dtype] * np.abs(x).max() * len(M)


@BOTH
@pytest.mark.parametrize("dtype", "fdFD")
def test_complement_and_both_halves_of_a_solve(dtype, by_fronts):
    A, indices = near_definite(60, dtype), np.array([50, 3, 17, 4, 59, 30, 31, 32, 2, 41, 7])
    edited = A.copy()
    factor = made(edited, indices, by_fronts)
    edited.data *= 7
    expected = dense_schur(A.toarray().astype("D" if dtype in "FD" else "d"), indices)
    assert factor.schur.dtype == A.dtype and factor.schur.flags.f_contiguous
    np.testing.assert_allclose(factor.schur, expected, atol=1e4 * EPS[dtype] * np.abs(expected).max())
    check_solutions(factor, A.toarray(), dtype=dtype)
    inner = np.setdiff1d(np.arange(60), indices)
    for values in (None, 7 * A[inner][:, inner].data):  # that the caller gives the interior are not solved with
        if values is not None:
            factor.interior.refactor(values)
        check_solutions(factor, A.toarray(), ((),), dtype)
        x = factor.interior.solve(np.ones(inner.size, dtype))
        assert np.abs(A[inner][:, inner] @ x - 1).max() < 1e4 * EPS[dtype] * np.abs(x).max() * 60


@BOTH
def test_complex_right_hand_sides_and_solutions_of_the_interface(by_fronts):
    """Also of a system on the interface that is not S alone: the interior's part follows from it."""
    A, indices, inner = near_definite(60), np.arange(0, 55, 5), np.setdiff1d(np.arange(60), np.arange(0, 55, 5))
    factor, M = made(A, indices, by_fronts), A.toarray()
    check_solutions(factor, M, ((), (2,)), "D")
    b, y = rhs(60, "d", (2,)), rhs(11, "D", (2,))
    x = factor.expand(y, b)
    np.testing.assert_array_equal(x[indices], y)
    np.testing.assert_allclose(M[np.ix_(inner, inner)] @ x[inner], b[inner] - M[np.ix_(inner, indices)] @ y, rtol=1e-9)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_large_fronts_and_several_roots(kind, count, threads):
    """Trees above the cut into tasks."""
    A, indices = two_grids(kind)
    threads(count)
    factor = analyzed(kind, A, indices).factor(A.data)
    assert factor.eliminated
    expected = dense_schur(A.toarray(), indices)
    np.testing.assert_allclose(factor.schur, expected, atol=1e-12 * np.abs(expected).max())
    check_solutions(factor, A.toarray())


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


def test_a_mask_and_one_triangle():
    A = spd_matrix(30)
    mask = np.zeros(30, bool)
    mask[[2, 9, 20]] = True
    factor = gs.analyze(sp.tril(A), cholesky=True, schur=mask).factor(sp.tril(A))
    np.testing.assert_allclose(factor.schur, dense_schur(A.toarray(), np.array([2, 9, 20])), rtol=1e-9)
    with pytest.raises(gs.PatternMismatchError):
        gs.analyze(A, schur=mask).factor(sp.eye_array(30))


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


class OppositeFactor(ToyFactor):
    """Solutions as wrong as they are large."""

    def solve(self, b, trans=0):
        return -super().solve(b, trans)


class Opposite(ToyEngine):
    name = "opposite"

    def factor(self, problem, analysis, values):
        return OppositeFactor(analysis.core, problem, values)


@pytest.mark.filterwarnings("always::RuntimeWarning")
@pytest.mark.parametrize("refine", ["auto", "never"])
def test_a_complement_that_refinement_does_not_repair_is_warned_of(refine, recwarn):
    """It is solved for column by column; nothing is measured if the caller refines nothing."""
    A = near_definite(40)
    with registry.registered(Opposite()):
        factor = gs.analyze(A, schur=np.arange(4), engine="opposite", refine=refine).factor(A.data)
    expected = 2 * A.toarray()[:4, :4] - dense_schur(A.toarray(), np.arange(4))
    assert not factor.eliminated and (refine == "auto" or np.allclose(factor.schur, expected))
    assert ["not accurate" in str(one.message) for one in recwarn] == [True] * (refine == "auto")
