"""glu, sflu and crisscross from end to end on an emulated device: modes, tunings, divisions, pivots chosen again."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cost.calibration import for_core
from gpusplu.cost.table import shipped
from gpusplu.cuda import devices
from gpusplu.engines import registry
from gpusplu.engines.columns import engine as column_engine
from gpusplu.engines.crisscross import program as crisscross_program
from gpusplu.engines.crisscross.model import finishing_times, trailing_costs
from gpusplu.engines.glu.program import KERNELS, MODES
from gpusplu.engines.sflu import program as sflu_program
from gpusplu.engines.sflu import symbolic as sflu_symbolic
from gpusplu.engines.sflu.program import Tuning
from gpusplu.errors import EngineUnavailableError
from support import fake_cupy
from support.column_engines import (
    MATRICES,
    bordered,
    check_bad_pivots,
    check_lu_pattern,
    check_mode,
    check_trailing_block,
    check_tuned_alike,
    circuit,
    crisscross,
    glu,
    harder,
    on_device,
    sflu,
)
from support.emulated_device import EmulatedDevice
from support.small_matrices import EPS, canonical, random_matrix, rhs, unlike
from support.solves import check_bits_repeat, check_solves
from support.symbolic_reference import random_pattern

pytestmark = pytest.mark.usefixtures("cupy")

MAKES = {"glu": glu, "sflu": sflu, "crisscross": lambda A: crisscross(A, max(A.shape[0] - 30, 0))}
ENGINES = pytest.mark.parametrize("engine", MAKES)
CIRCUIT = circuit("d")
CASES = [(name, "d") for name in MATRICES] + [pytest.param("random", c, marks=pytest.mark.thorough) for c in "fFD"]
ON_DEVICE = {"symbolic": "device"}


@pytest.mark.parametrize(("name", "dtype"), CASES)
@ENGINES
def test_factor_solve_refactor(device, engine, name, dtype):
    device.seed = 7 * (name != "filled")  # whose threads the emulator would have to poll more often than it allows
    A = MATRICES[name](dtype)
    factor = MAKES[engine](A)
    check_solves(A, factor, ((), (1,), (6,)))
    device.counts.clear()
    factor.refactor(3 * A.data)
    kernels = {"glu": ("assemble_glu", "finish_glu"), "sflu": ("factor_sflu",), "crisscross": ("factor_crisscross",)}
    if name in ("random", "circuit"):
        assert device.counts == {**device.counts, "replay": 1, **dict.fromkeys(kernels[engine], 1)}
    check_solves(canonical(3 * A), factor)
    stats = factor.stats
    assert (stats.n_refactor, stats.n_repivoted, stats.n_refinement) == (1, 0, 0) and on_device(factor)


# ---- pivots


@pytest.mark.parametrize("put", [np.asarray, fake_cupy.asarray], ids=["host", "device"])
@ENGINES
def test_bad_pivots_are_chosen_again_and_the_device_goes_on(device, engine, put):
    A, b = random_matrix(60), rhs(60)
    B, factor = harder(A), MAKES[engine](A)
    x = factor.refactor_solve(put(B.data), put(b))
    assert backward_error(B, np.asarray(x), b) < 100 * EPS["d"]
    for scale in (1, 1.01):
        factor.refactor(put(scale * B.data))
        check_solves(scale * B, factor)
        assert on_device(factor) and factor.stats.n_repivoted == 1


@pytest.mark.parametrize("pivot", [0, 1e-6, np.inf], ids=["none", "small", "overflow"])
@ENGINES
def test_pivots_that_kernels_report(device, engine, pivot):
    """One that has to be replaced, one with large multipliers, and one that is not finite."""
    n = 30
    A = canonical(sp.diags_array([np.full(n - 1, 0.1), np.full(n, 2.0), np.full(n - 1, 0.1)], offsets=[-1, 0, 1]))
    factor, B = gs.splu(A, engine=engine, ordering="natural", pivoting="static"), A.toarray()
    if pivot < np.inf:
        B[4, 5], B[5, 4], B[5, 5] = 0, 0, pivot
    else:
        B[4, 5] = B[5, 4] = 1e160
    factor.refactor(B[A.indices, np.repeat(np.arange(n), np.diff(A.indptr))])
    assert factor.stats.n_repivoted == 1
    check_solves(canonical(B), factor)


def test_pivots_that_are_chosen_again_are_logged(device, caplog):
    caplog.set_level("INFO", "gpusplu")
    A = random_matrix(60)
    factor = glu(A)
    factor.refactor(harder(A).data)
    assert caplog.messages[-1] == "the processor chose new pivots; the device continues with them"
    caplog.clear()
    factor.refactor(fake_cupy.asarray(A.data))  # this call does not wait
    assert caplog.messages == []
    check_solves(A, factor)


def test_inaccurate_solves_choose_pivots_again(device):
    A = random_matrix(60)
    factor, B, b = glu(A), harder(A), rhs(60)
    factor._core.commands.program.growth_bound = np.inf  # only the backward error can tell
    factor.refactor(B.data)
    assert factor.stats.n_repivoted == 0
    assert backward_error(B, factor.solve(b), b) < 100 * EPS["d"]
    assert factor.stats.n_repivoted == 1 and on_device(factor)


def test_the_cpu_engine_solves_where_a_new_plan_does_not_fit(device):
    A = random_matrix(60)
    factor, B = glu(A), harder(A)
    device.memory_bytes = device.used + 1000
    factor.refactor(B.data)
    check_solves(B, factor)
    assert not on_device(factor)
    device.memory_bytes += 1 << 30
    factor.refactor(A.data)
    check_solves(A, factor)
    assert on_device(factor)


def test_pivots_are_those_of_the_factor_and_not_of_the_triangles(device):
    A = unlike("d", "entries", 12, 3)
    cpu, _ = gs.splu(A, engine="cpu").parts()
    assert not np.array_equal(cpu.row_perm, cpu.pivot_rows)
    factor = glu(A)
    factor.refactor(A.data)
    assert factor.stats.n_repivoted == 0 and on_device(factor)


# ---- glu


@pytest.mark.parametrize("name", ["one", "filled", "wide", "circuit"])
@pytest.mark.parametrize("mode", MODES)
def test_forced_modes(device, mode, name):
    device.seed = 1
    check_mode(MATRICES[name]("d"), mode, 1, [()])
    if name != "circuit":
        return
    kernel = dict(zip(MODES, KERNELS, strict=True))[mode]
    assert {name for name in device.counts if name.startswith("update")} == {kernel}
    assert (device.counts[kernel] > 2) == (mode != "batch")


@pytest.mark.parametrize("mode", MODES)
def test_modes_without_maps(device, monkeypatch, mode):
    make = partial(column_engine.make_column_plan, most_mapped=0)
    monkeypatch.setattr(column_engine, "make_column_plan", make)
    factor = check_mode(CIRCUIT, mode, 1, [()])
    assert not factor._core.commands.program.plan.has_maps


def test_memory_is_known_before_it_is_taken(device):
    factor = glu(CIRCUIT)
    factor.solve(rhs(CIRCUIT.shape[0]))
    with pytest.raises(gs.DeviceMemoryError) as error:
        glu(CIRCUIT, device_memory=1000)
    needed = error.value.needed
    assert 0.9 * needed < factor.stats.bytes <= needed
    with pytest.raises(gs.DeviceMemoryError, match=f"{needed:,} bytes"):
        glu(CIRCUIT, device_memory=needed - 1)
    assert on_device(glu(CIRCUIT, device_memory=needed))


# ---- sflu


def test_by_levels_and_ungrouped_are_the_same(device):
    b = rhs(CIRCUIT.shape[0])
    x = sflu(CIRCUIT).solve(b)
    launches = dict(device.counts)
    check_tuned_alike(
        CIRCUIT, b, ({"leaf_entries": 30}, {"chain_entries": 30}, {"grouped": False}, {"by_levels": True})
    )
    device.counts.clear()
    assert sflu(CIRCUIT, grouped=False, by_levels=True).solve(b).tobytes() == x.tobytes()
    levels = device.counts["factor_sflu"]
    assert levels > launches["factor_sflu"] == 1 and device.counts["solve_columns_1"] == 2 * levels


@pytest.mark.parametrize("shared_memory_bytes", [232448, 6200])
def test_a_block_works_on_a_long_column(device, shared_memory_bytes):
    device.shared_memory_bytes = shared_memory_bytes
    A = gallery.named("rlc:16x16")
    n = A.shape[0]
    border = sp.csc_array(1e-3 * np.cos(np.arange(n)[:, None]))
    A = canonical(sp.block_array([[A, border], [border.T, sp.csc_array([[1.0]])]]))
    factor = sflu(A)
    check_solves(A, factor, [()])
    made = factor._core.commands.program.factorization
    assert made.long_columns.tolist() == [n]
    assert [n, n + 1] in made.launches.groups.range.reshape(-1, 2).tolist()
    x = factor.solve(np.ones(n + 1))
    assert sflu(A, by_levels=True).solve(np.ones(n + 1)).tobytes() == x.tobytes()
    factor = sflu(A, splits=False)
    assert factor._core.commands.program.factorization.long_columns.size == 0
    check_solves(A, factor, [()])


@pytest.mark.parametrize("name", ["circuit", "dense"])
@pytest.mark.parametrize(("engine", "shared_memory_bytes"), [("sflu", 232448), ("sflu", 6200), ("crisscross", 232448)])
def test_without_maps(device, monkeypatch, engine, shared_memory_bytes, name):
    monkeypatch.setattr(sflu_program, "is_mapped", lambda plan: False)
    device.shared_memory_bytes = shared_memory_bytes
    A = MATRICES["circuit"]("d") if name == "circuit" else random_matrix(150, density=0.5)
    check_solves(A, MAKES[engine](A))
    assert device.counts[f"factor_{engine}_search"] == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "density"), [(0, 0), (1, 0), (40, 0.05), (70, 0.3), (1500, 0.0008), (3000, 0.0004)])
def test_pattern_by_the_kernel(monkeypatch, n, density, seed):
    """Of L + U, against the core's; also where there is more fill than was guessed."""
    device, rng = EmulatedDevice(seed=seed), np.random.default_rng(seed + 1)
    if n == 70:
        monkeypatch.setattr(sflu_symbolic, "GUESS", 1)
    check_lu_pattern(
        device, *random_pattern(n, density, seed)[1:], *(rng.permutation(n).astype("i4") for _ in range(2))
    )
    assert n != 70 or device.counts["sflu_symbolic"] > 1


