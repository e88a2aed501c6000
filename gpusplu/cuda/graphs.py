"""CUDA graphs, built node by node through the driver.

Stream capture would need less code, but while any stream of a context is captured, no thread of the process may
synchronize the device, and an attempt to do so invalidates the capture. A library cannot impose that on its callers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np

from .background import relaxed_capture_mode
from .driver import failure, is_child, library

UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED: the address determines whether memory is the host's or a device's
BYTES = 1  # element size of a memset
Nodes = tuple[Any, ...]


class KernelNodeParams(ctypes.Structure):
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


class CopyOperand(ctypes.Structure):
    """The members of CUDA_MEMCPY3D that describe the source, or the destination."""

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


class CopyNodeParams(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("source", CopyOperand),
        ("to", CopyOperand),
        ("width_bytes", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    )


class MemsetNodeParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("to", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("element_bytes", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class EdgeData(ctypes.Structure):
    """CUgraphEdgeData."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


#: The edge that stream capture makes of a programmatic dependent launch:
#: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
PROGRAMMATIC = EdgeData(from_port=1, type=1)

_pointer, _size, _uint = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
_node = (_pointer, _pointer, _pointer, _size, _pointer)  # new node, graph, dependencies and their number, parameters
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "cuCtxPopCurrent_v2": (_pointer,),
    "cuCtxPushCurrent_v2": (_pointer,),
    # Only in drivers from CUDA 12.3 on; needed for programmatic edges.
    "cuGraphAddDependencies_v2": (_pointer, _pointer, _pointer, _pointer, _size),
    "cuGraphAddKernelNode_v2": _node,
    "cuGraphAddMemcpyNode": (*_node, _pointer),
    "cuGraphAddMemsetNode": (*_node, _pointer),
    "cuGraphCreate": (_pointer, _uint),
    "cuGraphDestroy": (_pointer,),
    "cuGraphExecDestroy": (_pointer,),
}


def declare_functions(driver: Any) -> Any:
    """Set the argument types of the graph functions of a driver library, and return the library."""
    for name, types in ARGUMENTS.items():
        function = getattr(driver, name, None)
        if function is not None:
            function.argtypes = types
    return driver


@cache
def graph_driver() -> Any:
    """The driver library with the argument types of its graph functions set. Requires a driver."""
    return declare_functions(library())


@contextmanager
def current_context(driver: Any, context: int) -> Iterator[None]:
    """Make a CUDA context current in this thread; the previous one is restored."""
    popped = _pointer()
    if error := driver.cuCtxPushCurrent_v2(context):
        raise failure(driver, error, "cuCtxPushCurrent_v2")
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(popped))


class GraphBuilder:
    """A CUgraph to which nodes are added.

    `after` is the tuple of nodes that a new node depends on, without duplicates. `device` supplies the context of copy
    and memset nodes; a kernel node runs in the context that its module was loaded in.

    Parameters
    ----------
    driver : CDLL
        As `graph_driver` returns it.
    """

    def __init__(self, driver: Any):
        self._driver, self._graph = driver, _pointer()
        if error := driver.cuGraphCreate(ctypes.byref(self._graph), 0):
            raise failure(driver, error, "cuGraphCreate")

    @property
    def handle(self) -> int:
        """The CUgraph."""
        return self._graph.value or 0

    def close(self) -> None:
        """Destroy the CUgraph. Executable graphs made from it remain valid."""
        self._driver.cuGraphDestroy(self._graph)

    def launch(
        self, device: Any, kernel: Any, shape: tuple[int, int, int], args: np.ndarray, after: Nodes, programmatic: bool
    ) -> int:
        """Add a kernel node; `shape`: grid, block and dynamic shared memory [bytes].

        `programmatic`: the dependency on the only node in `after`, a kernel, is a programmatic edge if the device
        supports it.
        """
        grid, block, shared_bytes = shape
        function = kernel.prepared(shared_bytes)
        _, pointers = arguments = kernel.pack(args)
        programmatic = programmatic and device.has_dependent_launch
        params = KernelNodeParams(function, (grid, 1, 1), (block, 1, 1), shared_bytes, ctypes.addressof(pointers))
        node = self._add("cuGraphAddKernelNode_v2", () if programmatic else after, params)
        del arguments  # kept alive until the driver had copied them
        if programmatic:
            (before,) = after
            ends = _pointer(before), _pointer(node)
            error = self._driver.cuGraphAddDependencies_v2(
                self._graph, *map(ctypes.byref, ends), ctypes.byref(PROGRAMMATIC), 1
            )
            if error:
                raise failure(self._driver, error, "cuGraphAddDependencies_v2")
        return node

    def copy(
        self, device: Any, to: tuple[int, int], source: tuple[int, int], shape: tuple[int, int], after: Nodes
    ) -> int:
        """Add a copy node; `to` and `source`: address and pitch; `shape`: bytes of a row, and number of rows."""
        width, height = shape
        ends = [
            CopyOperand(memory_type=UNIFIED, address=address, pitch=pitch, height=height)
            for address, pitch in (source, to)
        ]
        return self._add("cuGraphAddMemcpyNode", after, CopyNodeParams(*ends, width, height, 1), device.context)

    def clear(self, device: Any, to: int, nbytes: int, after: Nodes) -> int:
        """Add a node that sets device memory to zero."""
        params = MemsetNodeParams(to, 0, 0, BYTES, nbytes, 1)
        return self._add("cuGraphAddMemsetNode", after, params, device.context)

    def _add(self, function: str, after: Nodes, params: ctypes.Structure, *context: int) -> int:
        node, count = _pointer(), len(after)
        dependencies = (_pointer * count)(*after) if count else None
        error = getattr(self._driver, function)(
            ctypes.byref(node), self._graph, dependencies, count, ctypes.byref(params), *context
        )
        if error:
            raise failure(self._driver, error, function)
        assert node.value is not None
        return node.value


