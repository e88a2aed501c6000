"""The stages of the analysis give the same on one thread and on several: graphs large enough for teams."""

import numpy as np
import pytest

from gpusplu import _core, _core_testing, gallery
from support.analyses import supernodal_structure


@pytest.fixture(scope="module")
def graph():
    A = gallery.named("poisson:300x300").tocsc()
    return _core_testing.symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))


def by_one_and_three(threads, work):
    """What `work` returns on one thread and on three."""
    results = []
    for count in (1, 3):
        threads(count)
        results.append(work())
    return results


def orders(graph):
    """Dissection: many subtrees; natural: a band, nearly a chain; random: edges between all runs of vertices."""
    n = graph[0].size - 1
    natural = np.arange(n, dtype=np.int32)
    return {
        "dissection": _core_testing.nested_dissection(*graph),
        "natural": natural,
        "random": np.random.default_rng(0).permutation(natural),
    }


@pytest.mark.parametrize("name", ["dissection", "natural", "random"])
def test_tree_and_counts(graph, threads, name):
    perm = orders(graph)[name]
    np.testing.assert_array_equal(
        *by_one_and_three(threads, lambda: _core_testing.elimination_tree(*graph, perm)), strict=True
    )
    one, several = by_one_and_three(threads, lambda: _core_testing.ordering_cost(*graph, perm))
    assert one == several


@pytest.mark.parametrize("name", ["dissection", "natural"])
def test_structure(graph, threads, name):
    perm = orders(graph)[name]
    results = by_one_and_three(threads, lambda: supernodal_structure(*graph, perm))
    for one, several in zip(*results, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, several)
            continue
        for field in ("parent", "col_count", "super_ptr", "super_parent", "row_ptr", "row_ind", "rel_ind"):
            np.testing.assert_array_equal(getattr(one, field), getattr(several, field))


@pytest.mark.parametrize("name", ["elast:14x14x14", "poisson:360x360"])  # twins; a graph that several threads coarsen
def test_dissection_and_compression(threads, name):
    A = gallery.named(name).tocsc()

    def work():
        graph = _core_testing.symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))
        return *graph, _core_testing.nested_dissection(*graph)

    for one, several in zip(*by_one_and_three(threads, work), strict=True):
        np.testing.assert_array_equal(one, several)


def test_symmetrize_permuted(threads):
    A = gallery.named("rlc:300x300").tocsc()
    n = A.shape[0]
    row_of_col = np.random.default_rng(1).permutation(n).astype(np.int32)
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32), row_of_col
    results = by_one_and_three(threads, lambda: _core_testing.symmetrize(*arrays))
    B = A[row_of_col]
    B.data[:] = 1
    expected = (B + B.T).tocsc()
    expected.setdiag(0)
    expected.eliminate_zeros()
    expected.sort_indices()
    for ptr, ind in results:
        np.testing.assert_array_equal(ptr, expected.indptr)
        np.testing.assert_array_equal(ind, expected.indices)


def test_matching(threads):
    """Columns with stored zeros, without a diagonal, and with equal largest entries."""
    A = gallery.named("rlc:250x250").tocsc()
    random = np.random.default_rng(2)
    values = A.data * random.choice([0.0, 1.0, 1.0, 1e3], A.nnz)
    values[A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))] += random.uniform(0.5, 2)
    pattern = A.indptr.astype(np.int64), A.indices.astype(np.int32)

    def work():
        return [_core_testing.max_product_matching(*pattern, data) for data in (A.data, values)]

    np.testing.assert_equal(*by_one_and_three(threads, work))


@pytest.mark.parametrize("partner", [False, True])
def test_symmetry_of_a_distant_entry(threads, partner):
    """An entry far below the band, where a slice of rows of a symmetric matrix would have none."""
    A = gallery.named("poisson:300x300").tolil()
    A[A.shape[0] - 1, 3] = 7.0
    if partner:
        A[3, A.shape[0] - 1] = 5.0
    A = A.tocsc()
    arrays = (A.indptr.astype(np.int64), A.indices.astype(np.int32))
    results = []
    for count in (1, 3):
        threads(count)
        results.append((_core.symmetry_traits(*arrays, A.data), *_core_testing.symmetrize(*arrays)))
        assert results[-1][0]["hermitian_error"] == (2.0 if partner else 7.0) / abs(A.data).max()
        assert results[-1][1][-1] == A.nnz - A.shape[0] + (0 if partner else 1)
    np.testing.assert_equal(*results)
