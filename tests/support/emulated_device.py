"""A device of `gpusplu.cuda.devices` whose memory is NumPy's and whose kernels run in the emulator.

Memory starts as NaN and is checked for writes past its end when a stream is synchronized. What runs is counted, so that
tests can say what a step may cost. Several devices of one host have memories of their own: an address in the memory of
another one is an error where they cannot reach each other, and so is a command of a device that is not the current one.
"""

from __future__ import annotations

import ctypes
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusplu import _core, _core_testing
from gpusplu.cuda import devices
from gpusplu.cuda.background import in_background
from gpusplu.cuda.chunked_copies import HostCopies
from gpusplu.cuda.driver import use_cuda
from gpusplu.cuda.graphs import GraphStream, Nodes
from gpusplu.cuda.layout import arguments
from gpusplu.cuda.nvrtc import kind_of
from gpusplu.cuda.stream import Buffer
from gpusplu.cuda.waiting import NOT_READY, wait_interruptibly
from gpusplu.errors import DeviceMemoryError, EngineUnavailableError

from . import emulated, fake_cupy

GUARD = 64  # bytes behind every buffer


class Kernel:
    def __init__(self, library: emulated.Library, name: str, dtype: np.dtype):
        self.library, self.name, self.arguments = library, name, dtype


class Thread(threading.local):
    recording = False
    captured = None  # the caller's stream, while he captures it


class Memory:
    """An allocation and its guard."""

    def __init__(self, device: EmulatedDevice, nbytes: int):
        self.device, self.nbytes = device, nbytes
        self.bytes = np.full(nbytes + GUARD + 16, 0xFF, dtype=np.uint8)
        self.begin = -self.bytes.ctypes.data % 16
        device.use(nbytes)

    def holds(self, address: int) -> bool:
        begin = self.bytes.ctypes.data
        return begin <= address < begin + self.bytes.size

    def check(self) -> None:
        guard = self.bytes[self.begin + self.nbytes :]
        assert (guard == 0xFF).all(), f"a kernel wrote past the end of a buffer of {self.nbytes} bytes"

    def __del__(self) -> None:
        self.device.use(-self.nbytes)


class Stream:
    """Commands run at once."""

    captured = False  # by the caller

    def __init__(self, device: EmulatedDevice):
        self.device = device

    def _do(self, command: Callable[[], None]) -> None:
        self.device.must_be_current()
        command()

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self._do(self.device.copy_command((to, 0), (source, 0), (nbytes, 1)))

    def copy_rows(self, to: int, to_pitch: int, source: int, source_pitch: int, width: int, height: int) -> None:
        self._do(self.device.copy_command((to, to_pitch), (source, source_pitch), (width, height)))

    def read(self, to: np.ndarray, source: int, nbytes: int) -> None:
        self.copy(to.ctypes.data, source, nbytes)
        self.synchronize()

    def clear(self, to: int, nbytes: int) -> None:
        self._do(self.device.clear_command(to, nbytes))

    def launch(
        self, kernel: Kernel, grid: int, block: int, shared_bytes: int, args: np.ndarray, dependent: bool = False
    ) -> None:
        self._do(self.device.kernel_command(kernel, grid, block, shared_bytes, args))

    def replay(self, graph: EmulatedGraph) -> None:
        self.device.count("replay")
        graph.run(self.device.order)

    def fork(self) -> Stream:
        return self

    def join(self, side: Stream) -> None:
        assert side is self

    def peer_stream(self, device: EmulatedDevice, stream: Stream) -> Stream:
        return stream

    def record(self) -> tuple[()]:
        self.device.must_be_current()
        return ()

    def wait(self, event: tuple[()]) -> None:
        assert event == (), "a stream waits for what is only captured"

    def synchronize(self) -> None:
        self.device.count("synchronize")
        self.device.wait_until_idle()
        self.device.check()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    __hash__ = None


# ---- graphs

