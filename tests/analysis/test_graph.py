"""Symmetrized graphs against dense boolean arithmetic."""

from itertools import pairwise

import numpy as np
import pytest

from gpusplu import _core_testing
from support.symbolic_reference import dense_of, graph_of, pattern_arrays, random_pattern


def is_sorted(ptr, ind):
    return all((np.diff(ind[a:b]) > 0).all() for a, b in pairwise(ptr))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("symmetric", [False, True])
def test_symmetrize(n, density, symmetric):
    dense, *_ = random_pattern(n, density, 1)
    if symmetric:
        dense = dense | dense.T
    ptr, ind = _core_testing.symmetrize(*pattern_arrays(dense))
    assert is_sorted(ptr, ind)
    assert (dense_of(n, ptr, ind) == graph_of(dense)).all()


@pytest.mark.parametrize("n", [0, 1, 5, 30])
@pytest.mark.parametrize("density", [0.1, 0.5])
def test_symmetrize_with_matching(n, density):
    dense, *arrays = random_pattern(n, density, 2)
    row_of_col = np.random.default_rng(3).permutation(n).astype(np.int32)
    ptr, ind = _core_testing.symmetrize(*arrays, row_of_col)
    assert is_sorted(ptr, ind)
    assert (dense_of(n, ptr, ind) == graph_of(dense[row_of_col])).all()


def test_nearly_symmetric_is_not_taken_for_symmetric():
    full, *_ = random_pattern(12, 0.4, 4)
    full = full | full.T
    rows, cols = np.nonzero(full & ~np.eye(12, dtype=bool))
    for i, j in zip(rows, cols, strict=True):
        dense = full.copy()
        dense[i, j] = False
        ptr, ind = _core_testing.symmetrize(*pattern_arrays(dense))
        assert (dense_of(12, ptr, ind) == graph_of(full)).all(), (i, j)


def test_symmetrize_blocks():
    rng = np.random.default_rng(5)
    n = 25
    dense, *arrays = random_pattern(n, 0.15, 6)
    row_perm, col_perm = rng.permutation(n).astype(np.int32), rng.permutation(n).astype(np.int32)
    inverse = np.argsort(row_perm).astype(np.int32)
    permuted = dense[row_perm][:, col_perm]
    for starts in [(0,), (0, 1), (0, 3, 4, 17), (0, 20), range(n)]:
        block = np.searchsorted(starts, np.arange(n), side="right").astype(np.int32)
        ptr, ind = _core_testing.symmetrize_blocks(*arrays, inverse, col_perm, block)
        assert is_sorted(ptr, ind)
        assert (dense_of(n, ptr, ind) == graph_of(permuted & (block[:, None] == block))).all()


def test_threads_do_not_change_the_graph():
    n, k = 60000, 700000
    rng = np.random.default_rng(7)
    cells = np.unique(rng.integers(0, n, k) * n + rng.integers(0, n, k))
    ind = (cells % n).astype(np.int32)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(cells // n, minlength=n))]).astype(np.int64)
    before = _core_testing.num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            _core_testing.set_num_threads(threads)
            results.append(_core_testing.symmetrize(ptr, ind))
            results.append(_core_testing.symmetrize(*results[-1]))  # symmetric: the other path, same result
    finally:
        _core_testing.set_num_threads(before)
    for ptr_k, ind_k in results[1:]:
        assert np.array_equal(ptr_k, results[0][0]) and np.array_equal(ind_k, results[0][1])
