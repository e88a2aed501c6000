"""Graphs of commands, built node by node.

No stream is captured for them. While a stream is, other threads of the process cannot wait for the device or use the
default stream, and what they try makes the capture fail: a library cannot ask that of the program that it is in.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from .apart import relaxed
from .driver import failure, library

UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED: whose memory it is, the address says
BYTES = 1  # in what memory is set
Nodes = tuple[Any, ...]


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class Operand(ctypes.Structure):
    """Of a copy; a half of the beginning of CUDA_MEMCPY3D."""

    _fields_ = (
        ("x_bytes", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("z", ctypes.c_size_t),
        ("lod", ctypes.c_size_t),
        ("memory_type", ctypes.c_int),
        ("host", ctypes.c_void_p),
        ("address", ctypes.c_uint64),
        ("array", ctypes.c_void_p),
        ("reserved", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class CopyNode(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("source", Operand),
        ("to", Operand),
        ("width_bytes", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    )


class ClearNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("to", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("element_bytes", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class Edge(ctypes.Structure):
    """CUgraphEdgeData."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


#: From a kernel whose blocks all have allowed it, or have ended, to one that waits itself for what it needs: what a
#: programmatic dependent launch becomes where it is captured.
PROGRAMMATIC = Edge(from_port=1, type=1)  # CU_GRAPH_KERNEL_NODE_PORT_, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC

_pointer, _size, _uint = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
_node = (_pointer, _pointer, _pointer, _size, _pointer)  # node, graph, those before and how many, parameters
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "cuCtxPopCurrent_v2": (_pointer,),
    "cuCtxPushCurrent_v2": (_pointer,),
    "cuGraphAddKernelNode_v2": _node,
    "cuGraphAddMemcpyNode": (*_node, _pointer),
    "cuGraphAddMemsetNode": (*_node, _pointer),
    "cuGraphCreate": (_pointer, _uint),
    "cuGraphDestroy": (_pointer,),
    "cuGraphExecDestroy": (_pointer,),
}
#: From CUDA 12.3 on, as programmatic dependent launches in graphs.
ARGUMENTS_OF_EDGES: dict[str, tuple[Any, ...]] = {
    "cuGraphAddDependencies_v2": (_pointer, _pointer, _pointer, _pointer, _size)
}


def declared(driver: Any) -> Any:
    """A driver's library, whose functions for graphs know from now on what they take."""
    for name, types in (ARGUMENTS | ARGUMENTS_OF_EDGES).items():
        function = getattr(driver, name, None)
        if function is not None:
            function.argtypes = types
    return driver


@cache
def functions() -> Any:
    """The driver's library for graphs; where there is a device."""
    return declared(library())


@contextmanager
def current(driver: Any, context: int) -> Iterator[None]:
    """Inside, a context of the driver's is this thread's current one, whichever was."""
    popped = _pointer()
    if error := driver.cuCtxPushCurrent_v2(context):
        raise failure(driver, error, "cuCtxPushCurrent_v2")
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(popped))


class Building:
    """A graph of the driver's while nodes are added to it.

    `after`: nodes that come before the one that is added, each of them once. Devices that are named have the context
    where a node runs; contexts of kernels are those that they were loaded in.
    """

    def __init__(self, driver: Any):
        self._driver, self._graph = driver, _pointer()
        if error := driver.cuGraphCreate(ctypes.byref(self._graph), 0):
            raise failure(driver, error, "cuGraphCreate")

    @property
    def handle(self) -> int:
        """CUgraph."""
        return self._graph.value or 0

    def close(self) -> None:
        """Nothing is added any more; what was made of it remains."""
        self._driver.cuGraphDestroy(self._graph)

    def launch(
        self, device: Any, kernel: Any, shape: tuple[int, int, int], args: np.ndarray, after: Nodes, early: bool
    ) -> int:
        """A kernel; `early`: it may begin where the only node before, a kernel, allows that."""
        grid, block, shared_bytes = shape
        function = kernel.ready(shared_bytes)
        _, pointers = arguments = kernel.packed(args)
        early = early and device.launches_early
        node = KernelNode(function, (grid, 1, 1), (block, 1, 1), shared_bytes, ctypes.addressof(pointers))
        made = self._add("cuGraphAddKernelNode_v2", () if early else after, node)
        del arguments  # the driver has read them
        if early:
            (before,) = after
            ends = _pointer(before), _pointer(made)
            error = self._driver.cuGraphAddDependencies_v2(
                self._graph, *map(ctypes.byref, ends), ctypes.byref(PROGRAMMATIC), 1
            )
            if error:
                raise failure(self._driver, error, "cuGraphAddDependencies_v2")
        return made

    def copy(
        self,
        device: Any,
        to: tuple[int, int],
        source: tuple[int, int],
        shape: tuple[int, int],
        after: Nodes,
    ) -> int:
        """So many bytes, so many times; between addresses, with the bytes from one time to the next."""
        width, height = shape
        ends = [Operand(memory_type=UNIFIED, address=a, pitch=pitch, height=height) for a, pitch in (source, to)]
        return self._add("cuGraphAddMemcpyNode", after, CopyNode(*ends, width, height, 1), device.context)

    def clear(self, device: Any, to: int, nbytes: int, after: Nodes) -> int:
        """Memory of a device, to zero."""
        node = ClearNode(to, 0, 0, BYTES, nbytes, 1)
        return self._add("cuGraphAddMemsetNode", after, node, device.context)

    def _add(self, function: str, after: Nodes, node: ctypes.Structure, *context: int) -> int:
        made, count = _pointer(), len(after)
        before = (_pointer * count)(*after) if count else None
        error = getattr(self._driver, function)(
            ctypes.byref(made), self._graph, before, count, ctypes.byref(node), *context
        )
        if error:
            raise failure(self._driver, error, function)
        assert made.value is not None
        return made.value