#: Which of several commands whose dependencies are done runs next: the one added first, or last, or a random one.
FIRST, LAST = "first", "last"
Order = str | int


@dataclass(eq=False)
class Command:
    """A node of a graph and its dependencies."""

    run: Callable[[], None]
    after: tuple[Command, ...]
    programmatic: bool = False  # depends on its predecessor by a programmatic edge


class Recording(list[Command]):
    """Commands of a graph, with the interface of `GraphBuilder` (gpusplu/cuda/graphs.py)."""

    def launch(
        self, device: Any, kernel: Any, shape: tuple[int, int, int], args: np.ndarray, after: Nodes, programmatic: bool
    ) -> Command:
        made = self.add(device, device.kernel_command(kernel, *shape, args), after)
        if programmatic:
            device.count("dependent")
            made.programmatic = True
        return made

    def copy(
        self, device: Any, to: tuple[int, int], source: tuple[int, int], shape: tuple[int, int], after: Nodes
    ) -> Command:
        return self.add(device, device.copy_command(to, source, shape), after)

    def clear(self, device: Any, to: int, nbytes: int, after: Nodes) -> Command:
        return self.add(device, device.clear_command(to, nbytes), after)

    def add(self, device: Any, run: Callable[[], None], after: Nodes) -> Command:
        device.must_be_current()
        assert len(set(after)) == len(after), "duplicate dependencies"
        self.append(Command(run, after))
        return self[-1]


class CapturedStream(GraphStream):
    """The caller's stream while he captures it."""

    __slots__ = ()
    captured = True

    def call(self, run: Callable[[], None]) -> None:
        """Add work of a kernel of the caller."""
        self._append(self._builder.add(self._device, run, self._last))

    def replay(self, graph: Any) -> None:
        raise AssertionError("a graph cannot be captured into another")

    def read(self, to: np.ndarray, source: int, nbytes: int) -> None:
        self.synchronize()

    def synchronize(self) -> None:
        raise AssertionError("the host cannot wait for what is only captured")


@dataclass(eq=False)
class EmulatedGraph:
    """An executable graph."""

    commands: Sequence[Command]

    def run(self, order: Order) -> None:
        if order == FIRST:  # dependencies are added before their dependents
            for command in self.commands:
                command.run()
            return
        left = {command: len(command.after) for command in self.commands}
        behind: dict[Command, list[Command]] = {command: [] for command in self.commands}
        for command in self.commands:
            for before in command.after:
                behind[before].append(command)
        ready, chance = [command for command, count in left.items() if not count], random.Random(order)
        while ready:
            command = ready.pop(-1 if order == LAST else chance.randrange(len(ready)))
            command.run()
            for other in behind[command]:
                left[other] -= 1
                if not left[other]:
                    ready.append(other)
        assert not any(left.values())


def joined(commands: Sequence[Command], end: Sequence[Command]) -> bool:
    """Whether `end` depends on all other commands."""
    found, ahead = set(end), list(end)
    while ahead:
        for command in ahead.pop().after:
            if command not in found:
                found.add(command)
                ahead.append(command)
    return len(found) == len(commands)


class CapturedGraph:
    """A graph of the caller's: what is asked of the device while he captures his stream, and kernels of his own."""

    def __init__(self, device: EmulatedDevice):
        self._device, self.commands = device, Recording()
        self.stream = CapturedStream(self.commands, device)

    def call(self, kernel: Callable[[], object]) -> None:
        """What a kernel of the caller's does."""
        self.stream.call(kernel)

    def close(self) -> None:
        assert joined(self.commands, self.stream.record()), "the second stream was not joined"

    def launch(self) -> None:
        """Replay it; nobody waits."""
        EmulatedGraph(self.commands).run(self._device.order)


