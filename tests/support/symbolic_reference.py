"""Brute force on dense boolean matrices: what the symbolic analysis must reproduce."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


def random_pattern(n, density, seed):
    """Boolean n x n pattern as canonical CSC arrays (ptr int64, ind int32)."""
    dense = np.random.default_rng(seed).random((n, n)) < density
    return dense, *pattern_arrays(dense)


def pattern_arrays(dense):
    matrix = sp.csc_array(dense)
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


def dense_of(n, ptr, ind):
    dense = np.zeros((n, n), bool)
    for j in range(n):
        dense[ind[ptr[j] : ptr[j + 1]], j] = True
    return dense


def graph_of(dense):
    graph = dense | dense.T
    np.fill_diagonal(graph, False)
    return graph


def eliminate(graph):
    """Pattern of the Cholesky factor (lower triangle with diagonal) of a dense boolean symmetric pattern."""
    n = len(graph)
    factor = np.tril(graph) | np.eye(n, dtype=bool)
    for j in range(n):
        below = np.flatnonzero(factor[j + 1 :, j]) + j + 1
        factor[np.ix_(below, below)] |= np.tri(len(below), dtype=bool)
    return factor


def tree_of(factor):
    n = len(factor)
    parent = np.full(n, -1, np.int32)
    for j in range(n):
        below = np.flatnonzero(factor[j + 1 :, j])
        if len(below):
            parent[j] = j + 1 + below[0]
    return parent


@st.composite
def graphs(draw, max_size=24):
    """Dense boolean symmetric patterns without diagonal, from empty to dense, and a permutation."""
    n = draw(st.integers(0, max_size))
    seed = draw(st.integers(0, 2**32 - 1))
    density = draw(st.sampled_from([0.0, 0.03, 0.08, 0.15, 0.4, 1.0]))
    rng = np.random.default_rng(seed)
    graph = graph_of(rng.random((n, n)) < density)
    if draw(st.booleans()) and n > 2:  # a hub that touches everything
        graph[0, 1:] = graph[1:, 0] = True
    return graph, rng.permutation(n).astype(np.int32)
