"""Devices: memory, kernels, streams and graphs, the part of CUDA that engines need, through CuPy.

Engines use CuPy's runtime only through `Device` and the objects that it returns (stream.py), so the tests can replace
them by an emulated device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from .._core import uninterrupted
from ..common.installed import install_hint
from ..errors import ON_HOST, DeviceMemoryError, EngineUnavailableError
from . import cache as compiled
from .background import in_background, no_collection
from .chunked_copies import HostCopies
from .driver import dependent_launch, use_cuda
from .graphs import Graph, GraphBuilder, GraphStream, current_context, graph_driver
from .layout import arguments
from .nvrtc import kind_of
from .stream import Buffer, Kernel, Stream
from .waiting import wait_for_stream, wait_interruptibly

OLDEST = 75  # compute capability
OUT_OF_MEMORY, NOT_FOUND = 2, 500  # CUresult
PEER_ACCESS_ALREADY_ENABLED = 704  # cudaError
SMALLEST = 256  # bytes of a buffer, so that a clamped load from an empty array stays inside


class Device(HostCopies):
    """One CUDA device.

    Attributes
    ----------
    index : int
    name : str
    arch : int
        Compute capability, 90 for 9.0.
    multiprocessors : int
    shared_memory_bytes : int
        Most that one block may use.
    double_ratio : int
        Speed of arithmetic in single precision relative to double.
    array_class : type
        Class of the arrays on it.
    context : int
        The CUcontext of its memory, modules and streams.
    has_dependent_launch : bool
        Whether device and driver support programmatic dependent launch, in graphs too.
    """

    def __init__(self, index: int):
        self._cupy = import_module("cupy")
        self._cuda = cuda = self._cupy.cuda
        self.index = index
        self._device = cuda.Device(index)
        self.arch = int(self._device.compute_capability)
        if self.arch < OLDEST:
            raise EngineUnavailableError(
                f"device {index} has compute capability {self.arch / 10:.1f} and GPU engines need {OLDEST / 10:.1f}; "
                f"pass {ON_HOST}"
            )
        self.name = cuda.runtime.getDeviceProperties(index)["name"].decode()
        self.multiprocessors = int(self._device.attributes["MultiProcessorCount"])
        self.shared_memory_bytes = int(self._device.attributes["MaxSharedMemoryPerBlockOptin"])
        self.double_ratio = int(self._device.attributes["SingleToDoublePrecisionPerfRatio"])
        with self._device:
            self._stream = cuda.Stream(non_blocking=True)
            self.context = int(cuda.driver.ctxGetCurrent())  # creating the stream made it current
        self.array_class = self._cupy.ndarray
        self._modules: dict[tuple[str, str, int], dict[str, Kernel]] = {}
        self._prepared: set[tuple[str, str, int]] = set()  # known to be in the cache
        self._places: dict[tuple[str, str, int], Path] = {}  # its path in the cache
        self._lock = Lock()
        self._sides: list[Any] = []  # streams to capture together with those of callers
        self._reached: dict[int, bool] = {}  # peer access to other devices, by number
        self._dependent = dependent_launch(self.arch)
        self.has_dependent_launch = self._dependent is not None

    def __enter__(self) -> Device:
        use_cuda()
        self._device.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._device.__exit__(*error)

    def free_bytes(self) -> int:
        """Memory that an allocation could get, including unused memory of CuPy's pool [bytes]."""
        with self._device:
            free, _ = self._cuda.runtime.memGetInfo()
            pool = self._cupy.get_default_memory_pool()
            unused = free + pool.free_bytes()
            limit = pool.get_limit()
        return int(min(unused, limit - pool.used_bytes()) if limit else unused)

    def empty(self, nbytes: int) -> Buffer:
        """Memory with arbitrary contents, from CuPy's allocator, in the order of the device's own stream.

        Raises
        ------
        DeviceMemoryError
        """
        size = max(int(nbytes), SMALLEST)
        try:
            with self._device, self._stream:
                memory = self._cuda.alloc(size)
        except self._cuda.memory.OutOfMemoryError:
            raise DeviceMemoryError(size, self.free_bytes()) from None
        return Buffer(memory, memory.ptr, int(nbytes))

    def zeros(self, nbytes: int) -> Buffer:
        """Memory set to zero on the device's own stream."""
        buffer = self.empty(nbytes)
        self.own_stream().clear(buffer.pointer, max(int(nbytes), SMALLEST))
        return buffer

    def upload(self, array: np.ndarray) -> Buffer:
        """A copy of `array`; done when this returns."""
        array = np.ascontiguousarray(array)
        buffer = self.empty(array.nbytes) if array.nbytes else self.zeros(0)
        stream = self.own_stream()
        self.send(stream, buffer.pointer, array)
        stream.synchronize()
        return buffer

    def pinned(self, dtype: np.dtype, count: int) -> np.ndarray:
        """Page-locked host memory, which copies use directly."""
        dtype = np.dtype(dtype)
        with self._device:
            memory = self._cuda.alloc_pinned_memory(max(dtype.itemsize * count, 1))
        return np.frombuffer(memory, dtype, count)

    def host(self, nbytes: int) -> Buffer:
        """Host memory of exactly that size, pageable if this much page-locked memory is not available."""
        try:
            with self._device:
                memory = self._cuda.PinnedMemory(nbytes)
            return Buffer(memory, memory.ptr, nbytes)
        except self._cuda.runtime.CUDARuntimeError:
            pageable = np.empty(nbytes, np.uint8)
            return Buffer(pageable, pageable.ctypes.data, nbytes)

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """An uninitialized CuPy array for the caller, Fortran-contiguous; this device must be the current one."""
        return self._cupy.empty(shape, dtype, order="F")

    def pointer(self, array: Any) -> int:
        """Address of a CuPy array's first element."""
        return int(array.data.ptr)

    def can_read(self, array: Any) -> bool:
        """Whether kernels can read a CuPy array in place: on this device, aligned for loads of any scalar."""
        return array.device.id == self.index and self.pointer(array) % 16 == 0

    def load(self, file: str, scalar: str, kind: int) -> dict[str, Kernel]:
        """The kernels of a file by name; compiled and loaded once per process and device."""
        (key,) = keys([file], scalar, kind)
        with self._lock:
            if key not in self._modules:
                code = compiled.kernels(*key, self.arch)
                try:
                    self._modules[key] = dict(self._kernels(code, arguments(file)))
                except self._cuda.driver.CUDADriverError as error:
                    if error.status != OUT_OF_MEMORY:
                        raise
                    raise DeviceMemoryError(len(code), self.free_bytes()) from None
        return self._modules[key]

    def _kernels(self, code: bytes, arguments: Mapping[str, np.dtype]) -> Iterator[tuple[str, Kernel]]:
        """The kernels that exist: some are for LU only."""
        with self._device:
            module = self._cuda.function.Module()
            module.load(code)
            for name, dtype in arguments.items():
                try:
                    yield name, Kernel(module.get_function(name), name, dtype, self._cuda.driver)
                except self._cuda.driver.CUDADriverError as error:
                    if error.status != NOT_FOUND:
                        raise

    def kernel(self, file: str, name: str, scalar: str, kind: int) -> Kernel:
        """One kernel of `load`."""
        return self.load(file, scalar, kind)[name]

    def prepare(self, files: Iterable[str], scalar: str, kind: int) -> None:
        """Compile kernels that are neither loaded nor in the cache, several files at a time."""
        missing = [key for key in keys(files, scalar, kind) if not self._has(key)]
        if missing:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda key: compiled.kernels(key[0], key[1], key[2], self.arch), missing))
            self._prepared.update(missing)

    def compiled(self, files: Iterable[str], scalar: str, kind: int) -> bool:
        """Whether `prepare` would find all of these in the cache."""
        missing = [key for key in keys(files, scalar, kind) if not self._has(key)]
        found = all(self._place(key).exists() for key in missing)
        self._prepared.update(missing if found else ())
        return found

    def _place(self, key: tuple[str, str, int]) -> Path:
        """Path in the cache; the key requires reading and hashing the sources: some milliseconds for all engines."""
        if key not in self._places:
            self._places[key] = compiled.place(*key, self.arch)
        return self._places[key]

    def _has(self, key: tuple[str, str, int]) -> bool:
        return key in self._modules or key in self._prepared

    def own_stream(self) -> Stream:
        """The stream of allocations and uploads."""
        return Stream(self._stream, self._cuda)

    def caller_stream(self) -> Stream:
        """CuPy's current stream, if this device is the current one; for background work (background.py) a stream that
        does not synchronize with the default stream."""
        return Stream(self._background_stream if in_background() else self._cuda.get_current_stream(), self._cuda)

    @cached_property
    def _background_stream(self) -> Any:
        with self._device:
            return self._cuda.Stream(non_blocking=True)

    def new_stream(self) -> Stream:
        """A stream of its own, concurrent with those of callers; not created while a stream is captured."""
        with self._device:
            return Stream(self._cuda.Stream(non_blocking=True), self._cuda, None, self._dependent)

    def reaches(self, other: Device) -> bool:
        """Whether copies and kernels of this device can access another one's memory directly; enables the access."""
        if other.index not in self._reached:  # batches call this often, and driver calls are slow
            self._reached[other.index] = self is other or self._connect(other)
        return self._reached[other.index]

    def _connect(self, other: Device) -> bool:
        """Ask for access to the memory of another device."""
        runtime = self._cuda.runtime
        if not runtime.deviceCanAccessPeer(self.index, other.index):
            return False
        with self._device:
            try:
                runtime.deviceEnablePeerAccess(other.index)
            except runtime.CUDARuntimeError as error:
                if error.status != PEER_ACCESS_ALREADY_ENABLED:
                    return False
        return True

    def synchronize(self) -> None:
        """Wait for all work on the device, on any stream. Signals can interrupt this."""
        wait_interruptibly(self._device.synchronize)

    def ready_to_capture(self) -> None:
        """Create what `captured` needs: nothing can be created while a stream is captured."""
        with self._lock, self._device:
            if not any(map(is_idle, self._sides)):
                self._sides.append(self._cuda.Stream(non_blocking=True))

    @contextmanager
    def captured(self) -> Iterator[Stream]:
        """The caller's stream while the caller captures it, with everything that streams of gpusplu's own graphs have.

        The second stream is reserved for the caller until the capture ends, so each capture gets a different one, or
        none if all are in use.
        """
        with self._lock:
            idle = next(filter(is_idle, self._sides), None)
            if idle is not None:
                self._sides.remove(idle)
        side = None if idle is None else Stream(idle, self._cuda)
        try:
            with no_collection():
                yield Stream(self._cuda.get_current_stream(), self._cuda, side, self._dependent)
        finally:
            if idle is not None:
                with self._lock:
                    self._sides.append(idle)

    def build_graph(self, commands: Callable[[GraphStream], None]) -> Graph:
        """The graph of the commands that `commands` adds to its stream. Nothing runs and no stream is captured.

        May be called from any thread.
        """
        driver, runtime = graph_driver(), self._cuda.runtime
        with self._device, current_context(driver, self.context):
            builder = GraphBuilder(driver)
            try:
                commands(GraphStream(builder, self))
                graph = Graph(driver, runtime, builder)
            finally:
                builder.close()
            graph.upload(self._stream.ptr)
            wait_for_stream(self._stream)
        return graph


