"""The supernodal structure: every invariant of analysis/symbolic.hpp, by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu import _core
from gpusplu.cost.calibration import for_core
from support.analyses import supernodal_structure
from support.small_matrices import random_matrix
from support.symbolic_reference import eliminate, graphs, pattern_arrays, tree_of


def levels_of(parent):
    depth = np.zeros(len(parent), int)
    for j in reversed(range(len(parent))):
        depth[j] = 1 + (depth[parent[j]] if parent[j] >= 0 else 0)
    return depth.max(initial=0)


def dense_front_flops(width, height, cholesky):
    below = np.arange(height, width + height)
    return float(((below + 1) ** 2).sum() if cholesky else (below + 2 * below**2).sum())


def check_structure(graph, order, sym):
    n = len(graph)
    factor = eliminate(graph[order][:, order])
    assert sorted(order) == list(range(n))
    assert (sym.parent == tree_of(factor)).all()
    assert (sym.col_count == factor.sum(axis=0)).all()
    assert sym.super_ptr[0] == 0 and sym.super_ptr[-1] == n and (np.diff(sym.super_ptr) > 0).all()
    assert len(sym.super_parent) == sym.nsuper == len(sym.super_ptr) - 1 == len(sym.row_ptr) - 1
    super_of = np.repeat(np.arange(sym.nsuper), np.diff(sym.super_ptr))
    for s in range(sym.nsuper):
        begin, end = sym.super_ptr[s : s + 2]
        rows = sym.row_ind[sym.row_ptr[s] : sym.row_ptr[s + 1]]
        assert (rows == end + np.flatnonzero(factor[end:, begin:end].any(axis=1))).all()
        p = sym.super_parent[s]
        assert p == (super_of[rows[0]] if len(rows) else -1)
        if p >= 0:
            front = np.concatenate(
                [np.arange(sym.super_ptr[p], sym.super_ptr[p + 1]), sym.row_ind[sym.row_ptr[p] : sym.row_ptr[p + 1]]]
            )
            assert (front[sym.rel_ind[sym.row_ptr[s] : sym.row_ptr[s + 1]]] == rows).all()
    descendants = [{s} for s in range(sym.nsuper)]
    for s, p in enumerate(sym.super_parent):
        assert descendants[s] == set(range(s - len(descendants[s]) + 1, s + 1))  # postordered: subtrees are contiguous
        if p >= 0:
            descendants[p] |= descendants[s]
    below = factor.sum(axis=0).astype(float) - 1
    assert sym.lnz == factor.sum()
    assert sym.flops == pytest.approx(((below + 1) ** 2 if sym.cholesky else below + 2 * below**2).sum())
    assert sym.column_levels == levels_of(sym.parent)
    assert sym.super_levels == levels_of(sym.super_parent)
    path = np.zeros(sym.nsuper)
    for s in reversed(range(sym.nsuper)):
        width, height = np.diff(sym.super_ptr)[s], np.diff(sym.row_ptr)[s]
        above = sym.super_parent[s]
        path[s] = dense_front_flops(width, height, sym.cholesky) + (path[above] if above >= 0 else 0)
    assert sym.critical_path == pytest.approx(path.max(initial=0))


@settings(max_examples=300, deadline=None)
@given(graphs(), st.booleans(), st.booleans())
def test_structure(case, cholesky, relax):
    graph, perm = case
    order, sym = supernodal_structure(*pattern_arrays(graph), perm, cholesky, relax)
    check_structure(graph, order, sym)
    if relax:
        return
    # Fundamental: columns j-1 and j are together exactly when j-1 is the only child of j, with the same structure.
    factor = eliminate(graph[order][:, order])
    for j in range(1, len(graph)):
        together = j not in sym.super_ptr
        children = np.flatnonzero(sym.parent == j)
        fundamental = list(children) == [j - 1] and factor[:, j - 1].sum() == factor[:, j].sum() + 1
        assert together == fundamental


def test_several_children_merge_into_one_parent():
    """Three leaves below one column: one supernode of four columns in spite of the zeros."""
    graph = np.zeros((5, 5), bool)
    graph[3, :3] = graph[:3, 3] = graph[3, 4] = graph[4, 3] = True
    order, sym = supernodal_structure(*pattern_arrays(graph), np.arange(5, dtype=np.int32))
    assert sym.nsuper < 4
    check_structure(graph, order, sym)


def test_relaxation_bounds_the_zeros():
    rng = np.random.default_rng(0)
    n = 300
    graph = rng.random((n, n)) < 0.006
    graph = graph | graph.T
    np.fill_diagonal(graph, False)
    arrays = pattern_arrays(graph)
    perm = np.argsort(graph.sum(axis=0), kind="stable").astype(np.int32)
    order, sym = supernodal_structure(*arrays, perm)
    _, strict = supernodal_structure(*arrays, perm, relax=False)
    check_structure(graph, order, sym)
    assert sym.nsuper < strict.nsuper and sym.lnz == strict.lnz and sym.flops == strict.flops
    width, height = np.diff(sym.super_ptr).astype(int), np.diff(sym.row_ptr)
    stored = width * (width + 1) // 2 + width * height
    exact = np.add.reduceat(sym.col_count, sym.super_ptr[:-1])
    limit = np.select([width <= 4, width <= 16, width <= 48], [1.0, 0.8, 0.1], 0.05)
    assert (stored - exact <= limit * stored).all()


def test_fronts_by_the_matching_of_an_analysis_by_columns():
    """They are those of an analysis that matches by itself."""
    A = random_matrix(80)
    pattern = _core.canonical("csc", A.shape[0], A.indptr, A.indices)
    columns, fronts = (
        _core.analyze(pattern.ptr, pattern.ind, A.data, for_core(), method=method) for method in ("column", "front")
    )
    like = _core.fronts_like(columns, pattern, for_core())
    assert (columns.method, like.method, like.structural_rank) == ("column", "front", 80)
    for name in ("row_perm", "col_perm", "row_scale", "col_scale", "super_ptr", "row_ind"):
        np.testing.assert_array_equal(getattr(like, name), getattr(fronts, name))
    assert not np.array_equal(like.row_perm, like.col_perm)  # there was something to match
    other = random_matrix(79)
    with pytest.raises(ValueError, match="not an LU analysis of this pattern"):
        _core.fronts_like(columns, _core.canonical("csc", 79, other.indptr, other.indices), for_core())