class Graph:
    """What can be launched again and again; destroyed with the object, when it has come to its end.

    Parameters
    ----------
    driver, runtime
        The driver's library, and CuPy's functions of CUDA's runtime.
    building : Building
        Is read here.
    """

    __slots__ = ("__weakref__", "_launch", "_made")

    def __init__(self, driver: Any, runtime: Any, building: Building):
        self._made = runtime.graphInstantiate(building.handle)
        self._launch = runtime.graphLaunch
        finalize(self, destroy, driver, self._made, os.getpid()).atexit = False  # a process that ends needs nothing

    def upload(self, runtime: Any, stream: int) -> None:
        """Have what launches need on the device, when what `stream` has been given is done."""
        runtime.graphUpload(self._made, stream)

    def launch(self, stream: int) -> None:
        self._launch(self._made, stream)


def destroy(driver: Any, graph: int, process: int) -> None:
    """Wherever garbage is found: another thread may capture a stream, and children have nothing of their parent's."""
    if os.getpid() == process:
        with relaxed():
            driver.cuGraphExecDestroy(graph)


class GraphStream:
    """What a `Stream` is (stream.py) while a graph is built: commands in an order, as nodes.

    Parameters
    ----------
    building : Building
    device : Device
        That the commands are for.
    """

    __slots__ = ("_after_kernel", "_building", "_device", "_is_side", "_last", "_side")

    captured = False  # by the caller

    def __init__(self, building: Any, device: Any, is_side: bool = False):
        self._building, self._device, self._is_side = building, device, is_side
        self._last: Nodes = ()  # what the next command has to wait for
        self._after_kernel = False  # and that is a kernel and nothing else
        self._side: GraphStream | None = None

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy `nbytes` bytes."""
        if nbytes:
            self._put(self._building.copy(self._device, (to, 0), (source, 0), (nbytes, 1), self._last))

    def copy_rows(self, to: int, to_pitch: int, source: int, source_pitch: int, width: int, height: int) -> None:
        """Copy `height` rows of `width` bytes, which are as many bytes apart as the pitches say."""
        if width and height:
            ends = (to, to_pitch), (source, source_pitch)
            self._put(self._building.copy(self._device, *ends, (width, height), self._last))

    def clear(self, to: int, nbytes: int) -> None:
        """Set `nbytes` bytes of device memory to zero."""
        if nbytes:
            self._put(self._building.clear(self._device, to, nbytes, self._last))

    def launch(
        self, kernel: Any, grid: int, block: int, shared_bytes: int, args: np.ndarray, dependent: bool = False
    ) -> None:
        """Run a kernel, as `Stream.launch` does."""
        shape, early = (grid, block, shared_bytes), dependent and self._after_kernel
        self._put(self._building.launch(self._device, kernel, shape, args, self._last, early), True)

    def _put(self, node: Any, is_kernel: bool = False) -> None:
        self._last, self._after_kernel = (node,), is_kernel

    def fork(self) -> GraphStream:
        """Another one, whose commands run beside this one's until `join`; it has none itself."""
        if self._is_side:
            return self
        if self._side is None:
            self._side = GraphStream(self._building, self._device, True)
        self._side.wait(self.record())
        return self._side

    def join(self, side: GraphStream) -> None:
        """What comes after waits for both."""
        if side is not self:
            self.wait(side.record())

    def beside(self, device: Any, stream: Any) -> GraphStream:
        """One for commands of another device, in place of its `stream`, where those would run at once."""
        return GraphStream(self._building, device)

    def record(self) -> Nodes:
        """An event that others of the same graph can wait for."""
        return self._last

    def wait(self, event: Nodes) -> None:
        """What comes after waits for `event`."""
        self._last, self._after_kernel = tuple(dict.fromkeys(self._last + event)), False
