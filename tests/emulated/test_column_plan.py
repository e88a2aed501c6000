"""The plan of the column engines against its plain reference, and the dependencies that its levels must respect."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu.engines.columns.plan import LuPattern, make_column_plan
from support import column_reference as reference
from support.column_reference import pattern_of, planned

ARRAYS = (
    *("col_ptr", "row", "diag", "row_ptr", "col", "place", "entry_source", "entry_place", "entry_scale"),
    *("level", "level_left", "level_ptr", "level_column", "u_ptr", "map_ptr", "map"),
)


def check_equal(plan, expected):
    for name in ARRAYS:
        found, wanted = getattr(plan, name), getattr(expected, name)
        assert found.dtype == wanted.dtype, name
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert (plan.n, plan.nnz, plan.n_levels) == (expected.n, expected.nnz, expected.n_levels)
    assert plan.flops == expected.flops
    assert plan.has_maps == expected.has_maps


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.sampled_from([0.02, 0.1, 0.3]), st.booleans(), st.integers(0, 2**32 - 1))
def test_equals_the_reference(n, density, symmetric, seed):
    A, expected = reference.random_columns(n, density, seed=seed, symmetric=symmetric)
    check_equal(planned(A, expected), expected)


def test_without_maps_and_without_scales():
    A, expected = reference.random_columns(30)
    plan = planned(A, expected, most_mapped=expected.flops - 1)
    assert not plan.has_maps
    assert plan.map.size == plan.map_ptr.size == 0
    np.testing.assert_array_equal(plan.level_column, expected.level_column)
    assert planned(A, expected, most_mapped=expected.flops).has_maps
    unscaled = make_column_plan(pattern_of(A), plan.row_perm, plan.col_perm, np.empty(0), np.empty(0))
    assert unscaled.entry_scale.size == 0


def test_long_columns_have_no_maps():
    n = 65536
    arrow = sp.eye_array(n, format="lil")
    arrow[0, 1], arrow[1, 0], arrow[:, n - 1] = 1, 1, 1
    identity = np.arange(n, dtype=np.int32)
    plan = make_column_plan(pattern_of(arrow.tocsc()), identity, identity)
    assert not plan.has_maps
    short = make_column_plan(pattern_of(arrow.tocsc()[1:, 1:]), identity[:-1], identity[:-1])
    assert short.has_maps


def test_threads_do_not_matter(threads):
    A, expected = reference.random_columns(300, 0.02)
    threads(3)
    check_equal(planned(A, expected), expected)


def hazards(plan, level):
    """(i, j, k): columns i and j are of one level, and i writes the entry (j, k) that j reads."""
    columns = sp.csc_array((np.ones(plan.nnz), plan.row, plan.col_ptr), shape=(plan.n, plan.n)).toarray() != 0
    found = []
    for i in range(plan.n):
        for j in i + 1 + np.flatnonzero(columns[i + 1 :, i]):
            if level[i] == level[j]:
                found += [(i, j, k) for k in j + 1 + np.flatnonzero(columns[i, j + 1 :] & columns[j, j + 1 :])]
    return found


def hazardous_matrix():
    """L(1, 0) and U(0, 2), but no U(0, 1): column 0 writes (1, 2) and column 1 reads it."""
    return sp.csc_array([[4.0, 0, 1, 0], [2, 4, 0, 0], [0, 1, 4, 1], [0, 0, 1, 4]])


def test_levels_keep_readers_behind_writers():
    A = hazardous_matrix()
    identity = np.arange(4, dtype=np.int32)
    plan = make_column_plan(pattern_of(A), identity, identity)
    assert hazards(plan, plan.level_left) == [(0, 1, 2)]
    assert plan.level_left[0] == plan.level_left[1]  # GLU 1.0 works both off at once
    assert hazards(plan, plan.level) == []
    assert plan.level[0] < plan.level[1]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 25), st.sampled_from([0.05, 0.15, 0.3]), st.integers(0, 2**32 - 1))
def test_no_plan_has_hazards(n, density, seed):
    plan = planned(*reference.random_columns(n, density, seed=seed))
    assert hazards(plan, plan.level) == []
    rows, cols = plan.row, np.repeat(np.arange(n), np.diff(plan.col_ptr))
    upper = rows < cols
    assert (plan.level[rows[upper]] < plan.level[cols[upper]]).all()
    assert (plan.level_left[rows[upper]] < plan.level_left[cols[upper]]).all()


def test_errors():
    A, expected = reference.random_columns(5)
    pattern, perm = pattern_of(A), np.arange(5, dtype=np.int32)
    with pytest.raises(ValueError, match=r"row_perm is not a permutation of 0 \.\. 4"):
        make_column_plan(pattern, perm[:4], perm)
    with pytest.raises(ValueError, match="scales of rows and columns come together"):
        make_column_plan(pattern, perm, perm, np.ones(5))


def test_columns_that_were_found_elsewhere():
    A, expected = reference.random_columns(30, 0.1, seed=3, symmetric=False)
    found = planned(A, expected)
    columns = LuPattern(*(np.array(a) for a in (found.col_ptr, found.row, found.diag)))
    plan = planned(A, expected, columns=columns)
    check_equal(plan, expected)
    assert (plan.symbolic, found.symbolic) == ("device", "host")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ptr, row, diag: (ptr[:-1], row, diag), "pointers of L"),
        (lambda ptr, row, diag: (ptr, row[:-1], diag), "too few row"),
        (lambda ptr, row, diag: (ptr[::-1].copy(), row, diag), "must start with 0"),
        (lambda ptr, row, diag: (np.r_[0, ptr[-1], ptr[2:]], row, diag), "must ascend"),
        (lambda ptr, row, diag: (ptr, row, diag[:-1]), "diag has"),
        (lambda ptr, row, diag: (ptr, row, diag - 1), "place of the diagonal"),
        (lambda ptr, row, diag: (ptr, np.where(row == row.max(), 10**6, row), diag), "place of the diagonal|ascend"),
        (lambda ptr, row, diag: (np.arange(len(ptr)), np.arange(len(diag)), np.arange(len(diag))), "no place for"),
    ],
)
def test_columns_of_something_else(change, message):
    A, expected = reference.random_columns(30, 0.1, seed=3, symmetric=False)
    found = planned(A, expected)
    ptr, row, diag = change(*(np.array(a) for a in (found.col_ptr, found.row, found.diag)))
    columns = LuPattern(ptr.astype(np.int64), row.astype(np.int32), diag.astype(np.int64))
    with pytest.raises(ValueError, match=message):
        planned(A, expected, columns=columns)
