"""Batches in lockstep, on an emulated device with fronts of every kind, and on a real one."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines import registry
from gpusplu.engines.supernodal import lockstep
from support.cupys import real_cupy
from support.lockstep import CHOLESKY, EVERY, KINDS, LU, make_batch, right_hand_sides, systems, transposed
from support.small_matrices import EPS, canonical, dtypes
from support.solves import on_host


def cut(monkeypatch, grain, team_rows, wide_rows, alone_rows):
    """Subtrees of this work are below the cut; fronts of more rows are large, or solved with by blocks."""
    monkeypatch.setattr(lockstep, "LEAST_GRAIN", grain)
    monkeypatch.setattr(lockstep, "MOST_GRAIN", grain)
    monkeypatch.setattr(lockstep, "TEAM_ROWS", team_rows)
    monkeypatch.setattr(lockstep, "WIDE_ROWS", wide_rows)
    monkeypatch.setattr(lockstep, "SINGLE_WARP_ROWS", alone_rows)


@pytest.fixture(autouse=True)
def small_subtrees(request, monkeypatch):
    """So that small matrices have subtrees, and fronts of every kind above, in the emulator."""
    if not request.node.get_closest_marker("gpu"):
        cut(monkeypatch, 200.0, 9, 14, 12)
        request.getfixturevalue("device").seed = 3


def made(A, values, definite=False):
    return (gs.cholesky_batch if definite else gs.splu_batch)(A, values, engine="supernodal")


def check_results(A, definite, put, count=3, sound=True):
    """As accurate as ordinary factors, for all three ways to solve; `sound`: without refinement."""
    matrices, values = systems(A, count)
    batch, eps = made(A, put(values), definite), EPS[A.dtype.char]
    assert batch.stats.side_by_side
    b = right_hand_sides(A, count, (2,))
    for trans in range(3):
        several = on_host(batch.solve(put(b), "NTH"[trans]))
        for column in range(2):
            given = put(np.ascontiguousarray(b[:, :, column]))
            x = batch.solve(given, "NTH"[trans])
            assert type(x) is type(given) and np.array_equal(on_host(x), several[:, :, column])
        errors = batch.backward_error
        for k, B in enumerate(matrices):
            op, alone = transposed(B, trans), (gs.cholesky if definite else gs.splu)(B, engine="cpu")
            error = backward_error(op, on_host(x)[k], b[k, :, 1])
            bound = backward_error(op, alone.solve(b[k, :, 1], "NTH"[trans]), b[k, :, 1])
            assert errors[k] <= 8 * eps and error < min(2 * errors[k] + eps, max(20 * eps, 10 * bound))
    assert not sound or not batch.status.any()
    if A.shape[0] > 200:
        return
    dense = np.array([B.toarray() for B in matrices]).astype(np.result_type(A.dtype, "d"))
    sign, logs = np.linalg.slogdet(dense)
    assert (abs(batch.slogdet().sign - sign) < 1e3 * eps).all()
    assert (abs(batch.slogdet().logabsdet - logs) < 1e3 * eps * abs(logs)).all()
    inverses = np.linalg.inv(dense)[:, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices]
    assert abs(batch.inverse_on_pattern() - inverses).max() < 1e3 * eps * abs(inverses).max()


@pytest.mark.parametrize("dtype", dtypes())
@EVERY
def test_results(backend, definite, name, matrix, dtype):
    check_results(matrix(dtype), definite, backend.asarray)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["add20", "memplus", "case3375wp_nrjac", "ibmpg1t_mna_tran"])
def test_circuits(real_matrix, name):
    check_results(canonical(real_matrix(name)), False, real_cupy().asarray, 40, sound=False)


@pytest.mark.gpu
@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("name", ["elast:5x5x5", "poisson:12x12x12"])
def test_large_fronts(name, definite):
    check_results(canonical(gallery.named(name)), definite, real_cupy().asarray, 33)


@pytest.mark.parametrize("dtype", dtypes())
@KINDS
def test_bits(backend, definite, matrix, dtype):
    """Neither the number of systems nor their order changes a bit."""
    A, put, most = matrix(dtype), backend.asarray, 70
    _, values = systems(A, most)
    b = right_hand_sides(A, most)

    def solved(some):
        return on_host(made(A, put(values[some]), definite).solve(put(b[some]), "T"))

    x = solved(np.arange(most))
    order = np.random.default_rng(1).permutation(most)
    for some in [np.arange(count) for count in (1, 31, 32, 33)] + [order, order[:33]]:
        assert np.array_equal(solved(some), x[some])


@pytest.mark.parametrize("dtype", dtypes("dF"))
@KINDS
def test_bits_do_not_depend_on_the_cut(cupy, device, monkeypatch, definite, matrix, dtype):
    """From all fronts in one subtree to none, with any order of threads and blocks."""
    A = matrix(dtype)
    _, values = systems(A, 3)
    b, found, cuts = right_hand_sides(A, 3), [], []
    for seed, where in enumerate(
        ((1e-3, 0, 0, 0), (1e-3, 9, 12, 14), (2e3, 99, 99, 12), (2e3, 0, 99, 99), (1e9, 0, 0, 0))
    ):
        cut(monkeypatch, *where)
        device.seed = seed
        batch = make_batch(A, 3, definite)
        batch.refactor(values)
        found.append([batch.solve(b, trans).tobytes() for trans in range(3)] + [batch.report().tobytes()])
        plan = batch._program.plan
        cuts.append(
            [len(some) > 0 for some in (plan.leaves, plan.team_fronts, plan.wide_fronts, plan.tiles, plan.block_fronts)]
        )
    assert all(each == found[0] for each in found)
    assert np.any(cuts, axis=0).all() and not np.all(cuts, axis=0)[1:].any() and cuts[4] == [True] + 4 * [False]


@pytest.mark.parametrize("dtype", dtypes("dF"))
@pytest.mark.parametrize("definite", [False, True])
def test_failures(backend, definite, dtype):
    """Systems that are singular, indefinite or not finite are flagged, and do not affect others."""
    A, put, status = CHOLESKY["poisson"](dtype), backend.asarray, gs.BatchStatus
    _, values = systems(A, 40)
    b, batch = right_hand_sides(A, 40), made(A, put(values), definite)
    x = on_host(batch.solve(put(b)))
    zero, negative, bad, infinite = 3, 20, 35, 38
    diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    worse = values.copy()
    worse[zero, A.indptr[7] : A.indptr[8]] = 0  # a column
    if definite:
        worse[zero, A.indices == 7] = 0
        worse[negative, diagonal] *= -1
    worse[bad, 11], worse[infinite, 0] = np.nan, np.inf
    batch.refactor(put(worse))
    y = on_host(batch.solve(put(b)))
    expected = np.zeros(40, int)
    expected[zero] = status.NOT_DEFINITE if definite else status.SINGULAR
    expected[negative], expected[[bad, infinite]] = definite * status.NOT_DEFINITE, status.NOT_FINITE
    assert batch.status.tolist() == expected.tolist()
    assert np.array_equal(y[expected == 0], x[expected == 0]) and np.isnan(y[expected > 0]).all()


@pytest.mark.parametrize("dtype", dtypes())
def test_refinement(backend, dtype):
    """Only systems with bad pivots are refined, or pivoted again in single precision, and are accurate afterwards."""
    A, put, weak = LU["poisson"](dtype), backend.asarray, [5, 33]
    _, values = systems(A, 40)
    diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    values[np.ix_(weak, diagonal[::3])] *= 1e-5 if dtype in "dD" else 1e-4
    b, batch = right_hand_sides(A, 40), made(A, put(values))
    x = on_host(batch.solve(put(b)))
    assert np.flatnonzero(batch.status).tolist() == weak
    made_good = gs.BatchStatus.REFINED if dtype in "dD" else gs.BatchStatus.REPIVOTED
    assert (batch.status[weak] == made_good).all() and (batch.backward_error <= 8 * EPS[dtype]).all()
    for k in (0, *weak):
        B = sp.csc_array((values[k], A.indices, A.indptr), A.shape)
        assert backward_error(B, x[k], b[k]) <= 10 * EPS[dtype]


def test_nothing_waits_or_allocates(cupy, device):
    """With arrays on the device; solutions are the caller's."""
    A = LU["cube"]("d")
    _, values = systems(A, 33)
    batch, values, b = make_batch(A, 33), cupy.asarray(values), cupy.asarray(right_hand_sides(A, 33))
    device.counts.clear()
    batch.refactor(values)
    factors = ("factor_leaves", "factor_wide_fronts", "factor_tiles")
    assert device.counts == {"clear": 1, "gather_lanes": 1} | dict.fromkeys(factors, 1)
    device.counts.clear()
    batch.solve(b)
    rounds = dict.fromkeys(("solve_lanes", "measure_lanes"), 4)
    assert device.counts == {"clear": 1, "gather_lanes": 1, "scatter_lanes": 1} | rounds
    device.counts.clear()
    batch.errors()
    assert device.counts == {"copy": 1, "synchronize": 1}


