"""The SFLU engine from end to end on an emulated device."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import devices
from gpusplu.engines import registry
from gpusplu.engines.sflu import factorization
from support.column_engines import MATRICES, check_bad_pivots, check_tuned_alike, circuit, sflu
from support.small_matrices import canonical, random_matrix, rhs
from support.solves import check_solves


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", MATRICES)
def test_factor_solve_refactor(device, name, dtype):
    A = MATRICES[name](dtype)
    factor = gs.splu(A, engine="sflu")
    assert factor.engine == "sflu"
    check_solves(A, factor, ((), (1,), (6,)))
    scaled = A.copy()
    scaled.data *= 3
    device.counts.clear()
    factor.refactor(scaled.data)
    assert device.counts == {**device.counts, "replay": 1, "factor_sflu": 1}
    check_solves(scaled, factor)
    assert factor.stats.n_refactor == 1
    assert factor.stats.n_repivoted == 0
    assert "sflu: asked for by name" in factor.explain()


def test_by_levels_and_ungrouped_are_the_same(device):
    A, b = circuit("d"), rhs(circuit("d").shape[0])
    x = gs.splu(A, engine="sflu").solve(b)
    launches = dict(device.counts)
    check_tuned_alike(A, b, ({"leaf_entries": 30}, {"chain_entries": 30}, {"grouped": False}, {"by_levels": True}))
    device.counts.clear()
    assert sflu(A, grouped=False, by_levels=True).solve(b).tobytes() == x.tobytes()
    levels = device.counts["factor_sflu"]
    assert levels > launches["factor_sflu"] == 1
    assert device.counts["solve_columns_1"] == 2 * levels


def test_a_block_works_on_a_long_column(device):
    A = gallery.named("rlc:14x14")
    n = A.shape[0]
    border = sp.csc_array(1e-3 * np.cos(np.arange(n)[:, None]))
    A = canonical(sp.block_array([[A, border], [border.T, sp.csc_array([[1.0]])]]))
    factor = gs.splu(A, engine="sflu")
    check_solves(A, factor, [()])
    made = factor._core._recorded.program.factorization
    assert made.long_columns.tolist() == [n]
    assert [n, n + 1] in made.launches.groups.range.reshape(-1, 2).tolist()
    x = factor.solve(np.ones(n + 1))
    assert sflu(A, by_levels=True).solve(np.ones(n + 1)).tobytes() == x.tobytes()
    factor = sflu(A, splits=False)
    assert factor._core._recorded.program.factorization.long_columns.size == 0
    check_solves(A, factor, [()])


@pytest.mark.parametrize("shared_memory_bytes", [232448, 6200])
def test_without_maps(device, monkeypatch, shared_memory_bytes):
    monkeypatch.setattr(factorization, "is_mapped", lambda plan: False)
    device.shared_memory_bytes = shared_memory_bytes
    A = circuit("d")
    factor = gs.splu(A, engine="sflu")
    check_solves(A, factor)
    assert device.counts["factor_sflu_search"] == 1


def test_pivots_that_went_bad_are_chosen_anew(device):
    assert check_bad_pivots(sflu, random_matrix(60), 1).stats.n_repivoted == 1


def test_singular_matrix(device):
    A = canonical(sp.csc_array(np.ones((3, 3))))
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.splu(A, engine="sflu")


ON_DEVICE = {"symbolic": "device"}


@pytest.mark.parametrize("name", MATRICES)
def test_symbolic_phase_on_the_device(device, name):
    A = MATRICES[name]("d")
    on_host = gs.splu(A, engine="sflu")
    assert "sflu_symbolic" not in device.counts
    factor = gs.splu(A, engine="sflu", options=ON_DEVICE)
    assert device.counts["sflu_symbolic"] >= 1
    here, there = (lu._core._recorded.program.plan for lu in (on_host, factor))
    arrays = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "entry_place", "level", "u_ptr", "map_ptr", "map")
    for array in arrays:
        np.testing.assert_array_equal(getattr(there, array), getattr(here, array))
    assert there.flops == here.flops
    b = rhs(A.shape[0])
    assert factor.solve(b).tobytes() == on_host.solve(b).tobytes()
    assert (factor.stats.symbolic, on_host.stats.symbolic) == ("device", "host")
    assert "L + U were found on the device" in factor.explain()
    assert "found on the device" not in on_host.explain()


def test_pivots_that_are_chosen_anew_have_their_pattern_from_the_device(device):
    factor = check_bad_pivots(lambda A: gs.splu(A, engine="sflu", options=ON_DEVICE), random_matrix(60), 1)
    assert factor.stats.n_repivoted == 1
    assert device.counts["sflu_symbolic"] > 1


def test_symbolic_phase_without_room_for_the_rows(device):
    A = random_matrix(60)
    device.shared_memory_bytes = 64
    with pytest.raises(gs.EngineUnavailableError, match=r"marking 60 rows takes \d+ bytes of shared memory"):
        gs.splu(A, engine="sflu", options=ON_DEVICE)


@pytest.mark.parametrize("engine", ["auto", *(name for name in registry.BUILT_IN if name != "sflu")])
def test_engines_without_a_symbolic_phase_on_the_device_say_so(device, engine):
    with pytest.raises(gs.EngineUnavailableError, match="has no symbolic phase on the device"):
        gs.splu(random_matrix(60), engine=engine, options=ON_DEVICE)


def test_a_device_that_was_asked_for_takes_the_engine_that_has_one(device):
    assert gs.splu(random_matrix(60), device=0, options=ON_DEVICE).engine == "sflu"


def test_symbolic_phase_is_one_of_two(device):
    with pytest.raises(ValueError, match="symbolic='gpu' is not one of 'host', 'device'"):
        gs.splu(random_matrix(60), engine="sflu", options={"symbolic": "gpu"})
    assert gs.splu(random_matrix(60), engine="cpu", options={"symbolic": "host"}).engine == "cpu"


def test_pickled_symbolic_phase(device, monkeypatch):
    """The CPU engine takes over where there is no device, whatever its symbolic phase was to be."""
    A = random_matrix(60)
    pickled = pickle.dumps(gs.splu(A, engine="sflu", options=ON_DEVICE))
    device.counts.clear()
    assert pickle.loads(pickled).stats.symbolic == "device"
    assert device.counts["sflu_symbolic"] >= 1

    def none(which=None):
        raise gs.EngineUnavailableError("no device")

    monkeypatch.setattr(devices, "open_device", none)
    assert pickle.loads(pickled).engine == "cpu"
