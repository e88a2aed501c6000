"""What tests of GPU engines without a GPU share."""

import sys

import pytest

from gpusplu.cuda import devices
from gpusplu.cuda.driver import use_cuda
from gpusplu.engines.supernodal import memory, shared_plan
from gpusplu.engines.supernodal.plan import make_plan
from support import fake_cupy
from support.cupys import real_cupy
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


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request):
    """CuPy beside the emulated device, or the real one."""
    if request.param == "gpu":
        if "device" in request.fixturenames:
            pytest.skip("looks into the emulated device")
        return real_cupy()
    request.getfixturevalue("device")
    return request.getfixturevalue("cupy")


@pytest.fixture
def captured(request, backend):
    """Called with `body`, which takes kernels of the caller by `call`: replays of a graph that the caller captures."""
    if not request.node.get_closest_marker("gpu"):
        device = request.getfixturevalue("device")

        def capture(body):
            with device.capture() as graph:
                body(graph.call)
            return lambda times=1: [graph.launch() for _ in range(times)]

        return capture
    stream = backend.cuda.Stream(non_blocking=True)

    def capture(body):
        backend.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            try:
                body(lambda kernel: kernel())
            finally:
                graph = stream.end_capture()

        def launch(times=1):
            backend.cuda.Device().synchronize()  # other streams have written to its arrays
            for _ in range(times):
                graph.launch(stream)
            stream.synchronize()

        return launch

    return capture


@pytest.fixture
def plan_with(monkeypatch):
    """Called with parameters of the planner, it has engines make their plans with them; the list of these plans."""

    def use(**parameters):
        made = []

        def plan(core, *arguments):
            made.append(make_plan(core, *arguments, **parameters))
            return made[-1]

        def best_plan(cores, *arguments):
            return cores[0], plan(cores[0], *arguments), [0.0] * len(cores)

        for module in (memory, shared_plan):
            monkeypatch.setattr(module, "make_best_plan", best_plan)
        monkeypatch.setattr(memory, "make_plan", plan)
        return made

    return use
