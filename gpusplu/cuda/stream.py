"""Memory, kernels and streams of a device. Commands run, or are captured if the caller captures the stream."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .driver import Launch
from .graphs import Graph
from .waiting import wait_for_stream

MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
COPY_BYTES = 1 << 28  # a copy of this size to or from pageable memory takes less than 0.1 s


class Buffer:
    """Device memory; freed with the object.

    Attributes
    ----------
    pointer : int
    nbytes : int
    """

    __slots__ = ("_memory", "nbytes", "pointer")

    def __init__(self, memory: Any, pointer: int, nbytes: int):
        self._memory = memory
        self.pointer = pointer
        self.nbytes = nbytes


class Kernel:
    """One kernel of a loaded file.

    Parameters
    ----------
    function : cupy.cuda.function.Function
    name : str
    dtype : dtype
    driver : module
        CuPy's functions of the driver.

    Attributes
    ----------
    name : str
    arguments : dtype
        Of the struct that it takes.
    """

    __slots__ = ("_driver", "_function", "_limit", "arguments", "name")

    def __init__(self, function: Any, name: str, dtype: np.dtype, driver: Any):
        self._function, self._driver, self._limit = function, driver, 48 * 1024
        self.name = name
        self.arguments = dtype

    def prepared(self, shared_bytes: int) -> int:
        """The CUfunction, with this much dynamic shared memory allowed."""
        address: int = self._function.ptr
        if shared_bytes > self._limit:
            self._driver.funcSetAttribute(address, MAX_DYNAMIC_SHARED_BYTES, shared_bytes)
            self._limit = shared_bytes
        return address

    def pack(self, args: np.ndarray) -> tuple[np.ndarray, Any]:
        """The record of `arguments`, and the array with its address that CUDA expects; keep both until the launch."""
        record = np.ascontiguousarray(args, dtype=self.arguments)
        return record, (ctypes.c_void_p * 1)(record.ctypes.data)


class Stream:
    """Commands in the order of one stream. Addresses may be on either side; host memory should be pinned."""

    __slots__ = ("_after_kernel", "_dependent", "_driver", "_events", "_runtime", "_side", "_stream")

    def __init__(self, stream: Any, cuda: Any, side: Stream | None = None, dependent: Launch | None = None):
        self._stream, self._side, self._dependent = stream, side, dependent
        self._after_kernel = False  # the next command has to wait for one kernel and nothing else
        self._events: list[Any] = []  # kept while the stream is captured
        self._runtime, self._driver = cuda.runtime, cuda.driver

    @property
    def captured(self) -> bool:
        """Whether commands are added to a graph of the caller's instead of running."""
        return bool(self._stream.is_capturing())

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy `nbytes` bytes."""
        if nbytes:
            self._after_kernel = False
            self._runtime.memcpyAsync(to, source, nbytes, self._runtime.memcpyDefault, self._stream.ptr)

    def copy_rows(self, to: int, to_pitch: int, source: int, source_pitch: int, width: int, height: int) -> None:
        """Copy `height` rows of `width` bytes; pitches are the distances between rows [bytes]."""
        if width and height:
            self._after_kernel = False
            kind = self._runtime.memcpyDefault
            self._runtime.memcpy2DAsync(to, to_pitch, source, source_pitch, width, height, kind, self._stream.ptr)

    def read(self, to: np.ndarray, source: int, nbytes: int) -> None:
        """Wait for all earlier commands, then copy to an array, which may be pageable: CUDA copies to such memory
        before it returns, and signals would not be handled while it waits for the earlier commands."""
        self.synchronize()
        for begin in range(0, nbytes, COPY_BYTES):
            self.copy(to.ctypes.data + begin, source + begin, min(COPY_BYTES, nbytes - begin))
        self.synchronize()

    def clear(self, to: int, nbytes: int) -> None:
        """Set `nbytes` bytes of device memory to zero."""
        if nbytes:
            self._after_kernel = False
            self._runtime.memsetAsync(to, 0, nbytes, self._stream.ptr)

    def launch(
        self, kernel: Kernel, grid: int, block: int, shared_bytes: int, args: np.ndarray, dependent: bool = False
    ) -> None:
        """Run a kernel; `args` is a record of `kernel.arguments`, taken by value.

        `dependent`: a programmatic dependent launch. It may begin when all blocks of the previous kernel have begun and
        allow it, if there is one and the device supports that; the kernel itself waits for its inputs.
        """
        function = kernel.prepared(shared_bytes)
        record, pointers = kernel.pack(args)
        pointer = ctypes.addressof(pointers)
        dependent, self._after_kernel = dependent and self._after_kernel, True
        if dependent and self._dependent:
            self._dependent(function, (grid, block, shared_bytes), self._stream.ptr, pointer)
        else:
            self._driver.launchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes, self._stream.ptr, pointer, 0)
        del record  # kept alive until the driver had copied it

    def replay(self, graph: Graph) -> None:
        """Launch a graph."""
        graph.launch(self._stream.ptr)

    def fork(self) -> Stream:
        """A second stream that runs concurrently until `join`, if the caller captures; else this one."""
        if self._side is None:
            return self
        self._side.wait(self.record())
        return self._side

    def join(self, side: Stream) -> None:
        """Later commands wait for both."""
        if side is not self:
            self.wait(side.record())

    def peer_stream(self, device: Any, stream: Stream) -> Stream:
        """The stream for commands of another device that belong to this stream's: its own `stream`."""
        return stream

    def record(self) -> Any:
        """An event that other streams can wait for."""
        self._events.append(self._stream.record())
        return self._events[-1]

    def wait(self, event: Any) -> None:
        """Later commands wait for `event`, on the device."""
        self._after_kernel = False
        self._stream.wait_event(event)

    def synchronize(self) -> None:
        """Wait on the host for all earlier commands. Signals can interrupt this."""
        wait_for_stream(self._stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and bool(self._stream.ptr == other._stream.ptr)

    __hash__ = None  # type: ignore[assignment]
