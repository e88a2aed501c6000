"""What tests on a device share. They are deselected by default: ``pytest -m gpu``."""

import os

import pytest

from gpusplu.cuda import devices
from support.cupys import real_cupy


@pytest.fixture(scope="session")
def cupy():
    return real_cupy()


@pytest.fixture
def device(cupy):
    """CuPy's current device, as the fixture of this name in the emulator's tests."""
    return devices.open_device()


@pytest.fixture(autouse=True)
def healthy_device(request):
    """After a kernel failed, nothing on the device works in this process: under pytest-xdist another one takes over."""
    yield
    if "PYTEST_XDIST_WORKER" in os.environ and "cupy" in request.fixturenames:
        module = request.getfixturevalue("cupy")
        try:
            module.cuda.Device().synchronize()
        except module.cuda.runtime.CUDARuntimeError:
            os._exit(1)
