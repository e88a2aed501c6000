"""What tests of GPU engines without a GPU share."""

import sys

import pytest

from gpusplu.cuda import devices
from support import fake_cupy
from support.emulated_device import EmulatedDevice


@pytest.fixture
def device(monkeypatch):
    """The device that CuPy would find, emulated."""
    emulated_device = EmulatedDevice()
    monkeypatch.setattr(devices, "open_device", lambda which=None: emulated_device)
    return emulated_device


@pytest.fixture
def cupy(monkeypatch):
    """Arrays as CuPy would hand them over."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    return fake_cupy
