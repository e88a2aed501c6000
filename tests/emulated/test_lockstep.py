"""Batches in lockstep on an emulated device: everything but the hardware."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.engines import registry
from gpusplu.engines.supernodal import lanes, lockstep
from support import lockstep as checks
from support.lockstep import EVERY, KINDS, LU, make_batch, right_hand_sides, systems
from support.small_matrices import dtypes


def cut(monkeypatch, grain, team_rows, wide_rows, alone_rows):
    """Subtrees of this work are below the cut; fronts of more rows are large, or solved with by blocks."""
    monkeypatch.setattr(lockstep, "LEAST_GRAIN", grain)
    monkeypatch.setattr(lockstep, "MOST_GRAIN", grain)
    monkeypatch.setattr(lanes, "TEAM_ROWS", team_rows)
    monkeypatch.setattr(lanes, "WIDE_ROWS", wide_rows)
    monkeypatch.setattr(lanes, "SINGLE_WARP_ROWS", alone_rows)


@pytest.fixture(autouse=True)
def small_subtrees(monkeypatch, device):
    """So that small matrices have subtrees, and fronts of every kind above."""
    cut(monkeypatch, 200.0, 9, 14, 12)
    device.seed = 3


@pytest.mark.parametrize("dtype", dtypes())
@EVERY
def test_solutions(cupy, definite, name, matrix, dtype):
    checks.check_solutions(matrix(dtype), definite, cupy.asarray)


@KINDS
def test_bits(cupy, definite, matrix):
    checks.check_bits(matrix("d"), definite, cupy.asarray)


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
def test_failures(cupy, dtype):
    checks.check_failures(cupy.asarray, dtype)


@pytest.mark.parametrize("dtype", dtypes())
def test_refinement(cupy, dtype):
    checks.check_refinement(cupy.asarray, dtype)


@pytest.mark.parametrize("dtype", dtypes("dF"))
def test_several_right_hand_sides(cupy, dtype):
    checks.check_columns(cupy.asarray, dtype)


@pytest.mark.parametrize("dtype", dtypes("dF"))
def test_source(cupy, dtype):
    checks.check_source(cupy.asarray, dtype)


@pytest.mark.parametrize("dtype", dtypes())
@KINDS
def test_determinants(cupy, definite, matrix, dtype):
    checks.check_determinants(matrix(dtype), definite, cupy.asarray)


@pytest.mark.parametrize("dtype", dtypes("dF"))
@KINDS
def test_inverses(cupy, definite, matrix, dtype):
    checks.check_inverses(matrix(dtype), definite, cupy.asarray)


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
    monkeypatch.setattr(lanes, "WIDE_ROWS", 0)
    problem, analysis = gs.analyze(matrix("d"), cholesky=definite, engine="supernodal").parts()
    costs, pattern = lockstep.for_lanes(), problem.pattern
    plan = lanes.LanePlan(
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
