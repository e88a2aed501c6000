"""What surrounds the recording of a graph and the loading of kernels; the rest needs a device."""

import gc

import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda.devices import no_collection
from gpusplu.engines.device.part import COMMON
from support.small_matrices import canonical, rhs


def test_nothing_is_collected_and_afterwards_all_is_as_before():
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("A", [gallery.poisson(6, 6), gallery.elasticity(3, 3, 3)], ids=["poisson", "elasticity"])
def test_kernels_of_a_factorization_and_a_solve_are_compiled_beforehand(device, engine, A):
    """Side by side, where loading them would compile one after the other."""
    factor = gs.splu(canonical(A), engine=engine)
    factor.refactor(canonical(A).data)
    factor.solve(rhs(A.shape[0]))
    assert len(COMMON) < len(device.loaded) and device.loaded <= device.prepared
