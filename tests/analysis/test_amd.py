"""AMD: a permutation, deterministic, and as good as minimum degree by brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu import _core_testing


def graph_of(A, diagonal=False):
    """Pattern of A + A^T as (ptr, ind)."""
    dense_pattern = sp.csc_array(A, dtype=bool)
    G = sp.lil_array(dense_pattern + dense_pattern.T)
    G.setdiag(diagonal)
    G = sp.csc_array(G)
    G.eliminate_zeros()
    G.sort_indices()
    return G.indptr.astype(np.int64), G.indices.astype(np.int32)


def amd(A, **kwargs):
    perm = _core_testing.amd(*graph_of(A, **kwargs))
    assert perm.dtype == np.int32
    assert np.array_equal(np.sort(perm), np.arange(A.shape[0]))
    return perm


def adjacency(A):
    ptr, ind = graph_of(A)
    return [set(ind[ptr[i] : ptr[i + 1]].tolist()) for i in range(A.shape[0])]


def eliminate(neighbours, i):
    """Join the neighbours of `i` and take it out of the graph; how many there were."""
    front = neighbours[i]
    for j in front:
        neighbours[j] |= front
        neighbours[j] -= {i, j}
    return len(front)


def fill_of(A, perm):
    """Entries of L below the diagonal, by playing elimination on sets."""
    neighbours = adjacency(A)
    return sum(eliminate(neighbours, i) for i in perm.tolist())


def minimum_degree_fill(A):
    """The same with exact external degrees: smallest first, ties by number."""
    neighbours, fill = adjacency(A), 0
    left = set(range(A.shape[0]))
    while left:
        i = min(left, key=lambda k: (len(neighbours[k]), k))
        left.remove(i)
        fill += eliminate(neighbours, i)
    return fill


def grid(rows, cols):
    path = [sp.diags_array([np.ones(k - 1), np.ones(k - 1)], offsets=[-1, 1]) for k in (rows, cols)]
    return sp.csc_array(sp.kronsum(path[1], path[0]))


def test_tree_has_no_fill():
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 200):
        parent = [int(rng.integers(k)) for k in range(1, n)]
        A = sp.coo_array((np.ones(n - 1), (parent, range(1, n))), shape=(n, n))
        assert fill_of(A, amd(A)) == n - 1


@pytest.mark.parametrize("shape", [(1, 30), (7, 7), (12, 13), (20, 20)])
def test_grid_close_to_minimum_degree(shape):
    A = grid(*shape)
    assert fill_of(A, amd(A)) <= 1.15 * minimum_degree_fill(A)


def test_dense_rows_come_last():
    n = 1000
    A = sp.lil_array(sp.csc_array((n, n)))
    A.setdiag(1, 1)
    A[3, :] = 1
    A[700, :] = 1
    assert set(amd(A)[-2:].tolist()) == {3, 700}


def with_hubs(seed, n, hubs, degree):
    """A random tree and some more edges, and hubs that many of its vertices and half of the other hubs are next to."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(np.arange(1, n)), rng.integers(n, size=n // 2), n + np.repeat(np.arange(hubs), degree)]
    cols = [np.arange(1, n), rng.integers(n, size=n // 2), rng.integers(n, size=hubs * degree)]
    first, second = np.triu_indices(hubs, 1)
    near = rng.random(first.size) < 0.5
    rows, cols = np.concatenate([*rows, n + first[near]]), np.concatenate([*cols, n + second[near]])
    return sp.coo_array((np.ones(rows.size), (rows, cols)), shape=(n + hubs,) * 2)


@pytest.mark.parametrize(("count", "hubs"), [(40, False), (10, True)])
def test_close_to_minimum_degree(count, hubs):
    ours = theirs = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        A = with_hubs(seed, 250, 10, 30) if hubs else sp.random_array((60, 60), density=0.03, random_state=rng)
        ours += fill_of(A, amd(A))
        theirs += minimum_degree_fill(A)
    assert ours <= 1.03 * theirs


def test_rings_are_halved_round_by_round():
    """Of a ring no two neighbours go in one round: its tree is low, where one end after the other makes a chain."""
    n = 1000
    ptr, ind = graph_of(sp.coo_array((np.ones(n), (range(n), np.roll(range(n), 1))), shape=(n, n)))
    entries, _, levels, *_ = _core_testing.ordering_cost(ptr, ind, _core_testing.amd(ptr, ind))
    assert entries == 3 * n - 3
    assert levels <= 2 * np.log2(n) + 2


def test_vertices_between_hubs():
    """Hubs whose lists are too long to look a neighbour up, too short for dense rows: their neighbours wait."""
    n, degree = 6000, 600
    spokes = np.arange(2 * degree)
    rows = np.r_[spokes, spokes, np.arange(n - 1)]
    cols = np.r_[n + spokes % 2, n + 2 + spokes % 2, np.arange(1, n)]
    A = sp.coo_array((np.ones(rows.size), (rows, cols)), shape=(n + 4, n + 4))
    assert check_size(A)[0] <= 5 * n


def check_size(A):
    """What minimum degree counts while it orders is what its order costs, unless it left dense rows out."""
    ptr, ind = graph_of(A)
    perm, size = _core_testing.amd(ptr, ind), _core_testing.amd_size(ptr, ind)
    if size is not None:
        assert size == _core_testing.ordering_cost(ptr, ind, perm)[:2]
    return size


def test_sizes_with_vertices_of_low_degree():
    rng = np.random.default_rng(1)
    for density in (0.3, 0.6, 1, 1.5):  # entries a row
        for n in (50, 200):
            A = sp.coo_array((np.ones(int(density * n)), rng.integers(0, n, (2, int(density * n)))), shape=(n, n))
            assert check_size(A)


def test_size_is_counted():
    assert check_size(sp.csc_array((5, 5))) == (5, 5)
    assert check_size(sp.csc_array(np.ones((9, 9)))) == (45, 285)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        assert check_size(sp.random_array((80, 80), density=0.01 + 0.06 * rng.random(), random_state=rng))
        assert check_size(with_hubs(seed, 200, 8, 30))
    assert check_size(grid(30, 31))
    dense = sp.lil_array(sp.eye_array(400))
    dense[3, :] = 1
    assert check_size(dense) is None


def test_deterministic_and_unsorted_lists_are_fine():
    A = grid(15, 15)
    assert np.array_equal(amd(A), amd(A))
    ptr, ind = graph_of(A)
    shuffled = ind.copy()
    for i in range(ptr.size - 1):
        np.random.default_rng(i).shuffle(shuffled[ptr[i] : ptr[i + 1]])
    assert np.array_equal(np.sort(_core_testing.amd(ptr, shuffled)), np.arange(ptr.size - 1))


@given(st.integers(1, 25), st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=120))
@settings(max_examples=150, deadline=None)
def test_any_graph(n, edges):
    rows, cols = np.array([(i % n, j % n) for i, j in edges], dtype=int).reshape(-1, 2).T
    A = sp.coo_array((np.ones(rows.size), (rows, cols)), shape=(n, n))
    assert fill_of(A, amd(A)) <= 1.25 * minimum_degree_fill(A) + 4


@pytest.mark.parametrize("n", [20, 300])
def test_what_is_almost_complete_keeps_its_order(n):
    """No order has less fill to speak of, and minimum degree would look at every entry a few times."""
    A = np.random.default_rng(0).random((n, n)) > 0.15  # in one triangle or the other: 98%
    np.testing.assert_array_equal(amd(A), np.arange(n))
    assert not np.array_equal(amd(np.triu(A)), np.arange(n))
