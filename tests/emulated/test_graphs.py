"""CUDA graphs built node by node: nodes, edges, structs of the driver, and background work during captures."""

import ctypes
import gc
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs
from faults.forking import child
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import background, graphs
from gpusplu.cuda.driver import failure, use_cuda
from gpusplu.cuda.graphs import (
    CopyNodeParams,
    CopyOperand,
    EdgeData,
    Graph,
    GraphBuilder,
    GraphStream,
    KernelNodeParams,
    MemsetNodeParams,
)
from gpusplu.cuda.stream import Kernel
from support.small_matrices import EPS, rhs

#: Sizes and offsets of members in cuda.h of CUDA 12 and 13.
LAYOUTS = {
    KernelNodeParams: (72, (0, 8, 20, 32, 40, 48, 56, 64)),
    CopyNodeParams: (200, (0, 88, 176, 184, 192)),
    CopyOperand: (88, (0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80)),
    MemsetNodeParams: (40, (0, 8, 16, 20, 24, 32)),
    EdgeData: (8, (0, 1, 2, 3)),
}


@pytest.mark.parametrize("kind", LAYOUTS, ids=lambda kind: kind.__name__)
def test_struct_layouts(kind):
    size, offsets = LAYOUTS[kind]
    assert ctypes.sizeof(kind) == size
    assert tuple(getattr(kind, name).offset for name, *_ in kind._fields_) == offsets


class Driver:
    """The graph functions of the driver, which log their arguments."""

    INVALID_VALUE = 1

    def __init__(self):
        self.failing, self.noted, self.count, self.mode = "", [], 0, 0

    @property
    def nodes(self):
        """Nodes by number, from 1 on."""
        return dict(enumerate((what for what in self.noted if what[0] in ("kernel", "copy", "clear")), 1))

    @property
    def edges(self):
        return [(*what[1:3], what[3:]) for what in self.noted if what[0] == "edge"]

    def note(self, *what, name=None):
        self.noted.append(what)
        return self.INVALID_VALUE * (self.failing == name)

    def cuGetErrorName(self, error, text):
        text._obj.value = b"CUDA_ERROR_INVALID_VALUE" if error == self.INVALID_VALUE else None
        return error != self.INVALID_VALUE

    def cuGetErrorString(self, error, text):
        text._obj.value = b"invalid argument" if error == self.INVALID_VALUE else None
        return error != self.INVALID_VALUE

    def cuThreadExchangeStreamCaptureMode(self, mode):
        self.mode, mode._obj.value = mode._obj.value, self.mode
        return self.note("mode", self.mode)

    def cuCtxPushCurrent_v2(self, context):
        return self.note("push", context, name="cuCtxPushCurrent_v2")

    def cuCtxPopCurrent_v2(self, context):
        return self.note("pop")

    def cuGraphCreate(self, graph, flags):
        graph._obj.value = GRAPH
        return flags

    def cuGraphDestroy(self, graph):
        assert graph.value == GRAPH
        return self.note("destroy", "graph")

    def cuGraphExecDestroy(self, graph):
        assert graph == EXECUTABLE
        return self.note("destroy", "executable")

    def add(self, name, node, graph, before, count, *what):
        before = list(before or ())
        assert graph.value == GRAPH and len(set(before)) == count and set(before) <= set(range(1, self.count + 1))
        if self.failing == name:
            return self.INVALID_VALUE
        self.count = node._obj.value = self.count + 1
        self.noted += [("edge", one, self.count, 0, 0, 0) for one in before]
        return self.note(*what)

    def cuGraphAddKernelNode_v2(self, *place_and_parameters):
        *place, p = place_and_parameters
        p = p._obj
        first = ctypes.c_uint64.from_address(ctypes.c_void_p.from_address(p.arguments).value).value
        return self.add(
            "cuGraphAddKernelNode_v2", *place, "kernel", p.function, *p.grid, *p.block, p.shared_bytes, first
        )

    def cuGraphAddMemcpyNode(self, *place_and_parameters):
        *place, p, context = place_and_parameters
        p = p._obj
        source, to = p.source, p.to
        assert source.memory_type == to.memory_type == graphs.UNIFIED and p.depth == 1
        what = "copy", to.address, to.pitch, source.address, source.pitch, p.width_bytes, p.height, context
        return self.add("cuGraphAddMemcpyNode", *place, *what)

    def cuGraphAddMemsetNode(self, *place_and_parameters):
        *place, p, context = place_and_parameters
        p = p._obj
        assert (p.value, p.element_bytes, p.height) == (0, 1, 1)
        return self.add("cuGraphAddMemsetNode", *place, "clear", p.to, p.width, context)

    def cuGraphAddDependencies_v2(self, graph, before, after, edges, count):
        edge, ends = edges._obj, (before._obj.value, after._obj.value)
        name = "cuGraphAddDependencies_v2"
        return self.note("edge", *ends, edge.from_port, edge.to_port, edge.type, name=name)


