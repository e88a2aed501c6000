"""Where the engines find a device: the emulated one, or the real one."""

import sys

import pytest

from gpusplu.cuda import devices
from gpusplu.cuda.process import use_cuda
from support import fake_cupy
from support.emulated_device import EmulatedDevice

from contract.cases import Case


def real_cupy():
    module = pytest.importorskip("cupy")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"no CUDA device: {error}")
    return module if count else pytest.skip("no CUDA device")


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
    return Case(engine, kind, dtype, device)