class EmulatedDevice(HostCopies):
    """Looks like an H200 with `memory_bytes` of memory.

    `order`: of independent commands in graphs. `host`: of several devices.
    """

    def __init__(
        self, memory_bytes: int = 1 << 30, seed: int = 0, multiprocessors: int = 4, index: int = 0, host: Any = None
    ):
        self.index, self.name, self.arch = index, "emulated", 90
        self.host_of = host
        self.array_class = fake_cupy.ndarray
        self.multiprocessors, self.shared_memory_bytes = multiprocessors, 232448
        self.double_ratio = 2
        self.memory_bytes, self.seed, self.used = memory_bytes, seed, 0
        self.most_used, self.host_bytes, self.order = 0, 0, FIRST
        self.cached = True  # kernels are
        self.loaded: set[tuple[str, str, int]] = set()
        self.prepared: set[tuple[str, str, int]] = set()
        self.counts: dict[str, int] = {}
        self._memories: weakref.WeakSet[Memory] = weakref.WeakSet()
        self._lock = threading.RLock()  # of what threads change; memory may be given back while one of them has it
        self._thread = Thread()
        self._idle_at, self.waited_for = ctypes.c_double(), threading.Event()

    def be_busy(self, seconds: float) -> None:
        """What was asked of it goes on for that long; `waited_for` is set when somebody waits."""
        self.waited_for.clear()
        self._idle_at.value = time.perf_counter() + seconds

    def wait_until_idle(self) -> None:
        """By the core, as for a stream of CUDA's."""
        if time.perf_counter() < self._idle_at.value:
            self.waited_for.set()
        if _core.poll(_core_testing.stream_is_busy, ctypes.addressof(self._idle_at), NOT_READY):
            while time.perf_counter() < self._idle_at.value:  # in a thread that no signal comes to
                time.sleep(0.001)

    def __enter__(self) -> EmulatedDevice:
        use_cuda()
        if self.host_of:
            self.host_of.enter(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self.host_of:
            self.host_of.leave()

    def must_be_current(self) -> None:
        assert not self.host_of or self.host_of.is_current(self), f"device {self.index} is not the current one"

    def check_copy(self, to: int, source: int) -> None:
        if self.host_of:
            self.host_of.check_copy(self, to, source)

    def check_reach(self, addresses: list[int], what: str) -> None:
        if self.host_of:
            self.host_of.check_reach(self, addresses, what)

    def reaches(self, other: EmulatedDevice) -> bool:
        return self is other or (self.host_of is not None and self.host_of.connect(self, other))

    def owns(self, address: int) -> bool:
        with self._lock:
            return any(memory.holds(address) for memory in self._memories)

    def must_not_capture(self) -> None:
        assert not self._thread.recording or in_background(), "not while a stream is captured"

    def new_stream(self) -> Stream:
        self.must_not_capture()
        return Stream(self)

    # ---- commands of streams and graphs

    def copy_command(self, to: tuple[int, int], source: tuple[int, int], shape: tuple[int, int]) -> Callable[[], None]:
        self.count("copy")
        width, height = shape
        assert height == 1 or width <= min(to[1], source[1])

        def run() -> None:
            self.check_copy(to[0], source[0])
            for k in range(height):
                memory_at(to[0] + k * to[1], width)[:] = memory_at(source[0] + k * source[1], width)

        return run

    def clear_command(self, to: int, nbytes: int) -> Callable[[], None]:
        self.count("clear")

        def run() -> None:
            self.check_reach([to], "clear")
            memory_at(to, nbytes).fill(0)

        return run

    def kernel_command(
        self, kernel: Kernel, grid: int, block: int, shared_bytes: int, args: np.ndarray
    ) -> Callable[[], None]:
        assert shared_bytes <= self.shared_memory_bytes, (kernel.name, shared_bytes)
        assert grid > 0
        self.count(kernel.name)
        record = np.array(args, dtype=kernel.arguments)
        addresses, seed = addresses_in(record), self.seed

        def run() -> None:
            self.check_reach(addresses, kernel.name)
            kernel.library.launch(kernel.name, grid, block, shared_bytes, record, seed)

        return run

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def use(self, nbytes: int) -> None:
        with self._lock:
            self.used += nbytes
            self.most_used = max(self.most_used, self.used)

    def check(self) -> None:
        with self._lock:
            memories = list(self._memories)
        for memory in memories:
            memory.check()

    def free_bytes(self) -> int:
        return self.memory_bytes - self.used

    def empty(self, nbytes: int) -> Buffer:
        size = max(int(nbytes), 256)
        if size > self.free_bytes():
            raise DeviceMemoryError(size, self.free_bytes())
        self.must_not_capture()
        self.count("allocate")
        memory = Memory(self, size)
        with self._lock:
            self._memories.add(memory)
        return Buffer(memory, memory.bytes.ctypes.data + memory.begin, int(nbytes))

    def zeros(self, nbytes: int) -> Buffer:
        buffer = self.empty(nbytes)
        memory_at(buffer.pointer, max(int(nbytes), 256)).fill(0)
        return buffer

    def upload(self, array: np.ndarray) -> Buffer:
        array = np.ascontiguousarray(array)
        buffer = self.empty(array.nbytes) if array.nbytes else self.zeros(0)
        memory_at(buffer.pointer, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        return buffer

    def pinned(self, dtype: np.dtype, count: int) -> np.ndarray:
        return np.zeros(count, dtype)

    def host(self, nbytes: int) -> Buffer:
        memory = np.full(nbytes, 0xFF, np.uint8)
        self.host_bytes += nbytes
        return Buffer(memory, memory.ctypes.data, nbytes)

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return fake_cupy.empty(shape, dtype, order="F")

    def pointer(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def can_read(self, array: np.ndarray) -> bool:
        return array.ctypes.data % 16 == 0

    def load(self, file: str, scalar: str, kind: int) -> None:
        self.loaded.add((file, scalar, kind_of(file, scalar, kind)))

    def kernel(self, file: str, name: str, scalar: str, kind: int) -> Kernel:
        key = file, scalar, kind_of(file, scalar, kind)
        if key not in self.loaded:
            self.must_not_capture()
            self.loaded.add(key)
        kilobytes = min(self.shared_memory_bytes >> 10, 227)
        defines = (f"LARGE_SHARED_KB={kilobytes}",) if kilobytes < 227 and file == "fronts/large_fronts.cu" else ()
        return Kernel(emulated.compile(*key, defines), name, arguments(file)[name])

    def prepare(self, files: Iterable[str], scalar: str, kind: int) -> None:
        self.prepared.update((file, scalar, kind_of(file, scalar, kind)) for file in files)

    def compiled(self, files: Iterable[str], scalar: str, kind: int) -> bool:
        return self.cached

    def own_stream(self) -> Stream:
        return Stream(self)

    def caller_stream(self) -> Stream:
        return Stream(self) if in_background() or not self._thread.captured else self._thread.captured

    def synchronize(self) -> None:
        assert not (self._thread.recording or in_background()), "this would invalidate captures"
        self.count("synchronize")
        wait_interruptibly(self.wait_until_idle)

    def ready_to_capture(self) -> None:
        self.must_not_capture()

    @contextmanager
    def captured(self) -> Iterator[Stream]:
        yield self._thread.captured

    @contextmanager
    def capture(self) -> Iterator[CapturedGraph]:
        """The caller captures his stream: nothing runs, and nothing may be allocated or waited for."""
        graph, thread = CapturedGraph(self), self._thread
        thread.captured, thread.recording = graph.stream, True
        try:
            yield graph
        finally:
            thread.captured, thread.recording = None, False
        graph.close()

    def build_graph(self, commands: Callable[[GraphStream], None]) -> EmulatedGraph:
        building = Recording()
        self.must_not_capture()
        stream = GraphStream(building, self)
        commands(stream)
        assert joined(building, stream.record()), "another stream was not joined"
        return EmulatedGraph(building)


# ---- several devices


class Current(threading.local):
    def __init__(self) -> None:
        self.stack: list[EmulatedDevice] = []


class EmulatedHost:
    """Parameters: multiprocessors of each device, memory of each, and whether they reach each other.

    Attributes
    ----------
    broken : set of int
        Devices to and from which no copy succeeds.
    gone : set of int
        Devices that cannot be used any more.
    """

    def __init__(self, multiprocessors: Sequence[int], memory_bytes: int | Sequence[int] = 1 << 30, peers: bool = True):
        sizes = [memory_bytes] * len(multiprocessors) if isinstance(memory_bytes, int) else memory_bytes
        self.devices = [
            EmulatedDevice(size, multiprocessors=count, index=k, host=self)
            for k, (size, count) in enumerate(zip(sizes, multiprocessors, strict=True))
        ]
        self.peers, self.broken, self.gone = peers, set(), set()
        self._connected: set[tuple[int, int]] = set()
        self._current = Current()

    def open_device(self, which: Any = None) -> EmulatedDevice:
        index = 0 if which is None else which
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"device must be a number, a cupy.cuda.Device or None, not {which!r}")
        if not 0 <= index < len(self.devices) or index in self.gone:
            raise EngineUnavailableError(f"device={index} does not exist: {len(self.devices)} CUDA devices are visible")
        return self.devices[index]

    def install(self, monkeypatch: Any) -> EmulatedHost:
        """Be what `gpusplu.cuda.devices` finds."""
        monkeypatch.setattr(devices, "open_device", self.open_device)
        monkeypatch.setattr(devices, "count_devices", lambda: len(self.devices))
        return self

    # ---- what devices ask

    def enter(self, device: EmulatedDevice) -> None:
        self._current.stack.append(device)

    def leave(self) -> None:
        self._current.stack.pop()

    def is_current(self, device: EmulatedDevice) -> bool:
        return bool(self._current.stack) and self._current.stack[-1] is device

    def connect(self, device: EmulatedDevice, other: EmulatedDevice) -> bool:
        if self.peers:
            self._connected.add((device.index, other.index))
        return self.peers

    def _owner(self, address: int) -> EmulatedDevice | None:
        return next((device for device in self.devices if device.owns(address)), None)

    def check_reach(self, device: EmulatedDevice, addresses: Iterable[int], what: str) -> None:
        """Of kernels: memory of the device, of the host, or of one that it was connected to."""
        self.check_there([device])
        for owner in filter(None, map(self._owner, addresses)):
            connected = owner is device or (device.index, owner.index) in self._connected
            assert connected, f"{what} on device {device.index} was given memory of device {owner.index}"

    def check_copy(self, device: EmulatedDevice, to: int, source: int) -> None:
        ends = [owner for owner in map(self._owner, (to, source)) if owner is not None]
        self.check_there([device, *ends])
        if len(ends) == 2 and ends[0] is not ends[1]:
            reached = {tuple(end.index for end in ends), tuple(end.index for end in reversed(ends))}
            assert reached & self._connected, f"device {ends[1].index} does not reach device {ends[0].index}"
            if self.broken & {end.index for end in ends}:
                raise RuntimeError("cudaErrorPeerAccessUnsupported: peer access is not supported between these devices")

    def check_there(self, used: Iterable[EmulatedDevice]) -> None:
        for device in used:
            if device.index in self.gone:
                raise RuntimeError("cudaErrorDeviceUnavailable: CUDA-capable device(s) is/are busy or unavailable")


# ---- memory


def addresses_in(record: np.ndarray) -> list[int]:
    """What may be addresses in a kernel's argument: all numbers of 64 bits without a sign."""
    if record.dtype.names:
        return [address for name in record.dtype.names for address in addresses_in(record[name])]
    return [int(number) for number in record.reshape(-1)] if record.dtype == np.uint64 else []


def memory_at(pointer: int, nbytes: int) -> np.ndarray:
    """The bytes at an address."""
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(pointer), np.uint8) if nbytes else np.empty(0, np.uint8)
