"""Where the engines find a device: the emulated one, or the real one."""

import sys
import warnings

import pytest

import gpusplu
from contract.cases import Case
from gpusplu.cost.model import Estimate
from gpusplu.cuda import devices, presence
from gpusplu.cuda.process import use_cuda
from gpusplu.dispatch import migration as moving
from gpusplu.engines import registry
from gpusplu.engines.device.engine import DeviceEngine
from support import fake_cupy
from support.emulated_device import EmulatedDevice
from support.toy_engine import ToyEngine


def real_cupy():
    with warnings.catch_warnings():  # CuPy's own, about the machine it is on
        warnings.simplefilter("ignore")
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
    with registry.registered(ToyEngine()):
        yield Case(engine, kind, dtype, device)


@pytest.fixture
def fast_device(device, monkeypatch):
    """An emulated device that costs nothing to look at and promises steps of no time, in the calling thread."""

    def predicted(problem, engines):
        return tuple(
            Estimate(e.name, note="" if e.name == "supernodal" else "not here", refactor=0.0, factor=0.0)
            for e in engines
        )

    monkeypatch.setattr(presence, "no_driver", lambda: "")
    monkeypatch.setattr(presence, "no_device", lambda: "")
    monkeypatch.setattr(moving, "predicted", predicted)
    monkeypatch.setattr(moving, "FIRST", 0.0)
    monkeypatch.setattr(moving, "has_idle_processor", lambda: False)
    monkeypatch.setattr(DeviceEngine, "lower_bound", lambda self, problem: 0.0)
    gpusplu.cache_clear()
    yield device
    gpusplu.cache_clear()


@pytest.fixture
def lose_device(device, monkeypatch):
    """A function from whose call on no device can be used."""

    def gone(which=None):
        raise gpusplu.EngineUnavailableError("no CUDA device can be used")

    return lambda: monkeypatch.setattr(devices, "open_device", gone)
