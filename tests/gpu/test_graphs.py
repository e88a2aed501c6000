"""CUDA graphs built node by node: same bits as single commands, same nodes and edges as a capture, no interference.

Factors of `auto` build their graphs in a background thread, while the caller may synchronize the device, allocate and
capture streams.
"""

import ctypes
import gc
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import graphs
from gpusplu.cuda.driver import failure
from gpusplu.engines.device.call import Call

pytestmark = pytest.mark.gpu

ENGINES = ["supernodal", "glu", "sflu", "crisscross"]
#: For one right-hand side, with and without backward error.
CALLS = {
    "refactor": Call("new"),
    "solve": Call(solve=True),
    "solve-measured": Call(solve=True, trans=1, measured=True),
    "refactor_solve": Call("new", solve=True, measured=True),
    "refactor-host": Call("new", on_host=True),
    "solve-host": Call(solve=True, measured=True, on_host=True),
    "refactor_solve-host": Call("new", solve=True, measured=True, on_host=True),
}
CASES = ["rlc:60x60", "rlc:50x70", "poisson:80x80", "convdiff:12", "rlc:30x80"]
SECONDS = 30.0  # for a factor to move, including compilation


def made(engine, name="rlc:60x60"):
    """A factor and its `CommandGraphs`."""
    A = gallery.named(name)
    factor = gs.splu(A, engine=engine)
    factor.refactor(A.data)
    factor.solve(np.ones(A.shape[0]))
    factor.refactor_solve(A.data, np.ones(A.shape[0]))
    return factor, factor.parts()[0].commands


def bits(device, *buffers):
    """Contents of buffers."""
    device.synchronize()
    found = [np.empty(buffer.nbytes, np.uint8) for buffer in buffers]
    for array, buffer in zip(found, buffers, strict=True):
        device.own_stream().read(array, buffer.pointer, buffer.nbytes)
    return [array.tobytes() for array in found]


# ---- contents


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same_bits_as_single_commands(device, engine, call):
    _, commands = made(engine)
    with device:
        graph, stream = commands.graph(call), commands.begin()
        results = commands.buffers.own["factor"], commands.buffers.vectors(1).x
        commands.add_commands(stream, call)
        expected = bits(device, *results)
        for _ in range(3):
            if call.solve:
                stream.clear(results[1].pointer, results[1].nbytes)
            stream.replay(graph)
            found = bits(device, *results)
            if engine == "glu":  # atomic sums differ in their last bits
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_allclose(np.frombuffer(one), np.frombuffer(other), rtol=1e-9, atol=1e-12)
            else:
                assert found == expected