@pytest.mark.parametrize("name", MATRICES)
def test_symbolic_phase_on_the_device(device, name):
    A = MATRICES[name]("d")
    on_host = gs.splu(A, engine="sflu")
    assert "sflu_symbolic" not in device.counts
    factor = gs.splu(A, engine="sflu", options=ON_DEVICE)
    assert device.counts["sflu_symbolic"] >= 1
    b = rhs(A.shape[0])
    assert factor.solve(b).tobytes() == on_host.solve(b).tobytes()
    assert (factor.stats.symbolic, on_host.stats.symbolic) == ("device", "host")
    assert "L + U were found on the device" in factor.explain()
    assert "found on the device" not in on_host.explain()


def test_pivots_that_are_chosen_again_have_their_pattern_from_the_device(device):
    factor = check_bad_pivots(lambda A: gs.splu(A, engine="sflu", options=ON_DEVICE), random_matrix(60), 1)
    assert factor.stats.n_repivoted == 1 and device.counts["sflu_symbolic"] > 1


def test_symbolic_phases_that_cannot_be(device):
    A = random_matrix(60)
    assert gs.splu(A, device=0, options=ON_DEVICE).engine == "sflu"
    assert gs.splu(A, engine="cpu", options={"symbolic": "host"}).engine == "cpu"
    with pytest.raises(ValueError, match="symbolic='gpu' is not one of 'host', 'device'"):
        gs.splu(A, engine="sflu", options={"symbolic": "gpu"})
    for engine in ("auto", *(name for name in registry.BUILT_IN if name != "sflu")):
        with pytest.raises(EngineUnavailableError, match="has no symbolic phase on the device"):
            gs.splu(A, engine=engine, options=ON_DEVICE)
    device.shared_memory_bytes = 64
    gs.cache_clear()
    with pytest.raises(EngineUnavailableError, match=r"marking 60 rows takes \d+ bytes of shared memory"):
        gs.splu(A, engine="sflu", options=ON_DEVICE)


