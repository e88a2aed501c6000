"""CuPy with a device, for tests that run in the emulator as well."""

import warnings

import pytest


def real_cupy():
    """CuPy, or a skip that says what is missing."""
    with warnings.catch_warnings():  # CuPy's own, about the machine it is on
        warnings.simplefilter("ignore")
        module = pytest.importorskip("cupy")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    return module if count else pytest.skip("no CUDA device")
