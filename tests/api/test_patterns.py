"""Patterns that are remembered: what is found again, and that nothing stale is."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import _core
from gpusplu.dispatch import patterns
from support.patterns import NEW, REUSED, WAYS, accurate, counts, solved
from support.small_matrices import phased, random_matrix, rhs, spd_matrix


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
    one, other = (gs.splu(A, diag_pivot_thresh=0.5) for _ in range(2))
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


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_deterministic_calls_do_not_look_back(make):
    A = spd_matrix()
    with_what_was_before = [make(A) for _ in range(2)][1]
    assert "reused" in with_what_was_before.stats["analysis"]
    before = gs.cache_info()
    for _ in range(2):
        assert "reused" not in make(A, deterministic=True).stats["analysis"]
    assert gs.cache_info() == before
