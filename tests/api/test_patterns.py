"""Patterns that are remembered: what is found again, that nothing stale is, and how much is held."""

import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import _core, gallery, patterns
from gpusplu.timing import backward_error
from support.small_matrices import EPS, phased, random_matrix, rhs, spd_matrix

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


def other_pattern(A):
    """The same number of rows and entries: one entry is in another row."""
    B = A.copy()
    column = next(j for j in range(A.shape[0]) if A.indptr[j + 1] - A.indptr[j] > 1)
    rows = B.indices[B.indptr[column] : B.indptr[column + 1]]
    free = next(i for i in range(A.shape[0]) if i not in rows)
    place = next(k for k, i in enumerate(rows) if i != column)
    rows[place] = free
    B.has_sorted_indices = False
    B.sort_indices()
    return B


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


@pytest.mark.parametrize("name", ["splu", "spsolve", "factorized"])
def test_scipys_names_remember_too(name):
    A, b = random_matrix(), rhs(60)
    with gs.enabled():
        for k in range(3):
            found = getattr(spla, name)(*((A, b) if name == "spsolve" else (A,)))
            x = {"splu": lambda lu: lu.solve(b), "factorized": lambda f: f(b)}.get(name, lambda x: x)(found)
            accurate(A, x, b)
            assert counts() == (k, 1)


def test_whose_analysis_it_is_is_said():
    A, B = random_matrix(), random_matrix(seed=1)
    first, second, third = gs.splu(A), gs.splu(B), gs.splu(A)
    assert [lu.stats["analysis"] for lu in (first, second, third)] == [NEW, NEW, REUSED.format(1)]
    assert REUSED.format(1) in third.explain()
    assert REUSED.format(1) not in first.explain()
    assert gs.splu(B).stats.analysis == REUSED.format(2)
    one, other = (gs.splu(A, permc_spec="COLAMD") for _ in range(2))
    assert (one.stats.analysis, other.stats.analysis) == (NEW, REUSED.format(5))
    assert one.stats.seconds["analyze"] > 0 == other.stats.seconds["analyze"]
    assert third.stats.seconds["analyze"] == 0
    assert gs.cholesky(spd_matrix()).stats["analysis"] == NEW
    assert gs.cholesky(spd_matrix()).stats["analysis"] == REUSED.format(7)
    assert pickle.loads(pickle.dumps(third)).stats["analysis"] == NEW  # of its own process


def test_analyze_and_explain_are_always_new():
    A = random_matrix()
    for call in (gs.analyze, gs.explain, gs.analyze, gs.explain):
        call(A)
    assert counts() == (0, 0)


# ---- values and indices that change


@pytest.mark.parametrize("way", WAYS)
def test_data_edited_in_place(way):
    A = spd_matrix()
    for k in range(5):
        solved(A, WAYS[way], seed=k)
        A.data *= 1 + 0.3 * np.cos(k)
        A.data[A.indices == np.repeat(np.arange(50), np.diff(A.indptr))] += 1  # the diagonal: it stays definite
    assert counts() == (4, 1)


@pytest.mark.parametrize("way", ["splu", "factorized", "spsolve", "splu with options"])
def test_indices_edited_in_place(way):
    A = random_matrix()
    B = other_pattern(A)
    keep_A = A.copy()
    for k in range(3):
        x = solved(A, WAYS[way])
        A.indices[:], A.data[:] = (B if k % 2 == 0 else keep_A).indices, (B if k % 2 == 0 else keep_A).data
        y = solved(A, WAYS[way])
        assert not np.allclose(x, y)
    assert gs.cache_info().misses == 2


@pytest.mark.parametrize("way", ["splu", "factorized", "spsolve", "splu with options"])
def test_indptr_edited_in_place(way):
    """An entry moves to the next column, and no row number and no value does."""
    A = sp.csc_array(np.diag([2.0, 3, 4, 5]) + np.diag([1.0, 1, 1], -1))
    solved(A, WAYS[way])
    A.indptr[1] = 1  # row 1 of column 0 becomes row 1 of column 1, twice now
    assert A.toarray()[1, 1] == 4
    solved(A, WAYS[way])
    A.indptr[1] = 2
    solved(A, WAYS[way])
    assert counts() == (1, 2)


