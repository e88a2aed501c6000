"""LDL^T by the supernodal engine on an emulated device, beside the CPU engine's."""

import pytest

from gpusplu import gallery
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.plan import make_plan
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


@pytest.mark.parametrize(("dtype", "hermitian"), [("d", True), ("D", True), ("F", False)])
@pytest.mark.parametrize("phases", PHASES)
def test_every_phase(device, monkeypatch, phases, dtype, hermitian):
    def planned(cores, *arguments):
        return cores[0], make_plan(cores[0], *arguments, **PHASES[phases]), [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", planned)
    check_indefinite(gallery.named("stokes:9x8"), dtype, hermitian)
