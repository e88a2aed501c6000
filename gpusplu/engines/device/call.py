"""Calls of one factor on one device: what a call does, the commands that do it, and their graphs.

A `Call` says which steps a call consists of; `CommandGraphs.add_commands` is the only place where steps become
commands:

    arrays of the host to the device -> values -> factorization -> solve -> steps of refinement -> status and solution

The same function serves three uses. A call that waits and one that does not (check="later") replay a graph, which is
made on first use: `add_commands` adds nodes to it instead of launching anything (cuda/graphs.py). A call that the
caller captures adds its commands to the caller's stream one by one. What may run concurrently is on a side stream
between `fork` and `join`.

What commands need is uploaded, loaded and allocated when they are added for the first time, which therefore must not
be while a stream is captured (`is_ready`). When a graph runs, the host neither decides nor allocates anything.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...cuda.graphs import Graph
from ...cuda.stream import Buffer, Stream
from .buffers import NO_CALLS, STAGED, AccumulatedBuffer, Buffers, Solve, Status
from .program import Program

# Graphs over the caller's own arrays: made for arrays that occur this many times, up to a maximum number.
SIGHTINGS, DIRECT_GRAPHS = 3, 8
REMEMBERED = 64  # array combinations counted before all counts are dropped


class Call(NamedTuple):
    """The steps of a call.

    Attributes
    ----------
    values : str
        "new": factor the caller's values, and keep the previous ones; "held": factor the canonical values in the
        buffers; empty: use the factor as it is.
    solve : bool
    trans, nrhs : int
        Of the solve.
    measured : bool
        Measure the backward error of the solution.
    steps : int
        Of refinement. In deferred calls: as many as the last solve that waited needed. In others: 1 for a graph that
        only corrects the solution in the buffers, after which the host decides whether another step is needed.
    deferred : bool
        ``check="later"``: add the status to the accumulated status on the device, and do not copy it to the host.
    on_host : bool
        Values, one right-hand side and the solution are in the page-locked arrays of `Staging`.
    """

    values: str = ""
    solve: bool = False
    trans: int = 0
    nrhs: int = 1
    measured: bool = False
    steps: int = 0
    deferred: bool = False
    on_host: bool = False

    @property
    def kind(self) -> Call:
        """Calls of one kind need the same kernels, arrays and buffers."""
        return self._replace(nrhs=1 + (self.nrhs > 1), steps=0)


class Addresses(NamedTuple):
    """Arrays of the caller that kernels read and write in place; 0: those of the buffers."""

    values: int = 0
    b: int = 0
    x: int = 0


IN_BUFFERS = Addresses()


class StreamOrder:
    """The order of calls of one object in different streams of its callers."""

    def __init__(self, device: Any):
        self.device = device
        self._stream: Stream | None = None  # stream of the last commands
        self._event: Any = None

    def begin(self) -> Stream:
        """The caller's stream, ordered after all earlier commands of this object.

        Raises
        ------
        RuntimeError
            The stream is captured, and the caller needs to wait.
        """
        stream = self.begin_deferred()
        if stream.captured:
            raise RuntimeError("the current stream is captured, and this call would wait for it; pass check='later'")
        return stream

    def begin_deferred(self) -> Stream:
        """The same for deferred calls; if the stream is captured, the caller is responsible for the order."""
        stream: Stream = self.device.caller_stream()
        if stream.captured:
            return stream
        if self._event is not None and stream != self._stream:
            stream.wait(self._event)
        self._stream, self._event = stream, None
        return stream

    def leave(self, stream: Stream) -> None:
        """The host continues without waiting; `begin` on another stream will wait."""
        self._event = stream.record()


class CommandGraphs(StreamOrder):
    """A program, the buffers of one factor, and the graphs of its calls.

    Parameters
    ----------
    program : Program
    device_memory : int, optional
        That may be used [bytes].

    Attributes
    ----------
    buffers : Buffers
    host : Staging
    """

    def __init__(self, program: Program, device_memory: int | None = None):
        super().__init__(program.device)
        self.program, self.n = program, program.n
        self.buffers = Buffers(program, device_memory)
        self.host = self.buffers.host
        self._graphs: dict[tuple[Call, Addresses], Graph] = {}
        self._ready: set[Call] = set()  # kinds of calls that have a graph
        self._seen: dict[tuple[Call, Addresses], int] = {}  # how often, without a graph yet
        self._direct_left = DIRECT_GRAPHS

    # ---- graphs

    def graph(self, call: Call, at: Addresses = IN_BUFFERS) -> Graph:
        """The graph of a call, made on first use."""
        graph = self._graphs.get((call, at))
        if graph is None:
            if call.deferred:
                self.device.ready_to_capture()
            graph = self.device.build_graph(lambda stream: self.add_commands(stream, call, at))
            self._graphs[call, at] = graph
            self._ready.add(call.kind)
        return graph

    def direct(self, call: Call, at: Addresses, fits: Callable[[], bool]) -> Graph | None:
        """The graph over the caller's own arrays on the device, which saves copies.

        Making a graph takes as long as several copies, so this is None until the same arrays are used again; `fits`:
        whether kernels can use them in place.
        """
        graph = self._graphs.get((call, at))
        if graph is None and self._direct_left:
            times = self._seen[call, at] = self._seen.get((call, at), 0) + 1
            if times >= SIGHTINGS and fits():
                del self._seen[call, at]
                self._direct_left -= 1
                graph = self.graph(call, at)
            elif len(self._seen) > REMEMBERED:
                self._seen.clear()
        return graph

    def is_ready(self, call: Call) -> bool:
        """Whether such a call was made before, so that it needs no upload, load or allocation."""
        return call.kind in self._ready

    # ---- commands

    def add_commands(self, stream: Stream, call: Call, at: Addresses = IN_BUFFERS) -> None:
        """Add the commands of a call to a stream or a graph."""
        program, buffers = self.program, with_addresses(self.buffers, input=at.values)
        solve: Any = None
        if call.solve or call.steps:
            vectors = with_addresses(self.buffers.vectors(call.nrhs), b=at.b, x=at.x)
            solve = Solve(vectors, call.trans, call.nrhs, vectors.b, vectors.x)
        if call.on_host:
            self._send(stream, call)
        if call.values:
            self._factor(stream, call, buffers, solve)
        elif call.solve:
            side = stream
            if not (call.measured or call.deferred):  # a solve neither reads nor writes the status
                side = stream.fork()
                self.report(side)
            program.solve(stream, buffers, solve)
            stream.join(side)
        for _ in range(call.steps):
            self._refine(stream, call, buffers, solve)
        if call.deferred:
            self._accumulate(stream, call, buffers, solve)
        else:
            self._return_results(stream, call, buffers, solve)

    def _send(self, stream: Stream, call: Call) -> None:
        """Copy arrays of the host to the device."""
        buffers, host, arrays = self.buffers, self.host, []
        if call.values:
            arrays.append((buffers.input.pointer, host.values.ctypes.data, host.values.size))
        if call.solve:
            arrays.append((buffers.vectors(1).b.pointer, host.b.ctypes.data, host.b.size))
        self.program.move(stream, *arrays)

    def _factor(self, stream: Stream, call: Call, buffers: Any, solve: Any) -> None:
        """Take values, factor them and, in the same pass, solve if the call does."""
        program, new = self.program, call.values == "new"
        gathered = new and not program.pattern.core.identity
        side = stream if gathered else stream.fork()  # else checked and kept concurrently with the factorization
        program.take_values(side, buffers, new)
        values = buffers.input if new and not gathered else buffers.values
        if call.solve:
            program.factor_solve(stream, buffers, values, solve)
        else:
            program.factor(stream, buffers, values)
        stream.join(side)

    def _refine(self, stream: Stream, call: Call, buffers: Any, solve: Solve) -> None:
        """Correct x by the residual. Calls that wait have measured the residual before, and keep the previous x."""
        program, vectors = self.program, solve.vectors
        if call.deferred:
            program.residual(stream, buffers, solve, accumulated=0)
        else:
            stream.copy(vectors.kept.pointer, vectors.x.pointer, self.vector_bytes(call.nrhs))
        program.solve(stream, buffers, solve._replace(b=vectors.residual, x=vectors.step))
        program.add_step(stream, solve)

    def _accumulate(self, stream: Stream, call: Call, buffers: Any, solve: Any) -> None:
        """Add the status to that of other deferred calls, with the backward error if it is measured."""
        accumulated, factored = self.accumulated.pointer, bool(call.values)
        if call.measured:
            self.program.residual(stream, buffers, solve, accumulated, factored)
        else:
            self.program.add_up(stream, buffers, accumulated, factored, call.solve)

    def _return_results(self, stream: Stream, call: Call, buffers: Any, solve: Any) -> None:
        """Copy solution and status to the host; the status of a factorization alone only if the call waits for it."""
        program = self.program
        side = stream.fork() if call.measured and call.on_host else stream
        if call.values and not call.measured and (call.solve or call.on_host):
            self.report(stream)
        if call.solve and call.on_host:
            program.move(side, (self.host.x.ctypes.data, solve.x.pointer, self.n))
        if call.measured:
            program.residual(stream, buffers, solve)
        stream.join(side)

    # ---- status

    def report(self, stream: Stream) -> None:
        """Copy the status to the host and clear it, which a measured solve does itself."""
        self.program.report(stream, self.buffers)

    def status(self) -> Any:
        """Status of the last reported factorization, or of the last measured solve; the caller has waited."""
        return Status(*self.host.status.item())

    def backward_error(self) -> float:
        """Of the last solve that measured it, or of a refinement step after it."""
        status = self.status()
        return _core.backward_error(status.residual, status.x_norm, status.b_norm, status.a_norm)

    @cached_property
    def accumulated(self) -> AccumulatedBuffer:
        """Status of deferred calls; allocated at the first such call."""
        return AccumulatedBuffer(self.device)

    def read_accumulated(self, stream: Stream) -> Any:
        """Wait for the status of deferred calls."""
        return self.accumulated.read(stream) if "accumulated" in vars(self) else NO_CALLS

    def clear_accumulated(self, stream: Stream) -> None:
        if "accumulated" in vars(self):
            self.accumulated.clear(stream)

    # ---- without a graph

    def factor_now(self, stream: Stream) -> Any:
        """Factor the values in the buffers and wait; the `Status`.

        Most factors do that once, which is faster than making a graph for it.
        """
        call = Call("held")
        if (call, IN_BUFFERS) in self._graphs:
            stream.replay(self.graph(call))
        else:
            self.add_commands(stream, call)
        self.report(stream)
        stream.synchronize()
        return self.status()

    def send(self, stream: Stream, to: int, array: np.ndarray) -> None:
        """Copy from the host through pinned memory."""
        if array.nbytes > STAGED:
            self.device.send(stream, to, array)
        else:
            stream.copy(to, self.host.stage(array).ctypes.data, array.nbytes)

    def values(self) -> np.ndarray:
        """Canonical values on the device; the caller has waited."""
        return self.fetched(self.buffers.values, np.empty(self.program.pattern.nnz, self.program.dtype))

    def vector(self, buffer: Buffer, nrhs: int) -> np.ndarray:
        """Right-hand sides or solutions in a buffer, shape (nrhs, n); the caller has waited."""
        return self.fetched(buffer, np.empty((nrhs, self.n), self.program.dtype))

    def fetched(self, buffer: Buffer, array: np.ndarray) -> np.ndarray:
        """`array`, filled from a buffer; the caller has waited."""
        self.device.fetch(self.device.own_stream(), array, buffer.pointer)
        return array

    def vector_bytes(self, nrhs: int) -> int:
        return int(self.n) * nrhs * self.program.dtype.itemsize


def with_addresses(buffers: Any, **addresses: int) -> Any:
    """`buffers` with the named members at these addresses; 0: unchanged."""
    changed = copy(buffers)
    for name, address in addresses.items():
        if address:
            setattr(changed, name, Buffer(None, address, getattr(buffers, name).nbytes))
    return changed
