"""LDL^T by the supernodal engine on an emulated device, beside the CPU engine's."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.inertia import diagonal_blocks
from gpusplu.engines.supernodal.plan import make_plan
from support.emulated_device import memory_at
from support.indefinite import KINDS, check_indefinite


@pytest.mark.parametrize("name", ["kkt:60x25x4", "stokes:6x5", "mixed:6x5", "helmholtz:12x11"])
def test_gallery(device, name):
    check_indefinite(gallery.named(name), "d", True)


@pytest.mark.parametrize(("dtype", "hermitian"), KINDS)
def test_dtypes(device, dtype, hermitian):
    check_indefinite(gallery.stokes(7, 6), dtype, hermitian)


# Limits of the classes of fronts that put small matrices into every phase.
PHASES = {
    "block": {"warp_rows": 4, "small_rows": 0, "block_rows": 240},
    "small": {"warp_rows": 4, "small_rows": 16, "block_rows": 240},
    "large": {"warp_rows": 0, "block_rows": -1},
    "mixed": {"warp_rows": 4, "small_rows": 8, "block_rows": 12},
}


@pytest.fixture
def planned(monkeypatch, phases):
    """Fronts of these phases."""

    def make(cores, *arguments):
        return cores[0], make_plan(cores[0], *arguments, **PHASES[phases]), [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", make)


@pytest.mark.parametrize(("dtype", "hermitian"), [("d", True), ("D", True), ("F", False)])
@pytest.mark.parametrize("phases", PHASES)
def test_every_phase(device, planned, dtype, hermitian):
    factor = check_indefinite(gallery.named("stokes:9x8"), dtype, hermitian)
    recorded = factor._core._recorded
    entries = memory_at(recorded.buffers.own["factor"].pointer, recorded.buffers.own["factor"].nbytes).view(dtype)
    covered = 0
    for block in diagonal_blocks(recorded.program.plan):  # symmetric to the last bit
        order = np.arange(block["order"])
        D = entries[block["at"] + order[:, None] + block["ld"] * order]
        assert np.array_equal(D, D.conj().T if hermitian else D.T)
        covered += len(order)
    assert covered == 198


@pytest.mark.parametrize("phases", ["block", "large"])
def test_panels_do_not_part_pairs(device, planned):
    """A column alone, and pairs with nothing else beside them: a panel with half of one would be singular."""
    n = 81
    B = np.zeros((n, n))
    B[0, 0] = 1
    B[np.arange(1, n, 2), np.arange(2, n, 2)] = B[np.arange(2, n, 2), np.arange(1, n, 2)] = 2
    A = sp.csc_array((B.ravel(), np.tile(np.arange(n), n), n * np.arange(n + 1)), shape=(n, n))
    factor = gs.ldlt(A, engine="supernodal", ordering="natural")
    b = np.arange(1.0, n + 1)
    np.testing.assert_array_equal(B @ factor.solve(b), b)
    assert factor.stats.n_repivoted == 0 and factor.inertia() == (41, 40, 0)