def shape_of(handle):
    """Number of nodes by type, and of edges by ports and type."""
    driver, count = graphs.graph_driver(), ctypes.c_size_t()

    def checked(name, *args):
        if error := getattr(driver, name)(*args):
            raise failure(driver, error, name)

    graph = ctypes.c_void_p(handle)
    checked("cuGraphGetNodes", graph, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    checked("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
    kinds = Counter()
    for node in nodes:
        kind = ctypes.c_int()
        checked("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        kinds[kind.value] += 1
    checked("cuGraphGetEdges_v2", graph, None, None, None, ctypes.byref(count))
    ends = [(ctypes.c_void_p * count.value)() for _ in range(2)]
    edges = (graphs.EdgeData * count.value)()
    if count.value:  # arrays of no entries are refused
        checked("cuGraphGetEdges_v2", graph, *ends, edges, ctypes.byref(count))
    return kinds, Counter((edge.from_port, edge.to_port, edge.type) for edge in edges)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same_nodes_and_edges_as_a_capture(cupy, device, engine, call):
    _, commands = made(engine)
    runtime = cupy.cuda.runtime
    device.ready_to_capture()
    stream = cupy.cuda.Stream(non_blocking=True)
    with device, stream:
        commands.graph(call)  # allocates, loads and uploads what the commands need
        runtime.streamBeginCapture(stream.ptr, runtime.streamCaptureModeThreadLocal)
        with device.captured() as captured:
            commands.add_commands(captured, call)
        handle = runtime.streamEndCapture(stream.ptr)
        with graphs.current_context(graphs.graph_driver(), device.context):
            builder = graphs.GraphBuilder(graphs.graph_driver())
            commands.add_commands(graphs.GraphStream(builder, device), call)
            expected, found = shape_of(handle), shape_of(builder.handle)
            builder.close()
        runtime.graphDestroy(handle)
    print(f"{engine} {call}: nodes {dict(found[0])}, edges {dict(found[1])}")
    assert found == expected
    if engine == "supernodal" and call.values and device.has_dependent_launch:
        assert found[1][1, 0, 1] > 0  # programmatic


def test_copies_of_pageable_pinned_and_device_memory(cupy, device):
    numbers = np.arange(6000.0).reshape(60, 100)
    pageable, pinned = np.zeros_like(numbers), device.pinned(numbers.dtype, numbers.size)
    there, other = device.zeros(numbers.nbytes), device.zeros(numbers.nbytes)
    row, few = 800, 240

    def commands(stream):
        stream.copy(there.pointer, numbers.ctypes.data, numbers.nbytes)
        side = stream.fork()
        side.copy(pinned.ctypes.data, there.pointer, numbers.nbytes)
        stream.clear(other.pointer, other.nbytes)
        stream.copy_rows(other.pointer + 80, row, there.pointer, row, few, 60)
        stream.copy_rows(other.pointer, row, numbers.ctypes.data + row - 80, row, 80, 60)
        stream.copy(pageable.ctypes.data, other.pointer, other.nbytes)
        stream.join(side)

    graph = device.build_graph(commands)
    for scale in (1, 2):
        numbers *= scale
        with device:
            stream = device.caller_stream()
            stream.replay(graph)
            stream.synchronize()
        expected = np.zeros_like(numbers)
        expected[:, 10:40], expected[:, :10] = numbers[:, :30], numbers[:, 90:]
        np.testing.assert_array_equal(pinned, numbers.reshape(-1))
        np.testing.assert_array_equal(pageable, expected)


def test_copies_of_more_than_four_gigabytes(cupy, device):
    nbytes = (5 << 30) + 24
    if device.free_bytes() < 3 * nbytes:
        pytest.skip("there is not enough memory")
    try:
        check_copy_and_clear(cupy, device, nbytes)
    finally:
        cupy.get_default_memory_pool().free_all_blocks()


def check_copy_and_clear(cupy, device, nbytes):
    one, other = cupy.empty(nbytes, "u1"), cupy.ones(nbytes, "u1")
    one[...] = 7
    one[-24:] = cupy.arange(24, dtype="u1")
    device.synchronize()
    copy = device.build_graph(lambda stream: stream.copy(other.data.ptr, one.data.ptr, nbytes))
    clear = device.build_graph(lambda stream: stream.clear(one.data.ptr, nbytes))
    with device:
        stream = device.caller_stream()
        stream.replay(copy)
        assert bool((one == other).all())
        stream.replay(clear)
        assert not bool(one.any()) and int(other[-1]) == 23


def test_build_in_a_new_thread(cupy, device):
    place, numbers = device.zeros(64), np.ones(8)
    with ThreadPoolExecutor(1) as other:
        graph = other.submit(device.build_graph, lambda stream: stream.clear(place.pointer, 64)).result()
    with device:
        stream = device.caller_stream()
        stream.copy(place.pointer, numbers.ctypes.data, 64)
        stream.replay(graph)
        stream.read(numbers, place.pointer, 64)
    assert not numbers.any()


def test_device_memory_does_not_grow(cupy, device):
    _, commands = made("supernodal")
    call = Call("new", solve=True, measured=True)

    def after(times):
        for _ in range(times):
            with device:
                graph = device.build_graph(lambda stream: commands.add_commands(stream, call))
                commands.begin().replay(graph)
        del graph
        gc.collect()
        device.synchronize()
        return cupy.cuda.runtime.memGetInfo()[0]

    free = after(50)
    later = after(300)
    assert later >= free - (2 << 20), f"{free - later:,} bytes were kept"


def test_a_destroyed_graph_completes(cupy, device):
    size = 1 << 30
    one, other = cupy.full(size, 3, "u1"), cupy.zeros(size, "u1")
    device.synchronize()

    def commands(stream):
        for _ in range(20):
            stream.copy(other.data.ptr, one.data.ptr, size)
        stream.clear(one.data.ptr, size)

    with device:
        device.caller_stream().replay(device.build_graph(commands))
        gc.collect()
        assert not bool(one.any()) and bool((other == 3).all())


# ---- other threads


class Repeated:
    """A thread that repeats some work and counts exceptions."""

    def __init__(self, work):
        self._work, self._stop, self.done, self.errors = work, False, 0, Counter()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop:
            try:
                self._work()
                self.done += 1
            except Exception as error:
                self.errors[f"{type(error).__name__}: {str(error)[:200]}"] += 1
            time.sleep(0)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop = True
        self._thread.join()


def all_move(between=lambda: None):
    """Use factors of all cases until they have moved to the device; returns what went wrong."""
    wrong = []
    for name in CASES:
        A = gallery.named(name)
        b = np.random.default_rng(0).normal(size=A.shape[0])
        gs.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            lu, end = gs.splu(A), time.perf_counter() + SECONDS
            while lu.engine == "cpu" and time.perf_counter() < end:
                lu.refactor(A.data)
                lu.solve(b)
                between()
            lu.refactor(2 * A.data)
            error = backward_error(2 * A, lu.solve(b), b)
        told = [str(each.message) for each in said if "stays on the processor" in str(each.message)]
        if lu.engine == "cpu" or error > 1e-13 or told:
            wrong.append(f"{name}: engine {lu.engine}, backward error {error:.1e}, warnings {told}\n{lu.explain()}")
    return wrong


def check_all_move(work):
    work()  # loads modules
    with Repeated(work) as repeated:
        wrong = all_move()
    assert not wrong and not repeated.errors and repeated.done > 10, "\n".join([str(repeated.errors), *wrong])


def test_another_thread_synchronizes(cupy):
    check_all_move(lambda: cupy.cuda.Device().synchronize())


def test_another_thread_allocates(cupy):
    def work():
        memory = cupy.cuda.Memory(1 << 20)
        cupy.arange(1000).sum().item()
        del memory

    check_all_move(work)


def test_another_thread_captures(cupy):
    check_all_move(Captured(cupy, False, cupy.cuda.runtime.streamCaptureModeThreadLocal).again)


def test_pytorch_in_another_thread(cupy):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")

    def work():
        kept = torch.ones(100_000, device="cuda")
        assert float((kept + 1).sum()) == 200_000
        del kept
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    check_all_move(work)


def test_jax_in_another_thread(cupy, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX without CUDA")
    twice = jax.jit(lambda x: (x + x).sum())

    def work():
        assert float(twice(jax.numpy.ones(1000)).block_until_ready()) == 2000
        cupy.cuda.Device().synchronize()

    check_all_move(work)


class Captured:
    """Captures a graph, launches it and checks the result."""

    def __init__(self, cupy, blocking, mode):
        self.cupy, self.mode = cupy, mode
        self.stream = cupy.cuda.Stream(non_blocking=not blocking)
        with self.stream:
            self.x, self.y = cupy.zeros(1000), cupy.zeros(1000)
            cupy.add(self.x, 1, out=self.y)
            cupy.multiply(self.y, 2, out=self.x)
        self.stream.synchronize()
        self.times = 0

    def again(self):
        cupy, stream = self.cupy, self.stream
        with stream:
            self.x.fill(0)
            stream.begin_capture(self.mode)
            try:
                cupy.add(self.x, 1, out=self.y)
                time.sleep(1e-3)
                cupy.multiply(self.y, 2, out=self.x)
            finally:
                graph = stream.end_capture()
            for _ in range(3):
                graph.launch(stream)
            stream.synchronize()
            assert float(self.x[0].get()) == 14
        self.times += 1


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
@pytest.mark.parametrize("mode", ["Global", "ThreadLocal", "Relaxed"])
def test_captures_between_calls(cupy, mode, blocking):
    """Meanwhile the background thread allocates, loads kernels, factors and builds graphs."""
    graph = Captured(cupy, blocking, getattr(cupy.cuda.runtime, f"streamCaptureMode{mode}"))
    wrong = all_move(graph.again)
    assert not wrong and graph.times > 2, "\n".join(wrong)


def test_captures_by_pytorch_between_calls(cupy):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    x, times = torch.zeros(1000, device="cuda"), []

    def again():
        x.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x + 1
            time.sleep(1e-3)
            x.copy_(2 * y)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert float(x[0]) == 14
        times.append(1)

    again()
    wrong = all_move(again)
    assert not wrong and len(times) > 2, "\n".join(wrong)
