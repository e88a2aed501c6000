"""The pattern cache: which calls reuse an analysis, that no stale analysis is used, and its limits."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix

REUSED = "analysis of call {} reused"
NEW = "made for this matrix"


def accurate(A, x, b, times=100):
    assert backward_error(A, x, b) < times * EPS[np.result_type(A.dtype, "f").char]


def solved(A, solve=gs.spsolve, seed=5):
    """Solve with a random right-hand side, and look at the residual."""
    b = rhs(A.shape[0], A.dtype, seed=seed)
    x = solve(A, b)
    accurate(A, x, b)
    return x


def counts():
    info = gs.cache_info()
    return info.hits, info.misses


WAYS = {
    "splu": lambda A, b: gs.splu(A).solve(b),
    "factorized": lambda A, b: gs.factorized(A)(b),
    "spsolve": gs.spsolve,
    "cholesky": lambda A, b: gs.cholesky(A).solve(b),
    "splu with options": lambda A, b: gs.splu(A, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(b),
    "spsolve with options": lambda A, b: gs.spsolve(A, b, permc_spec="COLAMD"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", "fdFD")
def test_a_pattern_is_found_again(way, dtype):
    A = spd_matrix(dtype=dtype)
    for k in range(4):
        B = A.copy()
        B.data *= A.dtype.type(1 + 0.1 * k)
        solved(B, WAYS[way], seed=k)
        assert counts() == (k, 1)


def test_whose_analysis_it_is_is_said():
    A, B = random_matrix(), random_matrix(seed=1)
    first, second, third = gs.splu(A), gs.splu(B), gs.splu(A)
    assert [lu.stats["analysis"] for lu in (first, second, third)] == [NEW, NEW, REUSED.format(1)]
    assert REUSED.format(1) in third.explain()
    assert REUSED.format(1) not in first.explain()
    assert gs.splu(B).stats.analysis == REUSED.format(2)
    one, other = (gs.splu(A, diag_pivot_thresh=0.5) for _ in range(2))
    assert (one.stats.analysis, other.stats.analysis) == (NEW, REUSED.format(5))
    assert one.stats.seconds["analyze"] > 0 == other.stats.seconds["analyze"]
    assert third.stats.seconds["analyze"] == 0
    assert gs.cholesky(spd_matrix()).stats["analysis"] == NEW
    assert gs.cholesky(spd_matrix()).stats["analysis"] == REUSED.format(7)
    assert pickle.loads(pickle.dumps(third)).stats["analysis"] == NEW  # of its own process
    before = counts()
    for call in (gs.analyze, gs.explain):
        call(A)
    assert counts() == before


def test_options_are_part_of_the_key():
    A = spd_matrix()
    perm = np.random.default_rng(0).permutation(50)
    calls = [
        {},
        {"permc_spec": "NATURAL"},
        {"ordering": "nd"},
        {"ordering": perm},
        {"ordering": perm[::-1].copy()},
        {"diag_pivot_thresh": 0.0},
        {"pivoting": "partial"},
        {"refine": "always"},
        {"options": {"SymmetricMode": True}, "ordering": "amd"},
    ]
    first = [gs.splu(A, **call) for call in calls]
    assert counts() == (0, len(calls))
    again = [gs.splu(A, **call) for call in calls]
    assert counts() == (len(calls), len(calls))
    for one, other in zip(first, again, strict=True):
        assert other.symbolic.ordering == one.symbolic.ordering
        np.testing.assert_array_equal(other.perm_c, one.perm_c)
    np.testing.assert_array_equal(again[1].perm_c, np.arange(50))
    gs.cholesky(A)
    assert counts() == (len(calls), len(calls) + 1)


def test_pivots_that_are_not_checked_are_chosen_for_their_values():
    A, S = random_matrix(), spd_matrix()
    for options in ({"pivoting": "static"}, {"refine": "never"}):
        for _ in range(2):
            assert gs.splu(A, **options).stats["analysis"] == NEW
    assert counts() == (0, 0)
    gs.cholesky(S, refine="never")  # whose pivots do not depend on values
    assert gs.cholesky(S, refine="never").stats["analysis"] == REUSED.format(1)


def test_order_is_told_apart():
    """Arrays that are longer than the matrix needs are the caller's right."""
    A = sp.csc_array(np.diag([1.0, 2, 3, 4]))
    B = sp.csc_array(np.diag([1.0, 2, 3]))
    B.indptr, B.indices, B.data = A.indptr, A.indices, A.data
    for M, n in ((A, 4), (B, 3), (A, 4), (B, 3)):
        np.testing.assert_allclose(gs.splu(M).solve(np.ones(n)), 1 / np.arange(1.0, n + 1))
    assert counts() == (2, 2)


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_deterministic_calls_do_not_look_back(make):
    A = spd_matrix()
    with_what_was_before = [make(A) for _ in range(2)][1]
    assert "reused" in with_what_was_before.stats["analysis"]
    before = gs.cache_info()
    for _ in range(2):
        assert "reused" not in make(A, deterministic=True).stats["analysis"]
    assert gs.cache_info() == before


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
def test_spsolve_uses_the_memory_of_a_factor_again(options):
    """From the third call of a pattern on; factors of splu are not touched by it."""
    A, sizes = gallery.named("poisson:30x30"), []
    for _ in range(5):
        A.data *= 1.1
        solved(A, lambda A, b: gs.spsolve(A, b, **options))
        sizes.append(gs.cache_info().bytes)
        lu = gs.splu(A, **options)
        solved(2 * A, lambda A, b: gs.spsolve(A, b, **options))
        accurate(A, lu.solve(rhs(900)), rhs(900))
    assert sizes[0] < sizes[1] == sizes[2] == sizes[3] == sizes[4]


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