class Graph:
    """An executable graph. It is destroyed with this object; a launch in progress completes first.

    Parameters
    ----------
    driver : CDLL
    runtime : module
        CuPy's bindings of the CUDA runtime.
    builder : GraphBuilder
    """

    __slots__ = ("__weakref__", "_executable", "_runtime")

    def __init__(self, driver: Any, runtime: Any, builder: GraphBuilder):
        self._runtime, self._executable = runtime, runtime.graphInstantiate(builder.handle)
        # At interpreter shutdown the process releases everything, and the driver may be unusable already.
        finalize(self, destroy, driver, self._executable).atexit = False

    def upload(self, stream: int) -> None:
        """Transfer the graph to the device in stream order, so that the first launch need not."""
        self._runtime.graphUpload(self._executable, stream)

    def launch(self, stream: int) -> None:
        self._runtime.graphLaunch(self._executable, stream)


def destroy(driver: Any, executable: int) -> None:
    """Destroy an executable graph, possibly while another thread captures. Does nothing in a forked child."""
    if not is_child():
        with relaxed_capture_mode():
            driver.cuGraphExecDestroy(executable)


class GraphStream:
    """The interface of `Stream` (stream.py), but commands become nodes of a graph.

    It keeps the set of nodes that the next command depends on; an event is such a set.

    Parameters
    ----------
    builder : GraphBuilder
    device : Device
        The device that executes the commands.
    """

    __slots__ = ("_after_kernel", "_builder", "_device", "_is_side", "_last", "_side")

    captured = False  # not captured by the caller

    def __init__(self, builder: Any, device: Any, is_side: bool = False):
        self._builder, self._device, self._is_side = builder, device, is_side
        self._last: Nodes = ()
        self._after_kernel = False  # `_last` is one kernel, without events
        self._side: GraphStream | None = None

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy `nbytes` bytes."""
        self.copy_rows(to, 0, source, 0, nbytes, 1)

    def copy_rows(self, to: int, to_pitch: int, source: int, source_pitch: int, width: int, height: int) -> None:
        """Copy `height` rows of `width` bytes; pitches are the distances between rows [bytes]."""
        if width and height:
            ends = (to, to_pitch), (source, source_pitch)
            self._append(self._builder.copy(self._device, *ends, (width, height), self._last))

    def clear(self, to: int, nbytes: int) -> None:
        """Set `nbytes` bytes of device memory to zero."""
        if nbytes:
            self._append(self._builder.clear(self._device, to, nbytes, self._last))

    def launch(
        self, kernel: Any, grid: int, block: int, shared_bytes: int, args: np.ndarray, dependent: bool = False
    ) -> None:
        """Launch a kernel, as `Stream.launch` does."""
        shape, programmatic = (grid, block, shared_bytes), dependent and self._after_kernel
        self._append(self._builder.launch(self._device, kernel, shape, args, self._last, programmatic), True)

    def _append(self, node: Any, is_kernel: bool = False) -> None:
        self._last, self._after_kernel = (node,), is_kernel

    def fork(self) -> GraphStream:
        """A second stream that runs concurrently with this one until `join`. It has no second stream."""
        if self._is_side:
            return self
        if self._side is None:
            self._side = GraphStream(self._builder, self._device, True)
        self._side.wait(self.record())
        return self._side

    def join(self, side: GraphStream) -> None:
        """Later commands of this stream depend on both."""
        if side is not self:
            self.wait(side.record())

    def peer_stream(self, device: Any, stream: Any) -> GraphStream:
        """A stream of the same graph for commands of another device, which replaces its `stream`."""
        return GraphStream(self._builder, device)

    def record(self) -> Nodes:
        """An event that other streams of the graph can wait for."""
        return self._last

    def wait(self, event: Nodes) -> None:
        """Later commands of this stream depend on `event`."""
        self._last, self._after_kernel = tuple(dict.fromkeys(self._last + event)), False