def test_memory(device):
    """Known, and within the limit, before anything is allocated."""
    A = LU["poisson"]("d")
    batch = make_batch(A, 70)
    batch.refactor(systems(A, 70)[1])
    batch.solve(right_hand_sides(A, 70))
    used = device.used
    assert batch.nbytes < used
    limited = gs.analyze(A, engine="supernodal", device_memory=batch.nbytes - 1).parts()
    before = device.most_used
    with pytest.raises(gs.DeviceMemoryError):
        registry.named("supernodal").batch(*limited, 70)
    assert device.used < used + batch.nbytes // 2 and device.most_used == before


def test_what_cannot_be_done_in_lockstep(device, monkeypatch):
    singular = sp.csc_array(np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert make_batch(singular, 3) is None
    trusted = gs.splu(LU["poisson"]("d"), engine="supernodal", diag_pivot_thresh=0.01).symbolic.parts()
    assert registry.named("supernodal").batch(*trusted, 3) is None

    def too_large(*arguments, **options):
        raise ValueError("a front has too many rows for lockstep")

    monkeypatch.setattr(lockstep._core, "make_lockstep_plan", too_large, raising=True)
    assert make_batch(LU["poisson"]("d"), 3) is None


@pytest.mark.parametrize("grain", [0.5, 300.0, 3000.0])
@KINDS
def test_tickets(definite, matrix, grain, device, monkeypatch):
    """Every tile of a large front has one, after the tiles and the fronts that it waits for."""
    monkeypatch.setattr(lockstep, "WIDE_ROWS", 0)
    problem, analysis = gs.analyze(matrix("d"), cholesky=definite, engine="supernodal").parts()
    costs, pattern = lockstep.for_lanes(), problem.pattern
    plan = lockstep.LanePlan(
        lockstep._core.make_lockstep_plan(analysis.core, pattern.ptr, pattern.ind, costs, grain=grain)
    )
    done, last = set(), dict.fromkeys(plan.order.tolist(), 0)
    for tile in plan.tiles:
        f, row, column = (int(tile[name]) for name in ("front", "row", "column"))
        P = -(-int(plan.fronts["width"][f]) // 16)
        for k in range(min(row, column, P)):
            assert (f, row, k) in done and (f, *((column, k) if definite else (k, column))) in done
        if row != column and min(row, column) < P:
            assert (f, min(row, column), min(row, column)) in done
        for child in plan.order[plan.fronts["parent"][plan.order] == f]:
            assert last[child] == sum(t["front"] == child for t in plan.tiles)
        done.add((f, row, column))
        last[f] += 1
    assert len(done) == len(plan.tiles)
    for f in plan.order:
        numbers = np.sort(plan.tiles["number"][plan.tiles["front"] == f])
        assert np.array_equal(numbers, np.arange(len(numbers)))
