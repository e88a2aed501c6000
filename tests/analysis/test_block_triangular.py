"""Block triangular form against scipy.sparse.csgraph's strongly connected components."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

from gpusplu import _core_testing
from support.analyses import analyze


def block_triangular(A, row_of_col=None):
    """Runs it and checks everything that must hold for every matrix."""
    A = sp.csc_array(A)
    n = A.shape[0]
    args = () if row_of_col is None else (row_of_col,)
    perm, block_ptr = _core_testing.block_triangular(A.indptr.astype(np.int64), A.indices.astype(np.int32), *args)
    assert perm.dtype == block_ptr.dtype == np.int32
    assert np.array_equal(np.sort(perm), np.arange(n))
    assert block_ptr[0] == 0 and block_ptr[-1] == n and np.all(np.diff(block_ptr) > 0)
    B = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape).T.tocsr()
    B = B if row_of_col is None else B[row_of_col]
    block_of = np.repeat(np.arange(block_ptr.size - 1), np.diff(block_ptr))
    permuted = B[perm][:, perm].tocoo()
    assert np.all(block_of[permuted.row] <= block_of[permuted.col])
    if n:
        n_blocks, label = csgraph.connected_components(B, connection="strong")
        assert n_blocks == block_ptr.size - 1
        assert np.all((np.diff(label[perm]) == 0) == (np.diff(block_of) == 0))
    assert np.all(np.diff(perm)[np.diff(block_of) == 0] > 0)
    return perm, block_ptr


def test_irreducible_stays_in_place():
    n = 2000
    ring = sp.coo_array((np.ones(2 * n), (np.r_[0:n, 0:n], np.r_[0:n, np.roll(np.arange(n), 1)])), shape=(n, n))
    perm, block_ptr = block_triangular(ring)
    assert block_ptr.tolist() == [0, n] and np.array_equal(perm, np.arange(n))


def test_deep_chain_needs_no_recursion():
    n = 200_000
    block_triangular(sp.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, 1]))
    block_triangular(sp.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, -1]))


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=60), st.randoms())
@settings(max_examples=150, deadline=None)
def test_any_pattern(n, entries, random):
    rows, cols = np.array(sorted({(i % n, j % n) for i, j in entries}), dtype=int).reshape(-1, 2).T
    A = sp.csc_array(sp.coo_array((np.ones(rows.size), (rows, cols)), shape=(n, n)))
    block_triangular(A)
    row_of_col = list(range(n))
    random.shuffle(row_of_col)
    block_triangular(A, np.array(row_of_col, np.int32))


@pytest.mark.parametrize("name", ["rajat19", "bayer10", "sherman5", "bp_1000", "memplus"])
def test_real(real_matrix, name):
    A = real_matrix(name)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    row_of_col = _core_testing.max_product_matching(ptr, ind, A.data)[1]
    perm, block_ptr = block_triangular(A, row_of_col)
    again = _core_testing.block_triangular(ptr, ind, row_of_col)
    assert np.array_equal(perm, again[0]) and np.array_equal(block_ptr, again[1])


def analysis(A, **options):
    A = sp.csc_array(A)
    A.sort_indices()
    return analyze(A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data, **options)


def triangular(n, rng):
    return sp.tril(sp.random_array((n, n), density=5 / n, rng=rng), -1) + sp.diags_array(rng.uniform(1, 2, n))


def test_a_large_triangular_matrix_in_disguise_has_no_fill():
    """The union with the transpose is one block with 1e10 operations."""
    rng = np.random.default_rng(0)
    n = 8000
    A = sp.csc_array(triangular(n, rng))[rng.permutation(n)][:, rng.permutation(n)]
    symbolic = analysis(A)
    assert symbolic.method == "column"
    assert symbolic.block_ptr.size == n + 1
    assert symbolic.flops == 0


def test_blocks_with_fill_are_kept_apart_where_fronts_could_not():
    """Fronts would be faster in each block, but their coupling makes the whole much harder."""
    rng = np.random.default_rng(1)
    n, count = 700, 10
    block = sp.random_array((n, n), density=3.5 / n, rng=rng) + 5 * sp.eye_array(n)
    A = sp.block_diag([block] * count) + 0.1 * triangular(n * count, rng)
    symbolic = analysis(A)
    assert symbolic.method == "column"
    assert symbolic.block_ptr.size > count


def test_blocks_that_hardly_touch_are_ordered_as_a_whole():
    """As for fronts alone: to order by blocks first would be work done twice."""
    rng = np.random.default_rng(1)
    n, count = 1000, 6
    block = sp.random_array((n, n), density=5 / n, rng=rng) + 5 * sp.eye_array(n)
    link = sp.coo_array(([1.0], ([0], [n * count - 1])), shape=(n * count, n * count))
    A = sp.block_diag([block] * count) + link
    symbolic = analysis(A)
    assert symbolic.method == "front"
    assert np.array_equal(symbolic.col_perm, analysis(A, method="front").col_perm)