def test_pickled_symbolic_phase(device, monkeypatch):
    """The CPU engine takes over where there is no device, whatever its symbolic phase was to be."""
    pickled = pickle.dumps(gs.splu(random_matrix(60), engine="sflu", options=ON_DEVICE))
    device.counts.clear()
    assert pickle.loads(pickled).stats.symbolic == "device" and device.counts["sflu_symbolic"] >= 1

    def none(which=None):
        raise EngineUnavailableError("no device")

    monkeypatch.setattr(devices, "open_device", none)
    assert pickle.loads(pickled).engine == "cpu"


# ---- crisscross


@pytest.mark.parametrize("order", [1, 17, 60])
def test_trailing_blocks_of_any_size(device, cupy, order):
    device.multiprocessors, A = 2, random_matrix(60, "d")
    check_solves(A, check_trailing_block(cupy, A, order, [(), (5,)]), ((), (5,)))


@pytest.mark.parametrize("most_batch", [crisscross_program.MOST_BATCH, 64])
def test_trailing_columns_of_many_terms(device, monkeypatch, most_batch):
    monkeypatch.setattr(crisscross_program, "MOST_BATCH", most_batch)
    for A, order in ((bordered("d"), 3), (bordered("d", 50), 3), (random_matrix(150, density=0.5), 60)):
        check_solves(A, crisscross(A, A.shape[0] - order))


