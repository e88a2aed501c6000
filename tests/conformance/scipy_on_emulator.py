"""pytest plugin: SciPy's own tests with an engine of the GPU, emulated (loaded by test_scipy_suite.py with -p)."""

import os

import gpusplu
from gpusplu.cuda import devices
from gpusplu.engines.problem import Request
from gpusplu.factors import lu
from support.emulated_device import EmulatedDevice

DEVICE = EmulatedDevice()

devices.open_device = lambda which=None: DEVICE
lu.automatic = lambda: Request(os.environ["GPUSPLU_TESTED_ENGINE"], "tested", 0)
gpusplu.install()


def pytest_sessionfinish(session):
    """The suite says nothing about the engine unless the device did the work."""
    assert DEVICE.counts.get("check_values", 0) > 0, "nothing ran on the device"
