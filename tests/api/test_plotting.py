"""The numbers behind the pictures against counts by definition."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery, plotting
from gpusplu.plotting.levels import front_flops
from gpusplu.plotting.maps import dense_from
from gpusplu.plotting.memory import TILE
from gpusplu.plotting.timeline import merged


def eliminate(structure):
    """Patterns of the remaining submatrix before every step, dense."""
    M = structure.B.toarray()
    n = structure.n
    for k in range(n):
        yield M[k:, k:].copy()
        M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])


def test_structure_is_the_elimination_of_the_permuted_pattern(structure):
    M = structure.B.toarray()
    for k in range(structure.n):
        M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])
    np.testing.assert_array_equal(M, (structure.L + structure.U + sp.eye_array(structure.n, dtype=bool)).toarray())


def test_remaining_density(structure):
    expected = [rest.mean() for rest in eliminate(structure)]
    np.testing.assert_allclose(plotting.remaining_density(structure), expected, rtol=1e-14)
    assert expected[-10] > expected[0]


def test_factor_density_is_that_of_trailing_blocks(structure):
    F = (structure.L + structure.U + sp.eye_array(structure.n, dtype=bool)).toarray()
    expected = [F[k:, k:].mean() for k in range(structure.n)]
    np.testing.assert_allclose(plotting.factor_density(structure), expected, rtol=1e-14)


def test_predictions_match_random_patterns():
    """Where entries begin independent, as the model assumes: the median density until it takes off, and when."""
    n, d, rng = 250, 0.06, np.random.default_rng(3)
    real, nnz, degrees = [], 0, np.zeros(n)
    trials = 12
    for _ in range(trials):
        M = (rng.random((n, n)) < d) | np.eye(n, dtype=bool)
        nnz += M.sum() / trials
        degrees += (M.sum(1) - 1) / trials
        real.append([])
        for k in range(n):
            real[-1].append(M[k:, k:].mean())
            M[k + 1 :, k + 1 :] |= np.outer(M[k + 1 :, k], M[k, k + 1 :])
    real = np.median(real, 0)
    for predicted in (plotting.uniform_density(n, nnz), plotting.predicted_density(degrees, degrees)):
        np.testing.assert_allclose(predicted[:10], real[:10], rtol=0.1)
        assert np.argmax(predicted > 0.5) == pytest.approx(np.argmax(real > 0.5), rel=0.35)
    assert real[9] > 1.5 * real[0] and np.argmax(real > 0.5) > 15


def test_prediction_by_degrees_knows_the_order():
    """Thin rows first make a later dense rest than thick rows first."""
    degrees = np.sort(np.random.default_rng(0).integers(1, 9, 2000)).astype(float)
    thin_first = plotting.predicted_density(degrees, degrees)
    thick_first = plotting.predicted_density(degrees[::-1], degrees[::-1])
    assert dense_from(thin_first) > 1.2 * dense_from(thick_first)


def brute_maps(structure, p):
    """Requests and strides entry by entry."""
    n = structure.n
    L, U = structure.L.toarray(), structure.U.toarray()
    F = L | U | np.eye(n, dtype=bool)
    requests, strides, hops = (np.zeros((n, n), int) for _ in range(3))
    for k in range(n):
        stored = np.flatnonzero(F[:, k])
        for j in np.flatnonzero(U[:, k]):
            if j >= p:
                continue
            requests[j, k] += 1
            last = None
            for i in np.flatnonzero(L[:, j]):
                requests[i, j] += 1
                if i >= p and k >= p:
                    continue
                requests[i, k] += 1
                place = np.searchsorted(stored, i)
                if last is not None:
                    strides[i, k] += place - last
                    hops[i, k] += 1
                last = place
    tiles = -(-(n - p) // TILE)
    for i in range(p, n):
        for k in range(p, n):
            requests[i, k] += 1 + tiles - min((i - p) // TILE, (k - p) // TILE)
            strides[i, k] += 1
            hops[i, k] += 1
    return requests, strides, hops


@pytest.mark.parametrize("division", [None, 0, 20, 45])
@pytest.mark.parametrize("first", [0, 25])
def test_memory_maps(structure, division, first):
    n = structure.n
    maps = plotting.memory_maps(structure, division, first, cells=n)
    expected = brute_maps(structure, n if division is None else division)
    for got, want in zip((maps.requests, maps.strides, maps.hops), expected, strict=True):
        np.testing.assert_array_equal(got, want[first:, first:])
    coarse = plotting.memory_maps(structure, division, first, cells=7)
    sums = np.add.reduceat(np.add.reduceat(maps.requests, coarse.edges[:-1] - first, 0), coarse.edges[:-1] - first, 1)
    np.testing.assert_array_equal(coarse.requests, sums)
    assert np.isnan(maps.mean_stride[maps.hops == 0]).all()


@pytest.mark.parametrize("bad", [{"division": 61}, {"division": -1}, {"first": 60}])
def test_memory_maps_reject_columns_outside(structure, bad):
    with pytest.raises(ValueError, match="60 columns"):
        plotting.memory_maps(structure, **bad)


def test_column_levels(structure):
    L, U = structure.L.toarray(), structure.U.toarray()
    for right in (False, True):
        level = np.zeros(structure.n, int)
        for k in range(structure.n):
            waits = np.flatnonzero(U[:k, k] | L[k, :k] if right else U[:k, k])
            level[k] = max((level[j] + 1 for j in waits), default=0)
        np.testing.assert_array_equal(plotting.column_levels(structure, right), level)
    assert plotting.column_levels(structure).max() > plotting.column_levels(structure, False).max()


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("ordering", ["auto", "nd"])
def test_fronts(cholesky, ordering):
    A = gallery.poisson(13, 12)
    fronts = plotting.fronts(A, ordering, cholesky)
    n = A.shape[0]
    F = np.zeros((n, n), bool)
    for begin, width, rows in zip(fronts.first, fronts.width, fronts.rows, strict=True):
        own = np.arange(begin, begin + width)
        F[np.ix_(own, own)] = F[np.ix_(rows, own)] = F[np.ix_(own, rows)] = True
    assert fronts.n == n
    edges, counts = plotting.entries_by_cell(fronts, cells=n)
    np.testing.assert_array_equal(counts, F)
    edges, counts = plotting.entries_by_cell(fronts, first=10, cells=9)
    assert edges[0] == 10 and edges[-1] == n
    assert counts[2, 5] == F[edges[2] : edges[3], edges[5] : edges[6]].sum()
    assert counts.sum() == F[10:, 10:].sum()
    assert fronts.level.max() > 2 and (fronts.level == 0).sum() > 4


def test_fronts_of_other_matrices():
    fronts = plotting.fronts(sp.csc_array(np.diag([1.0, 1, 1], 1) + np.diag([2.0, 1, 1, 1])), "natural")
    assert fronts.n == 4 and fronts.width.size >= 1
    with pytest.raises(RuntimeError, match="exactly singular"):
        plotting.fronts(sp.csc_array(np.diag([1.0, 0, 1])))


def test_operations_of_a_dense_front_are_those_of_a_dense_factorization():
    n = 40
    pivots = np.arange(n - 1, -1, -1)
    assert front_flops(np.array([n]), np.array([0]), False)[0] == (pivots + 2 * pivots**2).sum()
    assert front_flops(np.array([n]), np.array([0]), True)[0] == (pivots + pivots * (pivots + 1)).sum()
    parts = front_flops(np.array([15, 25]), np.array([25, 0]), False)
    assert parts.sum() == (pivots + 2 * pivots**2).sum()


def test_dense_from():
    assert dense_from(np.array([0.1, 0.6, 0.2, 0.5, 1.0])) == 3
    assert dense_from(np.array([0.1, 0.2])) == 2
    assert dense_from(np.array([1.0])) == 0


def test_entries_by_cell_of_columns(structure):
    F = (structure.L + structure.U + sp.eye_array(structure.n, dtype=bool)).toarray()
    edges, counts = plotting.entries_by_cell(structure, first=10, cells=7)
    rows = np.add.reduceat(np.add.reduceat(F[10:, 10:].astype(int), edges[:-1] - 10, 0), edges[:-1] - 10, 1)
    np.testing.assert_array_equal(counts, rows)


@pytest.mark.parametrize("kind", ["cholesky", "ldlt", "splu"])
def test_timeline(kind):
    A = gallery.poisson(40, 40)
    factor = getattr(gs, kind)(A, ordering="nd")
    before, counted_before = factor.stats.n_refactor, factor.version
    times = plotting.timeline(factor)
    assert (factor.stats.n_refactor, factor.version) == (before, counted_before)
    assert times.seconds == factor.stats.seconds
    if factor.stats.method == "front":
        assert set(times.front) == set(range(times.front.max() + 1))
    else:
        assert times.front.size == 0
    assert (times.begin >= 0).all() and (times.begin <= times.end).all()
    for thread in np.unique(times.thread):
        own = np.sort(times.begin[times.thread == thread]), np.sort(times.end[times.thread == thread])
        assert (own[0][1:] >= own[1][:-1]).all()  # one front after the other


def test_nothing_is_recorded_unasked():
    A = gallery.poisson(20, 20)
    assert gs._core.with_fronts_recorded(lambda: None)[1].size == 0
    symbolic = gs.analyze(A, cholesky=True)
    first = gs._core.with_fronts_recorded(lambda: symbolic.factor(A.data))[1].size
    symbolic.factor(A.data)
    assert gs._core.with_fronts_recorded(lambda: symbolic.factor(A.data))[1].size == first > 0
    with pytest.raises(ZeroDivisionError):
        gs._core.with_fronts_recorded(lambda: 1 / 0)


def test_short_spans_are_drawn_together():
    begin, end = np.array([3.0, 0, 0.01, 0.02, 1]), np.array([3.01, 0.01, 0.02, 0.03, 2])
    found = merged(begin, end, 0.05)
    np.testing.assert_array_equal(found, [[0, 1, 3], [0.03, 2, 3.01]])
    assert merged(begin[:0], end[:0], 1)[0].size == 0


def test_points_of_a_roofline():
    A = gallery.poisson(30, 30)
    for factor, passes in ((gs.splu(A, pivoting="partial"), 1), (gs.cholesky(A), 2)):
        assert [point.phase for point in plotting.points(factor)] == ["factor"]
        factor.solve(np.ones(900))
        solve = plotting.points(factor)[-1]
        assert (solve.flops, solve.bytes) == (2 * passes * factor.nnz, passes * factor.stats.bytes)
        assert solve.rate == pytest.approx(solve.flops / factor.stats.seconds["solve"])
    real, imaginary = (plotting.points(gs.cholesky(M))[0] for M in (A, A.astype(complex)))
    assert imaginary.flops == 4 * real.flops
