"""One ladder: the CPU engine's fronts and those on a device take the same way where answers are in doubt."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import _core
from support.accuracy_policy import SCRIPTS, play, play_on_device
from support.analyses import analyze
from support.small_matrices import EPS, small_pairs

pytestmark = pytest.mark.usefixtures("cupy")


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_the_same_errors_lead_the_same_way(script, monkeypatch):
    policy = _core.AccuracyPolicy("d")
    for played, refined in (play(script, policy), play_on_device(script, policy, monkeypatch)):
        assert played.calls == script.calls
        assert refined.steps == script.steps
        assert refined.accurate == script.accurate
        assert refined.accurate_at_start == (max(script.errors[0]) <= 8)
        kept = script.errors[script.steps][0]
        np.testing.assert_equal(refined.error, kept * EPS["d"])


def on_processor(A, **options):
    """By fronts, as the core has them."""
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr.astype(np.int64), A.indices.astype(np.int64))
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, method="front")
    return _core.factor(symbolic, pattern, A.data, **options)


def on_device(A, **options):
    return gs.splu(A, engine="supernodal", **options)._core


BOTH = pytest.mark.parametrize("make", [on_processor, on_device])


@BOTH
def test_perturbed_pivots_in_a_small_block_are_not_lost_in_the_norm(device, make):
    A = small_pairs()
    factor = make(A)
    x = factor.solve(A @ np.ones(A.shape[0]))
    stats = factor.stats()
    assert stats["n_perturbed"] == 20
    assert stats["n_refinement"] > 0
    assert stats["n_reanalyzed"] == stats["n_repivoted"] == 0
    assert abs(x - 1).max() < 1e-11


@BOTH
def test_static_pivots_are_kept_where_some_are_perturbed(device, make):
    A = small_pairs()
    factor = make(A, pivoting="static")
    factor.refactor(2 * A.data)
    factor.solve(A @ np.ones(A.shape[0]))
    stats = factor.stats()
    assert stats["n_perturbed"] == 20
    assert stats["n_reanalyzed"] == stats["n_repivoted"] == 0


@pytest.mark.parametrize("refine", ["auto", "never"])
def test_large_multipliers_need_a_solve_or_other_pivots(refine):
    """Where solves are not measured only other pivots help a factor that is in doubt."""
    policy = _core.AccuracyPolicy("d", refine=refine)
    measured, steep = policy.must_measure(), _core.PivotReport(max_multiplier=1e9)
    assert policy.is_suspect(steep)
    expected = _core.Decision.accept if measured else _core.Decision.solve_known_system
    assert policy.after_factorization(steep, measured) == expected
    assert policy.after_factorization(_core.PivotReport(max_multiplier=1e7), measured) == _core.Decision.accept
    assert policy.after_factorization(_core.PivotReport(n_tiny=1), measured) == _core.Decision.choose_pivots


def test_pivots_without_numbers_are_never_kept():
    policy = _core.AccuracyPolicy("d", pivoting="static")
    assert policy.after_factorization(_core.PivotReport(failed=True), True) == _core.Decision.choose_pivots
    assert policy.after_factorization(_core.PivotReport(n_tiny=1), True) == _core.Decision.accept
