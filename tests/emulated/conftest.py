"""What tests of GPU engines without a GPU share."""

import sys

import pytest

from gpusplu.cuda import devices
from gpusplu.cuda.process import use_cuda
from support import fake_cupy
from support.emulated_device import EmulatedDevice


@pytest.fixture
def device(monkeypatch):
    """The device that CuPy would find, emulated."""
    emulated_device = EmulatedDevice()

    def open_device(which=None):
        use_cuda()
        return emulated_device

    monkeypatch.setattr(devices, "open_device", open_device)
    return emulated_device


@pytest.fixture
def cupy(monkeypatch):
    """Arrays as CuPy would hand them over."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    return fake_cupy