GRAPH, EXECUTABLE = 1000, 2000
FULL, PROGRAMMATIC = (0, 0, 0), (1, 0, 1)
ARGUMENTS = np.dtype([("a", "u8"), ("n", "i4"), ("m", "i4")])


class Functions(list):
    """CuPy's bindings of the driver; logs attributes of functions."""

    def funcSetAttribute(self, *what):
        self.append(what)


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def stream(driver):
    return GraphStream(GraphBuilder(driver), SimpleNamespace(context=77, has_dependent_launch=True))


@pytest.fixture
def kernel():
    return Kernel(SimpleNamespace(ptr=42), "kernel", ARGUMENTS, Functions())


def args(number):
    return np.array((number, 2, 3), ARGUMENTS)


def test_commands_become_a_chain_of_nodes(driver, stream, kernel):
    stream.copy(16, 32, 5)
    stream.copy_rows(16, 100, 32, 200, 50, 3)
    stream.clear(48, 6)
    stream.launch(kernel, 7, 128, 100, args(9))
    stream.copy(16, 32, 0)
    stream.clear(16, 0)
    stream.copy_rows(16, 1, 32, 1, 0, 4)
    assert driver.nodes == {
        1: ("copy", 16, 0, 32, 0, 5, 1, 77),
        2: ("copy", 16, 100, 32, 200, 50, 3, 77),
        3: ("clear", 48, 6, 77),
        4: ("kernel", 42, 7, 1, 1, 128, 1, 1, 100, 9),
    }
    assert driver.edges == [(1, 2, FULL), (2, 3, FULL), (3, 4, FULL)]
    assert not kernel._driver


def test_limit_of_shared_memory_is_raised_once(stream, kernel):
    for nbytes in (48 << 10, 100_000, 90_000, 120_000):
        stream.launch(kernel, 1, 32, nbytes, args(0))
    assert [what[2] for what in kernel._driver] == [100_000, 120_000]


def test_programmatic_edges(driver, stream, kernel):
    """Only from a kernel that is the only dependency, as in stream capture."""
    stream.launch(kernel, 1, 32, 0, args(1), dependent=True)  # first node
    stream.launch(kernel, 1, 32, 0, args(2), dependent=True)
    stream.launch(kernel, 1, 32, 0, args(3))
    side = stream.fork()
    stream.launch(kernel, 1, 32, 0, args(4), dependent=True)
    side.launch(kernel, 1, 32, 0, args(5), dependent=True)  # after an event
    side.launch(kernel, 1, 32, 0, args(6), dependent=True)
    stream.join(side)
    stream.launch(kernel, 1, 32, 0, args(7), dependent=True)
    stream.clear(16, 4)
    stream.launch(kernel, 1, 32, 0, args(8), dependent=True)
    assert driver.edges == [
        (1, 2, PROGRAMMATIC),
        (2, 3, FULL),
        (3, 4, PROGRAMMATIC),
        (3, 5, FULL),
        (5, 6, PROGRAMMATIC),
        (4, 7, FULL),
        (6, 7, FULL),
        (7, 8, FULL),
        (8, 9, FULL),
    ]


def test_full_edges_without_dependent_launch(driver, kernel):
    stream = GraphStream(GraphBuilder(driver), SimpleNamespace(context=77, has_dependent_launch=False))
    for k in range(3):
        stream.launch(kernel, 1, 32, 0, args(k), dependent=True)
    assert driver.edges == [(1, 2, FULL), (2, 3, FULL)]


def test_events_and_peer_streams(driver, stream, kernel):
    other = stream.peer_stream(SimpleNamespace(context=88, has_dependent_launch=True), None)
    stream.copy(16, 32, 5)
    event = stream.record()
    stream.clear(16, 5)
    other.wait(event)
    other.wait(event)
    other.copy(32, 16, 5)
    stream.wait(other.record())
    stream.launch(kernel, 1, 32, 0, args(0))
    assert driver.nodes[3][-1] == 88
    assert driver.edges == [(1, 2, FULL), (1, 3, FULL), (2, 4, FULL), (3, 4, FULL)]


def test_fork_returns_the_same_second_stream(driver, stream):
    first = stream.fork()
    first.clear(1, 1)
    assert stream.fork() is first and first.fork() is first
    first.join(first)
    first.clear(2, 1)
    stream.clear(3, 1)
    stream.join(first)
    stream.clear(4, 1)
    assert driver.edges == [(1, 2, FULL), (3, 4, FULL), (2, 4, FULL)]