def test_same_object_other_content_and_other_object_same_content():
    A, b = random_matrix(), rhs(60)
    x = gs.spsolve(A, b)
    copy = A.copy()
    np.testing.assert_array_equal(gs.splu(copy).solve(b), gs.splu(A).solve(b))
    assert counts() == (2, 1)
    B = random_matrix(seed=3)
    A.data, A.indices, A.indptr = B.data, B.indices, B.indptr
    accurate(B, gs.spsolve(A, b), b)
    assert counts() == (2, 2)
    accurate(copy, x, b)


@pytest.mark.parametrize("bits", [0, 1, 64])
def test_patterns_with_one_hash(monkeypatch, bits):
    """No result depends on the hash: equality is looked at."""
    monkeypatch.setattr(patterns, "STORE", _core.Patterns(hash_bits=bits))
    A = random_matrix()
    matrices = [A, other_pattern(A), other_pattern(other_pattern(A)), random_matrix(seed=1), spd_matrix(60)]
    for _ in range(3):
        for M in matrices:
            for way in ("splu", "spsolve", "splu with options"):
                solved(M, WAYS[way])
    assert gs.cache_info().misses == 2 * len(matrices)
    assert gs.cache_info().currsize == 2 * len(matrices)


# ---- what a pattern is known by besides its content


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
        {"options": {"SymmetricMode": True}},
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


@pytest.mark.parametrize("options", [{"pivoting": "static"}, {"refine": "never"}])
def test_what_nobody_watches_is_analysed_for_its_values(options):
    A = random_matrix()
    assert gs.splu(A, **options).stats["analysis"] == NEW
    assert gs.splu(A, **options).stats["analysis"] == NEW
    assert counts() == (0, 0)


def test_static_pivots_of_a_cholesky_factor_do_not_depend_on_values():
    A = spd_matrix()
    gs.cholesky(A, refine="never")
    assert gs.cholesky(A, refine="never").stats["analysis"] == REUSED.format(1)


def test_number_types_and_index_types_are_told_apart():
    A = random_matrix()
    for dtype in "fdFD":
        for index in ("int32", "int64"):
            for repeated in (False, True):
                B = phased(A, dtype)
                B.indices, B.indptr = B.indices.astype(index), B.indptr.astype(index)
                lu = gs.splu(B)
                assert (lu.stats["analysis"] != NEW) == repeated
                assert lu.dtype == np.dtype(dtype)
                b = rhs(60, dtype)
                accurate(B, lu.solve(b), b)


def test_number_types_and_formats_are_told_apart_with_options():
    A = random_matrix()
    b = rhs(60, "D")
    for dtype in "fdFD":
        lu = gs.splu(A.astype(dtype), ordering="amd")
        assert lu.dtype == np.dtype(dtype)
        assert lu.stats["analysis"] == NEW
    by_rows = sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape)  # the transpose, in the same arrays
    with pytest.warns(sp.SparseEfficiencyWarning):
        lu = gs.splu(by_rows, ordering="amd")
    accurate(by_rows, lu.solve(b), b)
    assert lu.stats["analysis"] == NEW


def test_order_is_told_apart():
    """Arrays that are longer than the matrix needs are the caller's right."""
    A = sp.csc_array(np.diag([1.0, 2, 3, 4]))
    B = sp.csc_array(np.diag([1.0, 2, 3]))
    B.indptr, B.indices, B.data = A.indptr, A.indices, A.data
    for M, n in ((A, 4), (B, 3), (A, 4), (B, 3)):
        np.testing.assert_allclose(gs.splu(M).solve(np.ones(n)), 1 / np.arange(1.0, n + 1))
    assert counts() == (2, 2)


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "bsr", "dia", "lil", "dense"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_formats(form):
    A = random_matrix()
    for k in range(3):
        B = (A * (1 + k)).toarray() if form == "dense" else (A * (1 + k)).asformat(form)
        b = rhs(60, seed=k)
        accurate(A * (1 + k), gs.splu(B).solve(b), b)
        assert counts() == (k, 1)


def test_unsorted_rows_and_duplicates():
    A = random_matrix()
    rng = np.random.default_rng(0)
    for k in range(4):
        twice = sp.coo_array(A)
        row, col = np.tile(twice.row, 2), np.tile(twice.col, 2)
        data = np.concatenate([A.tocoo().data * (1 + k), rng.random(A.nnz)])
        B = sp.csc_array((60, 60))
        order = np.argsort(col, kind="stable")
        B.indices, B.data = row[order].astype(np.int32), data[order]
        B.indptr = np.concatenate([[0], np.cumsum(np.bincount(col, minlength=60))]).astype(np.int32)
        whole = B.copy()
        whole.sum_duplicates()
        b = rhs(60)
        accurate(whole, gs.splu(B).solve(b), b)
        accurate(whole, gs.spsolve(B, b), b)
        assert counts() == (2 * k + 1, 1)


