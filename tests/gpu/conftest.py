"""What tests on a device share. They are deselected by default: ``pytest -m gpu``."""

import warnings

import pytest


@pytest.fixture(scope="session")
def cupy():
    """CuPy with a device, or a skip that says what is missing."""
    with warnings.catch_warnings():  # CuPy's own, about the machine it is on
        warnings.simplefilter("ignore")
        module = pytest.importorskip("cupy")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    if count == 0:
        pytest.skip("no CUDA device")
    return module
