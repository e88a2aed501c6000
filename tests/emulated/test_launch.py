"""What surrounds the recording of a graph; the rest of launch.py needs a device."""

import gc

import pytest

from gpusplu.cuda.devices import no_collection


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
