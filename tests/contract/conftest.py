"""Where the engines find a device: the emulated one, or the real one."""

import sys

import pytest

import gpusplu
from contract.cases import Case
from gpusplu.cuda import devices
from gpusplu.cuda.driver import use_cuda
from gpusplu.engines import registry
from support import fake_cupy
from support.cupys import real_cupy
from support.emulated_device import EmulatedDevice
from support.toy_engine import ToyEngine


@pytest.fixture
def device(request, monkeypatch):
    """CuPy beside a device: an emulated one unless a test's `case` is on a GPU."""
    parameters = getattr(request.node, "callspec", None)
    backend = parameters.params["case"][3] if parameters and "case" in parameters.params else "emulated"
    if backend == "gpu":
        return real_cupy()
    emulated = EmulatedDevice()

    def open_device(which=None):
        use_cuda()
        return emulated

    monkeypatch.setattr(devices, "open_device", open_device)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    return fake_cupy


@pytest.fixture
def case(request, device):
    engine, kind, dtype, _ = request.param
    with registry.registered(ToyEngine()):
        yield Case(engine, kind, dtype, device)


@pytest.fixture
def lose_device(device, monkeypatch):
    """A function from whose call on no device can be used."""

    def gone(which=None):
        raise gpusplu.EngineUnavailableError("no CUDA device can be used")

    return lambda: monkeypatch.setattr(devices, "open_device", gone)
