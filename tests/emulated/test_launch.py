"""What surrounds commands in a captured stream and the loading of kernels; the rest needs a device."""

import gc

import pytest

import gpusplu as gs
from faults.forking import child
from gpusplu import gallery
from gpusplu.cuda import devices
from gpusplu.cuda.collection import no_collection
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
    first = no_collection()
    with no_collection():
        first.__enter__()
    assert not gc.isenabled()  # a thread that began later is still inside
    first.__exit__(None, None, None)
    assert gc.isenabled()


def test_collection_goes_on_in_a_child_of_a_thread_that_captures():
    with no_collection():
        assert child(gc.isenabled) == "True"
    assert gc.isenabled()


def test_kernel_files_are_hashed_once(monkeypatch, tmp_path):
    """By one device: to ask whether they are compiled is part of every first factorization."""
    hashed, there = [], tmp_path / "there"
    monkeypatch.setattr(devices.compiled, "place", lambda *what: hashed.append(what) or there)
    one = object.__new__(devices.Device)
    one._modules, one._prepared, one._places, one.arch = {}, set(), {}, 90
    assert not one.compiled(COMMON, "d", 0)
    there.touch()
    assert one.compiled(COMMON, "d", 0) and one.compiled(COMMON, "d", 0)
    assert len(hashed) == len(set(hashed)) == len(COMMON)


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("A", [gallery.poisson(6, 6), gallery.elasticity(3, 3, 3)], ids=["poisson", "elasticity"])
def test_kernels_of_a_factorization_and_a_solve_are_compiled_beforehand(device, engine, A):
    """Side by side, where loading them would compile one after the other."""
    factor = gs.splu(canonical(A), engine=engine)
    factor.refactor(canonical(A).data)
    factor.solve(rhs(A.shape[0]))
    assert len(COMMON) < len(device.loaded) and device.loaded <= device.prepared
