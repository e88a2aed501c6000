"""Elimination tree, postorder and column counts against dense symbolic elimination."""

import numpy as np
import pytest
from hypothesis import given, settings

from gpusplu import _core_testing
from support.symbolic_reference import eliminate, graphs, pattern_arrays, tree_of


def subtree_sizes(parent):
    size = np.ones(len(parent), int)
    for j, p in enumerate(parent):
        if p >= 0:
            size[p] += size[j]
    return size


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_tree_counts_and_cost(case):
    graph, perm = case
    n = len(graph)
    arrays = pattern_arrays(graph)
    parent = _core_testing.elimination_tree(*arrays, perm)
    factor = eliminate(graph[perm][:, perm])
    assert (parent == tree_of(factor)).all()

    post = _core_testing.postorder(parent)
    assert sorted(post) == list(range(n))
    place = np.argsort(post)
    post_parent = np.array([place[parent[v]] if parent[v] >= 0 else -1 for v in post], np.int32)
    assert all(p == -1 or p > j for j, p in enumerate(post_parent))
    size = subtree_sizes(post_parent)
    for j, p in enumerate(post_parent):  # subtrees are contiguous: j - size[j] + 1 .. j, inside of p's
        assert p == -1 or (j - size[j] + 1 >= p - size[p] + 1)
    assert (_core_testing.postorder(post_parent) == np.arange(n)).all()

    order = perm[post]
    counts = _core_testing.column_counts(*arrays, order, post_parent)
    expected = eliminate(graph[order][:, order]).sum(axis=0)
    assert (counts == expected).all()

    lnz, flops, levels = _core_testing.ordering_cost(*arrays, perm)
    assert lnz == expected.sum()
    assert flops == pytest.approx((expected.astype(float) ** 2).sum())
    depth = np.zeros(n, int)
    for j in reversed(range(n)):
        depth[j] = 1 + (depth[post_parent[j]] if post_parent[j] >= 0 else 0)
    assert levels == depth.max(initial=0)


def test_long_path_needs_no_stack():
    n = 200_000
    ptr = np.minimum(np.maximum(np.arange(n + 1) * 2 - 1, 0), 2 * n - 2).astype(np.int64)
    ind = np.empty(2 * n - 2, np.int32)
    ind[0::2], ind[1::2] = np.arange(1, n), np.arange(n - 1)
    parent = _core_testing.elimination_tree(ptr, ind, np.arange(n, dtype=np.int32))
    assert (parent[:-1] == np.arange(1, n)).all() and parent[-1] == -1
    assert _core_testing.ordering_cost(ptr, ind, np.arange(n, dtype=np.int32))[::2] == (2 * n - 1, n)