def test_crisscross_by_levels_and_without_a_trailing_block(device):
    n, b = CIRCUIT.shape[0], rhs(CIRCUIT.shape[0])
    x = crisscross(CIRCUIT, n - 30).solve(b)
    device.counts.clear()
    by_levels = Tuning(by_levels=True, grouped=False)
    assert crisscross(CIRCUIT, n - 30, by_levels).solve(b).tobytes() == x.tobytes()
    assert device.counts["factor_crisscross"] > 1
    assert crisscross(CIRCUIT, n).solve(b).tobytes() == gs.splu(CIRCUIT, engine="sflu").solve(b).tobytes()


def test_bits_of_crisscross_repeat(device, cupy):
    def other_order():
        device.seed = 3

    check_bits_repeat(cupy, lambda A: crisscross(A, A.shape[0] - 40), CIRCUIT, 1, (2,), other_order)


@pytest.mark.parametrize("trailing", [90, 150])
def test_the_ends_of_all_chains_are_in_the_trailing_block(device, trailing):
    device.multiprocessors, A = 2, canonical(gallery.named("rlc:12x12"))
    n = A.shape[0]
    given = gs.splu(A, engine="sflu", ordering="nd")._core.commands.program.plan
    factor = crisscross(A, n - trailing, ordering="nd")
    plan = factor._core.commands.program.plan
    assert plan.nnz == given.nnz and plan.flops == given.flops
    moved = np.argsort(given.col_perm)[plan.col_perm]  # numbers in the plan that was given
    assert (np.diff(moved[: n - trailing]) > 0).all() and (np.diff(moved[n - trailing :]) > 0).all()
    assert (np.diff(moved) < 0).any()  # there was something to move
    _, last, _ = finishing_times(given, trailing_costs(shipped()), for_core())
    assert last[moved[: n - trailing]].max() <= last[moved[n - trailing :]].min()
    assert plan.level[: n - trailing].max() < given.n_levels - 1
    check_solves(A, factor)


def test_pivots_are_compared_with_those_that_were_given(device):
    """Not with their order in the plan."""
    A = canonical(gallery.named("rlc:12x12"))
    program = crisscross(A, A.shape[0] - 90, ordering="nd")._core.commands.program
    given = dict(zip(("row_perm", "col_perm", "row_scale", "col_scale"), program._pivots, strict=True))
    assert (given["col_perm"] != program.plan.col_perm).any()

    def is_known(row_perm, col_perm, row_scale, col_scale):
        symbolic = SimpleNamespace(row_scale=row_scale, col_scale=col_scale)
        core = SimpleNamespace(pivot_rows=row_perm, pivot_columns=col_perm, symbolic=symbolic)
        return program.has_pivots_of(core)

    assert is_known(**given)
    assert not is_known(**{**given, "row_perm": given["row_perm"][::-1]})
    assert not is_known(**{**given, "row_scale": 2 * given["row_scale"]})


def test_the_division_is_chosen_and_explained(device):
    device.multiprocessors = 132
    A = canonical(gallery.named("circuit:30x30"))
    n, factor = A.shape[0], gs.splu(A, engine="crisscross")
    stats, curves = factor.stats, factor._core.commands.program.curves
    assert n // 2 < stats.division < n
    assert stats.division == curves.division[np.argmin(curves.sparse + curves.dense)]
    parts = stats.predicted_sparse_seconds + stats.predicted_dense_seconds
    assert parts == stats.predicted_factor_seconds == pytest.approx(curves.total.min())
    assert f"a dense trailing block of {n - stats.division}" in factor.explain()
    check_solves(A, factor)


@pytest.mark.parametrize("trailing", [0, 150, pytest.param(600, marks=pytest.mark.thorough)])
def test_memory_of_crisscross_is_counted(device, trailing):
    device.multiprocessors, A = 2, canonical(gallery.named("circuit:25x25"))
    before = device.used
    factor = crisscross(A, A.shape[0] - trailing)
    factor.solve(rhs(A.shape[0]))
    used, needed = device.used - before, factor._core.commands.program.needed_bytes
    assert used <= needed <= 1.3 * used
