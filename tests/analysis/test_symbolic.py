"""Graphs, elimination trees, column counts and patterns of factors against dense boolean arithmetic."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusplu as gs
from gpusplu import _core_testing, gallery
from support import column_reference
from support.symbolic_reference import dense_of, eliminate, graph_of, graphs, pattern_arrays, random_pattern, tree_of


def is_sorted(ptr, ind):
    return all((np.diff(ind[a:b]) > 0).all() for a, b in pairwise(ptr))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 30), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_symmetrize(n, density, symmetric, matched, seed):
    dense, *_ = random_pattern(n, density, seed)
    if symmetric:
        dense = dense | dense.T
    row_of_col = np.random.default_rng(seed).permutation(n).astype(np.int32)
    ptr, ind = _core_testing.symmetrize(*pattern_arrays(dense), *([row_of_col] if matched else []))
    assert is_sorted(ptr, ind)
    assert (dense_of(n, ptr, ind) == graph_of(dense[row_of_col] if matched else dense)).all()


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


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 25), st.sampled_from([0.0, 0.04, 0.1, 0.2, 0.5, 1.0]), st.integers(0, 2**32 - 1))
def test_lu_pattern(n, density, seed):
    dense, *arrays = random_pattern(n, density, seed)
    rng = np.random.default_rng(seed + 1)
    row_perm, col_perm = rng.permutation(n).astype(np.int32), rng.permutation(n).astype(np.int32)
    (l_ptr, l_ind), (u_ptr, u_ind), flops = _core_testing.lu_pattern(*arrays, row_perm, col_perm)
    filled = column_reference.eliminate(dense[row_perm][:, col_perm])
    lower, upper = np.tril(filled), np.triu(filled)
    assert (dense_of(n, l_ptr, l_ind) == lower).all() and (dense_of(n, u_ptr, u_ind) == upper).all()
    for j in range(n):
        assert (np.diff(l_ind[l_ptr[j] : l_ptr[j + 1]]) > 0).all() and l_ind[l_ptr[j]] == j
        assert (np.diff(u_ind[u_ptr[j] : u_ptr[j + 1]]) > 0).all() and u_ind[u_ptr[j + 1] - 1] == j
    below, right = lower.sum(axis=0) - 1, upper.sum(axis=1) - 1
    assert flops == pytest.approx((below + 2 * below * right).sum())


def network(n):
    """A tree with random parents and a fifth as many other edges: balls grow as fast as in space, or faster."""
    rng = np.random.default_rng(0)
    others = n // 5
    i = np.concatenate([np.arange(1, n), rng.integers(0, n, others)])
    j = np.concatenate([rng.integers(np.arange(1, n) // 2, np.arange(1, n)), rng.integers(0, n, others)])
    edges = sp.coo_array((np.full(i.size, -1.0), (i, j)), shape=(n, n))
    return sp.csc_array(edges + edges.T + sp.diags_array(np.full(n, float(n))))


@pytest.mark.parametrize(
    ("A", "orderings"),
    [
        (gallery.named("poisson:20x20x20"), {"nd"}),
        (gallery.named("elast:14x14x14"), {"nd"}),
        (gallery.named("poisson:90x90"), {"amd"}),
        (network(8000), {"amd"}),
    ],
    ids=["grid in space", "elements in space", "grid", "network"],
)
def test_dissection_alone_orders_meshes_in_space(A, orderings):
    symbolic = gs.analyze(A, engine="cpu", cholesky=True)
    assert {symbolic.ordering, *(ordering for ordering, *_ in symbolic.considered)} == orderings