def test_odd_index_arrays_are_read_as_ever():
    A, b = random_matrix(), rhs(60)
    for dtype in (">i4", "int16"):
        B = A.copy()
        B.indices, B.indptr = B.indices.astype(dtype), B.indptr.astype(dtype)
        for _ in range(2):
            accurate(A, gs.splu(B).solve(b), b)
            accurate(A, gs.spsolve(B, b), b)


# ---- values that do not suit what is remembered


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
    A = gallery.named("poisson:30x30")
    for _ in range(3):
        solved(A)
    given = []
    monkeypatch.setattr(patterns, "STORE", SimpleNamespace(give=lambda *args: given.append(args)))
    lu = gs.analyze(A).factor(A.data)
    patterns.give(None, lu)
    assert len(given) == 1
    monkeypatch.setattr(type(lu), "parts", lambda self: (self._core, gs.analyze(A).parts()[1]))
    patterns.give(None, lu)
    assert len(given) == 1


# ---- bounds


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


def test_limits_are_checked():
    for name in ("entries", "bytes"):
        with pytest.raises(ValueError, match=f"{name} must not be negative"):
            gs.cache_limit(**{name: -1})
    info = gs.cache_info()
    gs.cache_limit()
    assert gs.cache_info() == info
    assert info.maxsize == 64
    assert 0 < info.maxbytes <= 512 << 20


def test_cache_clear_counts_from_zero():
    A = random_matrix()
    gs.splu(A), gs.splu(A)
    gs.cache_clear()
    info = gs.cache_info()
    assert (info.hits, info.misses, info.currsize, info.bytes) == (0, 0, 0, 0)
    assert gs.splu(A).stats["analysis"] == NEW
    assert gs.splu(A).stats["analysis"] == REUSED.format(1)


def test_alternating_patterns():
    matrices = [random_matrix(40 + k, seed=k) for k in range(10)]
    for _ in range(5):
        for A in matrices:
            solved(A)
    assert counts() == (40, 10)


@pytest.mark.parametrize("way", WAYS)
def test_patterns_are_dropped_where_memory_is_short(way, monkeypatch):
    A = spd_matrix()
    for _ in range(3):
        solved(A, WAYS[way])
    failed = []

    def short(function):
        def call(*args, **kwargs):
            if gs.cache_info().currsize:
                failed.append(True)
                raise MemoryError
            return function(*args, **kwargs)

        return call

    for name in ("splu", "factor"):
        monkeypatch.setattr(_core, name, short(getattr(_core, name)))
    monkeypatch.setattr(_core.FactorF64, "refactor", short(_core.FactorF64.refactor))
    solved(A, WAYS[way])
    assert failed == [True]
    assert counts() == (0, 1)
    gs.cache_clear()
    monkeypatch.setattr(_core, "splu", lambda *args: (_ for _ in ()).throw(MemoryError))
    monkeypatch.setattr(_core, "factor", lambda *args, **kwargs: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):  # nothing to drop
        solved(A, WAYS[way])


# ---- threads


@pytest.mark.parametrize("way", ["spsolve", "splu", "cholesky"])
def test_threads(way):
    matrices = [spd_matrix(40 + 10 * k, seed=k) for k in range(3)]
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(150):
                A = matrices[rng.integers(3)]
                B = A.copy()
                B.data *= rng.uniform(1, 1.1)
                solved(B, WAYS[way], seed=seed)
                if rng.random() < 0.02:
                    gs.cache_clear()
                if rng.random() < 0.05:
                    gs.cache_limit(entries=int(rng.integers(1, 4)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gs.cache_limit(entries=64)
    assert errors == []


def test_two_threads_in_one_pattern(monkeypatch):
    """One takes the factor that was left, the other makes its own, and neither waits for the other."""
    A, b = gallery.named("poisson:30x30"), rhs(900)
    for _ in range(3):
        gs.spsolve(A, b)
    barrier, results, solve = threading.Barrier(2, timeout=30), {}, gs.LUFactor.solve

    def together(self, *args):
        barrier.wait()
        return solve(self, *args)

    monkeypatch.setattr(gs.LUFactor, "solve", together)

    def work(k):
        results[k] = gs.spsolve(A * (k + 1), b)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        accurate(A * (k + 1), results[k], b)