def is_idle(stream: Any) -> bool:
    """Whether one of CuPy's streams is in no capture, not even in one that has failed."""
    try:
        return not stream.is_capturing()
    except RuntimeError:
        return False


def usable_bytes(device: Any, limit: int | None) -> int:
    """Memory of a device that may be used: the free memory, but no more than the caller allows [bytes]."""
    free = int(device.free_bytes())
    return free if limit is None else min(limit, free)


def keys(files: Iterable[str], scalar: str, kind: int) -> list[tuple[str, str, int]]:
    """The keys under which these files are compiled."""
    return [(file, scalar, kind_of(file, scalar, kind)) for file in files]


@cache
def device(index: int) -> Device:
    """The device `index`, one object per process.

    Raises
    ------
    EngineUnavailableError
        The device is too old.
    """
    return Device(index)


def count_devices() -> int:
    """How many CUDA devices are visible.

    Raises
    ------
    EngineUnavailableError
        No CuPy, no driver, or a process forked from one that uses CUDA.
    """
    try:
        cupy = uninterrupted(import_module, "cupy")
        use_cuda()
        return int(cupy.cuda.runtime.getDeviceCount())
    except ImportError as error:
        raise EngineUnavailableError(
            f"GPU engines need CuPy ({error}); {install_hint('cuda13', 'cuda12')}, or pass {ON_HOST}"
        ) from None
    except EngineUnavailableError:
        raise
    except Exception as error:  # CUDA's own exceptions exist only where CuPy does
        raise EngineUnavailableError(f"no CUDA device can be used: {error}; pass {ON_HOST}") from None


def open_device(which: Any = None) -> Device:
    """The device that ``device=`` names: a number, a cupy.cuda.Device, or None for CuPy's current one.

    Raises
    ------
    EngineUnavailableError
        No CuPy, no driver, no such device, one that is too old, or a process forked from one that uses CUDA.
    TypeError
        `which` is none of these.
    """
    count, cupy = count_devices(), import_module("cupy")
    if which is None:
        which = cupy.cuda.runtime.getDevice() if count else 0
    elif isinstance(which, cupy.cuda.Device):
        which = which.id
    elif isinstance(which, bool) or not isinstance(which, (int, np.integer)):
        raise TypeError(f"device must be a number, a cupy.cuda.Device or None, not {which!r}")
    if not 0 <= which < count:
        raise EngineUnavailableError(f"device={which} does not exist: {count} CUDA devices are visible")
    return device(int(which))