FAILING = {
    "cuGraphAddKernelNode_v2": lambda stream, kernel: stream.launch(kernel, 1, 32, 0, args(0)),
    "cuGraphAddMemcpyNode": lambda stream, kernel: stream.copy(16, 32, 5),
    "cuGraphAddMemsetNode": lambda stream, kernel: stream.clear(16, 5),
    "cuGraphAddDependencies_v2": lambda stream, kernel: launch_twice(stream, kernel),
}


@pytest.mark.parametrize("failing", FAILING)
def test_driver_errors_are_named(driver, stream, kernel, failing):
    driver.failing = failing
    with pytest.raises(RuntimeError, match=f"CUDA_ERROR_INVALID_VALUE in {failing}: invalid argument"):
        FAILING[failing](stream, kernel)
    assert str(failure(driver, 12345, "cuThat")) == "CUDA error 12345 in cuThat"


def launch_twice(stream, kernel):
    for _ in range(2):
        stream.launch(kernel, 1, 32, 0, args(0), dependent=True)


class Runtime:
    """CuPy's bindings of the CUDA runtime."""

    def __init__(self, executable):
        self.executable, self.given = executable, []

    def graphInstantiate(self, graph):
        self.given.append(graph)
        return self.executable

    def graphUpload(self, *what):
        self.given.append(what)

    graphLaunch = graphUpload


def test_graphs_are_destroyed_in_relaxed_mode(monkeypatch, driver):
    """Garbage collection may run while another thread captures in global mode."""
    monkeypatch.setattr(background, "library", lambda: driver)
    executable = EXECUTABLE
    runtime, builder = Runtime(executable), GraphBuilder(driver)
    handle, graph = builder.handle, Graph(driver, runtime, builder)
    builder.close()
    graph.upload(8)
    graph.launch(9)
    assert runtime.given == [handle, (executable, 8), (executable, 9)]
    assert driver.noted == [("destroy", "graph")]
    del graph
    gc.collect()
    assert driver.noted[1:] == [("mode", background.RELAXED), ("destroy", "executable"), ("mode", 0)]


def test_current_context(driver):
    with pytest.raises(KeyError), graphs.current_context(driver, 77):
        raise KeyError
    assert driver.noted == [("push", 77), ("pop",)]
    driver.failing = "cuCtxPushCurrent_v2"
    with pytest.raises(RuntimeError, match="in cuCtxPushCurrent_v2"), graphs.current_context(driver, 77):
        pass


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_destroy_nothing(monkeypatch, driver):
    monkeypatch.setattr(background, "library", lambda: driver)
    use_cuda()

    def work():
        graphs.destroy(driver, EXECUTABLE)
        with background.relaxed_capture_mode():
            return driver.noted

    assert child(work) == "[]"


def test_background_work_is_in_relaxed_mode(monkeypatch, driver):
    monkeypatch.setattr(background, "library", lambda: driver)
    assert not background.in_background()
    with background.background_work():
        with pytest.raises(KeyError), background.background_work():
            raise KeyError
        assert background.in_background() and driver.noted[-1] == ("mode", background.RELAXED)
        with ThreadPoolExecutor(1) as other:
            assert not other.submit(background.in_background).result()
    assert not background.in_background() and driver.noted[-1] == ("mode", 0)


def test_the_library_captures_no_stream():
    """A capture disturbs other threads, see tests/gpu/test_graphs.py."""
    sources = Path(gs.__file__).parent.rglob("*.py")
    assert not [path for path in sources if re.search(r"begin_capture|BeginCapture", path.read_text())]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("order", ["first", "last", 1, 2, 3])
def test_any_order_that_the_edges_allow(device, engine, order):
    A = gallery.rlc_mesh(8, 8)
    device.order = order
    factor, b = gs.splu(A, engine=engine), rhs(A.shape[0])
    for scale in (1.5, 2.0):
        factor.refactor(scale * A.data)
        assert backward_error(scale * A, factor.solve(b), b) < 10 * EPS["d"]
        assert backward_error(scale * A, factor.refactor_solve(scale * A.data, b), b) < 10 * EPS["d"]


@pytest.mark.usefixtures("cupy")
def test_the_emulator_detects_missing_edges(device):
    """A command that does not wait for its input reads old data in one of the orders."""
    numbers, place = np.arange(4.0), device.zeros(64)

    def graph(wait):
        def commands(stream):
            side = stream.fork()
            stream.copy(place.pointer, numbers.ctypes.data, 32)
            if wait:
                side.wait(stream.record())
            side.copy(place.pointer + 32, place.pointer, 32)
            stream.join(side)

        return device.build_graph(commands)

    def result(order, wait):
        device.order = order
        device.own_stream().clear(place.pointer, 64)
        device.own_stream().replay(graph(wait))
        found = np.empty(8)
        device.own_stream().read(found, place.pointer, 64)
        return found[4:].tolist()

    right = numbers.tolist()
    assert result("first", True) == result("last", True) == result(5, True) == right
    assert result("first", False) == right != result("last", False)
