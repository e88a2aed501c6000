"""Values that meet a remembered pattern: whether its analysis suits them, and whose factor is whose."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import gallery
from gpusplu.dispatch import patterns
from support.patterns import NEW, REUSED, WAYS, accurate, counts, solved
from support.small_matrices import random_matrix, rhs, spd_matrix


@pytest.mark.parametrize("options", [{}, {"ordering": "amd"}])
def test_values_whose_matching_changes(options):
    """The dominant diagonal is permuted: entries that were pivots are tiny now."""
    n = 400
    rng = np.random.default_rng(0)
    base = sp.csc_array(sp.random_array((n, n), density=0.01, rng=rng) * 1e-3)
    shift = sp.csc_array(sp.eye_array(n, k=1) + sp.eye_array(n, k=1 - n))
    first, second = (sp.csc_array(base + a * sp.eye_array(n) + c * shift) for a, c in ((1.0, 1e-9), (1e-9, 1.0)))
    np.testing.assert_array_equal(first.indices, second.indices)
    b = rhs(n)
    for k, A in enumerate((first, second, first, second)):
        lu = gs.splu(A, **options)
        assert lu.stats["analysis"] == NEW
        assert lu.stats["n_repivoted"] == 0
        accurate(A, lu.solve(b), b)
        assert counts() == (0, k + 1)
    assert gs.splu(second * 1.5, **options).stats["analysis"] == REUSED.format(4)
    for A in (first, first, first, second, second, second, first):
        solved(A)


def test_other_scales():
    """Rows that are a million times larger; fronts would take every pivot for tiny."""
    A = gallery.named("elast:4x4x4")
    n = A.shape[0]
    for scale in (1.0, 1e-12, 1e12, 1e-12, 1.0):
        B = sp.csc_array(sp.diags_array(scale ** np.linspace(0, 1, n)) @ A)
        lu, b = gs.splu(B), rhs(n)
        accurate(B, lu.solve(b), b)
        assert lu.stats["n_perturbed"] == 0
        solved(B)


@pytest.mark.parametrize("name", ["circuit:12x12", "poisson:40x40"])
def test_a_singular_matrix_after_a_good_one_and_back(name):
    A = gallery.named(name)
    good, b = A.data.copy(), rhs(A.shape[0])
    for _ in range(2):
        for _ in range(3):
            solved(A)
            solved(A, WAYS["splu"])
        A.data[A.indptr[3] : A.indptr[4]] = 0
        for _ in range(2):
            with pytest.warns(spla.MatrixRankWarning):
                assert np.isnan(gs.spsolve(A, b)).all()
            with pytest.raises(RuntimeError, match="Factor is exactly singular"):
                gs.splu(A)
        A.data[:] = good


def test_hostile_values_one_after_the_other():
    """With what was remembered, whatever that was, answers are as accurate as without."""
    rng = np.random.default_rng(7)
    matrices = [random_matrix(120, seed=1, density=0.03), gallery.named("circuit:8x8"), gallery.named("poisson:12x12")]
    for _ in range(60):
        A = matrices[rng.integers(3)]
        A.data = rng.standard_normal(A.nnz) * 10.0 ** rng.integers(-12, 12, A.nnz if rng.random() < 0.5 else 1)
        b = rhs(A.shape[0])
        x, y = gs.spsolve(A, b), gs.splu(A).solve(b)
        for z in (x, y):
            accurate(A, z, b)


@pytest.mark.parametrize(
    ("pivoting", "thresholds"), [("partial", (0.9, 0.2, 0.5, 0.9)), ("auto", (0.1, 0.0, 0.04, 0.1))]
)
def test_a_pattern_is_found_with_another_threshold(pivoting, thresholds):
    """Pivots are chosen by the threshold of the call, not by that of the call that analysed."""
    noise = sp.random_array((120, 120), density=0.02, rng=np.random.default_rng(0))
    A = sp.csc_array(noise + sp.diags_array(np.geomspace(1e-2, 3, 120)))
    rows = set()
    for k, threshold in enumerate(thresholds):
        options = {"diag_pivot_thresh": threshold, "pivoting": pivoting}
        lu = gs.splu(A, **options)
        assert lu.stats["analysis"] == (REUSED.format(1) if k else NEW)
        assert counts() == (k, 1)
        alone = gs.splu(A, **options, deterministic=True)
        for one in (lu, lu.symbolic.factor(A.data)):
            np.testing.assert_array_equal(one.perm_r, alone.perm_r)
            np.testing.assert_array_equal(one.L.toarray(), alone.L.toarray())
        accurate(A, lu.solve(rhs(120)), rhs(120), times=1000)
        rows.add(lu.perm_r.tobytes())
    assert len(rows) == 3  # they differ


def test_values_that_are_refused_are_refused_again():
    A = spd_matrix()
    for way in ("splu", "spsolve", "cholesky", "splu with options"):
        for _ in range(3):
            solved(A, WAYS[way])
        bad = A.copy()
        bad.data[5] = np.nan
        with pytest.raises(gs.NonFiniteError):
            WAYS[way](bad, rhs(50))
        bad = A.copy()
        bad.data = A.data[:-1]
        with pytest.raises(ValueError, match="data"):
            WAYS[way](bad, rhs(50))
        solved(A, WAYS[way])
    bad = A.copy()
    bad.data[1] += 1
    with pytest.raises(gs.NotHermitianError):
        gs.cholesky(bad)
    negative = A.copy()
    negative.data *= -1
    with pytest.raises(gs.NotPositiveDefiniteError):
        gs.cholesky(negative)
    solved(A, WAYS["cholesky"])


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("half", [sp.tril, sp.triu])
def test_cholesky_of_one_triangle(half, dtype):
    A = spd_matrix(dtype=dtype)
    for k in range(3):
        B = sp.csc_array(half(A)) * (k + 1)
        b = rhs(50, dtype)
        accurate(A * (k + 1), gs.cholesky(B).solve(b), b)
        assert counts() == (k, 1)


# ---- whose is what


def test_objects_that_callers_hold_never_change():
    A, b = random_matrix(), rhs(60)
    gs.spsolve(A, b)
    held = [gs.splu(A), gs.splu(A), gs.splu(A, permc_spec="COLAMD"), gs.splu(A, permc_spec="COLAMD")]
    ch = gs.cholesky(spd_matrix())
    before = [(lu.solve(b), lu.L.data.copy(), lu.perm_r.copy(), lu.symbolic.seconds) for lu in held]
    logdet, others = ch.logdet(), [dict(lu.stats) for lu in held]
    for k in range(5):
        B = A.copy()
        B.data *= np.random.default_rng(k).uniform(0.5, 1.5, A.nnz)
        solved(B)
        solved(B, WAYS["splu"])
        solved(B, WAYS["splu with options"])
        gs.cholesky(spd_matrix() * (k + 2))
    gs.cache_clear()
    for lu, (x, L, perm, seconds), stats in zip(held, before, others, strict=True):
        np.testing.assert_array_equal(lu.solve(b), x)
        np.testing.assert_array_equal(lu.L.data, L)
        np.testing.assert_array_equal(lu.perm_r, perm)
        assert lu.symbolic.seconds == seconds
        assert dict(lu.stats).keys() == stats.keys()
        assert lu.stats["n_refactor"] == 0
    assert ch.logdet() == logdet


@pytest.mark.parametrize("options", [{}, {"permc_spec": "COLAMD"}])
def test_spsolve_uses_the_memory_of_a_factor_again(options, monkeypatch):
    """From the third call of a pattern on, what is solved once holds no factor; splu makes its own ever."""
    A = gallery.named("poisson:30x30")
    sizes, refactored, solve = [], [], gs.LUFactor.solve

    def watched(self, *args):
        refactored.append(self.stats["n_refactor"])
        return solve(self, *args)

    monkeypatch.setattr(gs.LUFactor, "solve", watched)
    for k in range(5):
        A.data *= 1.1
        solved(A, lambda A, b: gs.spsolve(A, b, **options))
        sizes.append(gs.cache_info().bytes)
        if k > 1:
            solved(A, lambda A, b: gs.splu(A, **options).solve(b))
    assert refactored == [0, 0, 1, 0, 2, 0, 3, 0]
    assert sizes[0] < sizes[1] == sizes[2] == sizes[3] == sizes[4]


def test_a_factor_that_left_its_analysis_is_not_used_again(monkeypatch):
    A, given = gallery.named("poisson:30x30"), []
    monkeypatch.setattr(patterns, "STORE", SimpleNamespace(give=lambda known, *args: given.append(known)))
    one, other = (gs.analyze(A) for _ in range(2))
    for value in (one, (None, one.parts()[1].core)):
        known = SimpleNamespace(value=value)
        patterns.give(known, other.factor(A.data))
        assert given == []
        patterns.give(known, one.factor(A.data))
        assert given.pop() is known


@pytest.mark.parametrize("ordering", ["auto", "natural"])
def test_zeros_of_the_matrix_analysed_say_nothing_about_other_values(ordering):
    A = random_matrix(20)
    empty = A.copy()
    empty.data[empty.indices == 3] = 0
    values, (right, singular) = np.stack([A.data, empty.data, 2 * A.data]), list(gs.BatchStatus)[:4:3]
    symbolic = gs.analyze(empty, ordering=ordering)
    accurate(A, symbolic.factor(A.data).solve(rhs(20)), rhs(20))
    for batch in (gs.splu_batch(empty, values, ordering=ordering), symbolic.factor(values)):
        assert batch.status.tolist() == [right, singular, right]
        accurate(A, batch.solve(rhs(20))[0], rhs(20))
    batch = gs.splu_batch(empty, values[1:2])
    assert batch.status == [singular]
    assert gs.splu_batch(A, values[:1]).status == [right]  # whatever was analysed before
    batch.refactor(values[:1])
    assert batch.status == [right]
    with pytest.raises(RuntimeError, match="singular"):
        symbolic.factor(empty.data)
