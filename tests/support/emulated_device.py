"""A device of `gpusplu.cuda.devices` whose memory is NumPy's and whose kernels run in the emulator.

Memory starts as NaN and is checked for writes past its end when a stream is synchronized. What runs is counted, so that
tests can say what a step may cost.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gpusplu.cuda.layout import arguments
from gpusplu.cuda.nvrtc import kind_of
from gpusplu.cuda.process import use_cuda
from gpusplu.cuda.stream import Buffer, Graph
from gpusplu.errors import DeviceMemoryError

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

    def check(self) -> None:
        guard = self.bytes[self.begin + self.nbytes :]
        assert (guard == 0xFF).all(), f"a kernel wrote past the end of a buffer of {self.nbytes} bytes"

    def __del__(self) -> None:
        self.device.use(-self.nbytes)


@dataclass
class Command:
    """A node of a graph: what it does, on which of the two streams, and what has to be done before."""

    run: Callable[[], None]
    side: bool
    after: list[Command]
    done: bool = False


class Stream:
    def __init__(self, device: EmulatedDevice, recorded: list[Command] | None = None, side: bool = False):
        self.device, self.recorded, self.is_side = device, recorded, side
        self.last: list[Command] = []  # what the next command has to wait for
        self.side = Stream(device, recorded, True) if recorded is not None and not side else None

    def _do(self, command: Callable[[], None]) -> None:
        if self.recorded is None:
            command()
        else:
            self.recorded.append(Command(command, self.is_side, self.last))
            self.last = self.recorded[-1:]

    @property
    def captured(self) -> bool:
        return self is self.device._thread.captured

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self.device.count("copy")
        self._do(lambda: memory_at(to, nbytes).__setitem__(slice(None), memory_at(source, nbytes)))

    def clear(self, to: int, nbytes: int) -> None:
        self.device.count("clear")
        self._do(lambda: memory_at(to, nbytes).fill(0))

    def launch(
        self, kernel: Kernel, grid: int, block: int, shared_bytes: int, args: np.ndarray, dependent: bool = False
    ) -> None:
        assert shared_bytes <= self.device.shared_memory_bytes, (kernel.name, shared_bytes)
        assert grid > 0
        self.device.count(kernel.name)
        if dependent:
            self.device.count("dependent")
        record = np.array(args, dtype=kernel.arguments)
        seed = self.device.seed
        self._do(lambda: kernel.library.launch(kernel.name, grid, block, shared_bytes, record, seed))

    def replay(self, graph: Graph) -> None:
        assert self.recorded is None, "a graph cannot be recorded into another"
        self.device.count("replay")
        run_in_any_order(graph._graph, self.device.side_first)

    def fork(self) -> Stream:
        if self.side is None:
            return self
        self.side.wait(self.record())
        return self.side

    def join(self, side: Stream) -> None:
        self.wait(side.record())

    def record(self) -> list[Command]:
        return self.last

    def wait(self, event: list[Command]) -> None:
        self.last = self.last + event

    def synchronize(self) -> None:
        assert self.recorded is None, "the host cannot wait for what is only recorded"
        self.device.count("synchronize")
        self.device.check()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    __hash__ = None


def run_in_any_order(commands: list[Command], side_first: bool) -> None:
    """The order of each stream, and otherwise one of the two runs ahead as far as what it waits for allows."""
    waiting = [deque(c for c in commands if c.side == side) for side in (side_first, not side_first)]
    for command in commands:
        command.done = False
    while any(waiting):
        ahead = next(q for q in waiting if q and all(before.done for before in q[0].after))
        command = ahead.popleft()
        command.run()
        command.done = True


def joined(commands: list[Command], end: list[Command]) -> bool:
    """Whether whoever waits for `end` waits for all of them."""
    found, ahead = {id(c) for c in end}, list(end)
    while ahead:
        for command in ahead.pop().after:
            if id(command) not in found:
                found.add(id(command))
                ahead.append(command)
    return len(found) == len(commands)


class CapturedGraph:
    """A graph of the caller's: what is asked of the device while he captures his stream, and kernels of his own."""

    def __init__(self, device: EmulatedDevice):
        self._device, self._commands = device, []
        self.stream = Stream(device, self._commands)

    def call(self, kernel: Callable[[], object]) -> None:
        """What a kernel of the caller's does."""
        self.stream._do(kernel)

    def close(self) -> None:
        assert joined(self._commands, self.stream.last), "the second stream was not joined"

    def launch(self) -> None:
        """Replay it; nobody waits."""
        run_in_any_order(self._commands, self._device.side_first)


class EmulatedDevice:
    """Looks like an H200 with `memory_bytes` of memory.

    A graph's second stream runs ahead of the first one with `side_first`, else behind it.
    """

    def __init__(self, memory_bytes: int = 1 << 30, seed: int = 0, multiprocessors: int = 4):
        self.index, self.name, self.arch = 0, "emulated", 90
        self.array_class = fake_cupy.ndarray
        self.multiprocessors, self.shared_memory_bytes = multiprocessors, 232448
        self.double_ratio = 2
        self.memory_bytes, self.seed, self.used = memory_bytes, seed, 0
        self.most_used, self.host_bytes, self.side_first = 0, 0, False
        self.cached = True  # kernels are
        self.loaded: set[tuple[str, str, int]] = set()
        self.prepared: set[tuple[str, str, int]] = set()
        self.counts: dict[str, int] = {}
        self._memories: weakref.WeakSet[Memory] = weakref.WeakSet()
        self._lock = threading.RLock()  # of what threads change; memory may be given back while one of them has it
        self._thread = Thread()

    def __enter__(self) -> EmulatedDevice:
        use_cuda()
        return self

    def __exit__(self, *error: object) -> None:
        pass

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
        assert not self._thread.recording, "nothing may be allocated while a stream is recorded"
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
        assert key in self.loaded or not self._thread.recording, f"{file} is loaded while a stream is recorded"
        return Kernel(emulated.compile(*key), name, arguments(file)[name])

    def prepare(self, files: Iterable[str], scalar: str, kind: int) -> None:
        self.prepared.update((file, scalar, kind_of(file, scalar, kind)) for file in files)

    def compiled(self, files: Iterable[str], scalar: str, kind: int) -> bool:
        return self.cached

    def own_stream(self) -> Stream:
        return Stream(self)

    def caller_stream(self) -> Stream:
        return self._thread.captured or Stream(self)

    def synchronize(self) -> None:
        assert not self._thread.recording, "the host cannot wait while a stream is captured"
        self.count("synchronize")

    def ready_to_capture(self) -> None:
        assert not self._thread.recording, "no stream may be made while another one is captured"

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

    def record(self, commands: Callable[[Stream], None]) -> Graph:
        assert not self._thread.recording, "no graph is recorded while another one is captured"
        recorded: list[Command] = []
        stream = Stream(self, recorded)
        self._thread.recording = True
        try:
            commands(stream)
        finally:
            self._thread.recording = False
        assert joined(recorded, stream.last), "the second stream was not joined"
        return Graph(recorded)


def memory_at(pointer: int, nbytes: int) -> np.ndarray:
    """The bytes at an address."""
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(pointer), np.uint8) if nbytes else np.empty(0, np.uint8)
