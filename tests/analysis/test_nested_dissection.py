"""Nested dissection: permutations of any graph, the same for any number of threads, of known quality on grids."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu import _core_testing, gallery


@pytest.fixture(autouse=True, scope="module")
def three_threads():
    before = _core_testing.num_threads()
    _core_testing.set_num_threads(3)
    yield
    _core_testing.set_num_threads(before)


def graph(a):
    """ptr and ind of the pattern of A + A^T without its diagonal."""
    a = sp.csc_array(a)
    a = sp.coo_array(abs(a) + abs(a).T)
    off = a.row != a.col
    a = sp.csc_array((np.ones(off.sum()), (a.row[off], a.col[off])), shape=a.shape)
    return a.indptr.astype(np.int64), a.indices.astype(np.int32)


def edges(n, pairs):
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return graph(sp.coo_array((np.ones(first.size), (first, second)), shape=(n, n)))


def order(ptr, ind, threads=3):
    _core_testing.set_num_threads(threads)
    perm = _core_testing.nested_dissection(ptr, ind)
    _core_testing.set_num_threads(3)
    assert perm.dtype == np.int32
    assert np.array_equal(np.sort(perm), np.arange(len(ptr) - 1))
    return perm


def fill(ptr, ind, perm):
    return _core_testing.ordering_cost(ptr, ind, perm)[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 600), st.floats(0, 6), st.integers(0, 2**32 - 1))
def test_random_graphs(n, degree, seed):
    rng = np.random.default_rng(seed)
    m = int(n * degree / 2)
    ptr, ind = edges(n, rng.integers(0, n, (m, 2)))
    assert np.array_equal(order(ptr, ind, threads=1), order(ptr, ind, threads=2))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.data())
def test_small_graphs(n, data):
    vertex = st.integers(0, n - 1)
    order(*edges(n, data.draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n))))


@pytest.mark.parametrize("name", ["poisson:150x150", "poisson:26x26x26", "elast:16x16x16", "rlc:150x150"])
def test_threads_do_not_matter(name):
    ptr, ind = graph(gallery.named(name))
    one, two, three = (order(ptr, ind, threads=threads) for threads in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_fill_of_a_square_grid():
    # In units of the leading term of George's nested dissection, 7.75 k^2 log2 k (George, Liu, 1981, section 8.3):
    # METIS 0.37, minimum degree 0.43.
    k = 150
    ptr, ind = graph(gallery.poisson(k, k))
    assert fill(ptr, ind, order(ptr, ind)) < 0.42 * 7.75 * k**2 * np.log2(k)


def test_fill_of_elasticity():
    # Edge cuts at the coarse levels; with vertex separators there: 2.0e6. METIS: 1.60e6.
    ptr, ind = graph(gallery.named("elast:12x12x12"))
    assert fill(ptr, ind, order(ptr, ind)) < 1.75e6


def test_twins_stay_together():
    ptr, ind = graph(sp.kron(gallery.poisson(12, 12, 12), np.ones((3, 3))))
    place = np.argsort(order(ptr, ind)).reshape(-1, 3)
    assert np.all(place.max(axis=1) - place.min(axis=1) == 2)


def test_disconnected_graph():
    parts = [gallery.poisson(20, 30), gallery.poisson(40, 40), sp.csc_array((50, 50)), gallery.poisson(9)] * 3
    ptr, ind = graph(sp.block_diag(parts))
    whole = fill(ptr, ind, order(ptr, ind))
    alone = sum(fill(*g, order(*g)) for g in map(graph, parts))
    assert whole < 1.05 * alone


@pytest.mark.parametrize("n", [4, 100, 20_000])
def test_stars_have_no_fill(n):
    ptr, ind = edges(n, [(0, i) for i in range(1, n)])
    assert fill(ptr, ind, order(ptr, ind)) == 2 * n - 1


@pytest.mark.parametrize("n", [3, 100, 20_000])
def test_trees_have_little_fill(n):
    # Taking vertices of degree 2 out of chains costs one entry each and makes the elimination tree shallow.
    rng = np.random.default_rng(n)
    ptr, ind = edges(n, [(rng.integers(0, i), i) for i in range(1, n)])
    assert fill(ptr, ind, order(ptr, ind)) < 3 * n


def test_long_paths_give_shallow_trees():
    n = 1 << 14
    ptr, ind = edges(n, [(i - 1, i) for i in range(1, n)])
    lnz, _, levels = _core_testing.ordering_cost(ptr, ind, order(ptr, ind))
    assert lnz < 3 * n
    assert levels <= 40


def without_matching(n):
    """A clique minus a perfect matching: no twins, no separator worth the name."""
    a = np.ones((n, n), np.int8)
    a[np.arange(n), np.arange(n) ^ 1] = 0
    return a


DENSE = {
    "without edges": lambda: sp.csc_array((300, 300)),
    "complete": lambda: np.ones((1500, 1500)),
    "nearly complete": lambda: without_matching(2600),
    "complete bipartite": lambda: np.kron([[0, 1], [1, 0]], np.ones((1500, 1500), np.int8)),
    "a heavy class of twins": lambda: sp.block_diag([gallery.poisson(60, 60), np.ones((400, 400))]),
}


@pytest.mark.parametrize("kind", DENSE)
def test_graphs_without_separators(kind):
    order(*graph(DENSE[kind]()))


def test_dense_rows_go_last():
    n = 10_000
    grid = sp.lil_array(gallery.poisson(100, 100))
    dense = [17, 5000, 9999]
    grid[dense, :] = 1
    ptr, ind = graph(grid)
    assert sorted(order(ptr, ind)[-3:]) == dense
    assert order(ptr, ind).size == n


def test_diagonal_is_ignored():
    a = sp.csc_array(gallery.poisson(40, 40))
    a.sort_indices()
    with_diagonal = order(a.indptr.astype(np.int64), a.indices.astype(np.int32))
    ptr, ind = graph(a)
    ind = np.concatenate([np.sort(ind[ptr[j] : ptr[j + 1]]) for j in range(len(ptr) - 1)])
    assert np.array_equal(with_diagonal, order(ptr, ind))