def test_the_last_used_patterns_are_kept():
    A, B, C = (random_matrix(seed=k) for k in range(3))
    gs.cache_limit(entries=2)
    try:
        for M in (A, B, A, C):  # B goes
            gs.splu(M)
        assert gs.cache_info()[:4] == (1, 3, 2, 2)
        assert gs.splu(A).stats["analysis"] != NEW
        assert gs.splu(C).stats["analysis"] != NEW
        assert gs.splu(B).stats["analysis"] == NEW  # and A
        gs.cache_limit(entries=1)
        assert gs.cache_info().currsize == 1
        assert gs.splu(B).stats["analysis"] != NEW
        gs.cache_limit(entries=0)
        for _ in range(2):
            assert gs.splu(B).stats["analysis"] == NEW
            solved(B)
        assert gs.cache_info().currsize == gs.cache_info().bytes == 0
    finally:
        gs.cache_limit(entries=64)


def test_bytes_are_bounded():
    before = gs.cache_info().maxbytes
    A = gallery.named("poisson:30x30")
    gs.splu(A)
    one = gs.cache_info().bytes
    assert one > A.indices.nbytes + A.indptr.nbytes
    try:
        gs.cache_limit(bytes=int(2.5 * one))
        for k in range(4):
            gs.splu(sp.csc_array(sp.block_diag([A, sp.eye_array(k)])))
            assert gs.cache_info().bytes <= 2.5 * one
        assert gs.cache_info().currsize == 2
        gs.cache_limit(bytes=one // 2)
        assert gs.cache_info().currsize == 0
        gs.splu(A)
        assert gs.cache_info()[3:5] == (0, 0)
        gs.cache_limit(bytes=int(1.1 * one))  # for the analysis, not for a factor beside it
        for _ in range(3):
            solved(A)
        assert gs.cache_info()[3:5] == (1, one)
    finally:
        gs.cache_limit(bytes=before)


@pytest.mark.parametrize("way", ["spsolve", "splu", "cholesky"])
def test_threads(way):
    matrices = [spd_matrix(40 + 10 * k, seed=k) for k in range(3)]

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            solved(matrices[rng.integers(3)] * rng.uniform(1, 1.1), WAYS[way], seed=seed)
            if rng.random() < 0.02:
                gs.cache_clear()
            if rng.random() < 0.05:
                gs.cache_limit(entries=int(rng.integers(1, 4)))

    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(work, k) for k in range(4)]
    gs.cache_limit(entries=64)
    for one in made:
        one.result()


def test_a_matrix_that_is_not_finite_counts_as_one_call():
    A = random_matrix()
    B = A.copy()
    B.data[3] = np.nan
    for expected in (1, 2):
        with pytest.raises(gs.NonFiniteError):
            gs.splu(B)
        assert counts() == (0, expected)
    gs.splu(A)
    with pytest.raises(gs.NonFiniteError):
        gs.splu(B)
    assert counts() == (0, 4)
