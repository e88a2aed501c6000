"""Commands of one factor on one device: recorded as graphs on first use, replayed afterwards.

A `Recorded` binds a program to the buffers of one factor. The host neither decides nor allocates anything when a
graph runs.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ... import _core
from ...cuda.graphs import Graph
from ...cuda.stream import Buffer, Stream
from .accumulated import AccumulatedBuffer, AccumulatedStatus
from .program import STAGED, Buffers, Program, Status

# Graphs over the caller's own arrays: made for arrays that occur this many times, up to a maximum number.
SIGHTINGS, DIRECT_GRAPHS = 3, 8
REMEMBERED = 64  # array combinations counted before all counts are dropped


class Recorded:
    """A program, the buffers of a factor, and the graphs over them.

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
        self.program, self.device, self.n = program, program.device, program.n
        self.buffers = Buffers(program, device_memory)
        self.host = self.buffers.host
        self._graphs: dict[tuple[Any, ...], Graph] = {}
        self._known: set[tuple[Any, ...]] = set()  # calls for which everything is ready
        self._accumulated: AccumulatedBuffer | None = None
        self._seen: dict[tuple[Any, ...], int] = {}  # how often, without a graph yet
        self._direct_left = DIRECT_GRAPHS
        self._stream: Stream | None = None  # stream of the last commands
        self._event: Any = None

    def begin(self) -> Stream:
        """The caller's stream, ordered after all earlier commands of this factor.

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
        """The same for calls that do not wait; if the stream is captured, the caller is responsible for the order."""
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

    def graph(self, what: str, *key: int) -> Graph:
        """A graph of the commands of one of the methods below, with the arguments of that method."""
        if (what, *key) not in self._graphs:
            self._make_ready(what, *key)
            commands: Callable[..., None] = getattr(self, what)
            self._graphs[what, *key] = self.device.build_graph(lambda stream: commands(stream, *key))
        return self._graphs[what, *key]

    def _make_ready(self, what: str, *key: int) -> None:
        """Upload, load and allocate what these commands need: a graph cannot do that."""
        program, on_host = self.program, what.endswith("_host")
        self._known.add(kind_of(what, *key))
        if what.endswith("_deferred"):
            self.accumulated  # noqa: B018
            self.device.ready_to_capture()
        program.ready_to_take_values()
        if "factor" in what:
            program.ready_to_factor()
            if on_host:
                self.host.values  # noqa: B018
        if "solve" in what or what == "refine":
            trans, nrhs, measured = (key[0], 1, key[1]) if on_host else (*key[:2], what == "refine" or key[2])
            self.buffers.vectors(nrhs)
            program.ready_to_solve(trans, nrhs)
            if measured:
                program.ready_to_measure(trans)
            if on_host:
                self.host.b, self.host.x  # noqa: B018

    def is_ready(self, what: str, *key: int) -> bool:
        """Whether such a call was made before, so that it needs no upload, load or allocation."""
        return kind_of(what, *key) in self._known

    def direct(self, what: str, *key: int, arrays: tuple[Any, ...]) -> Graph | None:
        """`graph` over the caller's own arrays on the device (values, right-hand side, solution) instead of buffers.

        It saves the copies. Making a graph takes as long as several copies, so this is None until the same arrays are
        used again.
        """
        whole = (what, *key, *map(self.device.pointer, arrays))
        graph = self._graphs.get(whole)
        if graph is None and self._direct_left:
            times = self._seen[whole] = self._seen.get(whole, 0) + 1
            if times >= SIGHTINGS and all(map(self.device.can_read, arrays)):
                del self._seen[whole]
                self._direct_left -= 1
                graph = self.graph(*whole)
            elif len(self._seen) > REMEMBERED:
                self._seen.clear()
        return graph

    # ---- contents of graphs; given, b and x: addresses of the caller's arrays, 0 for those of the buffers

    def factor(self, stream: Stream) -> None:
        """Factor the values in the buffers."""
        self._with_values(stream, False, 0, lambda values: self.program.factor(stream, self.buffers, values))

    def refactor(self, stream: Stream, given: int = 0) -> None:
        """Factor the values in the input buffer."""
        self._with_values(stream, True, given, lambda values: self.program.factor(stream, self.buffers, values))

    def _with_values(self, stream: Stream, new: bool, given: int, commands: Callable[[Buffer], None]) -> None:
        """Take values, and add commands that need them."""
        program, buffers = self.program, with_addresses(self.buffers, input=given)
        if new and not program.pattern.core.identity:
            program.take_values(stream, buffers, new)
            commands(buffers.values)
        else:  # values are kept and checked concurrently with the factorization
            side = stream.fork()
            program.take_values(side, buffers, new)
            commands(buffers.input if new else buffers.values)
            stream.join(side)

    def solve(self, stream: Stream, trans: int, nrhs: int, measured: int, b: int = 0, x: int = 0, out: int = 0) -> None:
        """Solve for the right-hand sides in b, to x, and copy from there to `out` on the host."""
        vectors = with_addresses(self.buffers.vectors(nrhs), b=b, x=x)
        side = stream if measured else stream.fork()
        if not measured:  # a solve neither reads nor writes the status
            self.report(side)
        self.program.solve(stream, self.buffers, vectors, trans, nrhs, vectors.b, vectors.x)
        stream.join(side)
        self._give(stream, vectors, trans, nrhs, measured, out)

    def refactor_solve(
        self, stream: Stream, trans: int, nrhs: int, measured: int, given: int = 0, b: int = 0, x: int = 0, out: int = 0
    ) -> None:
        program, buffers = self.program, self.buffers
        vectors = with_addresses(buffers.vectors(nrhs), b=b, x=x)
        self._with_values(
            stream, True, given, lambda values: program.factor_solve(stream, buffers, values, vectors, trans, nrhs)
        )
        if not measured:
            self.report(stream)
        self._give(stream, vectors, trans, nrhs, measured, out)

    def _give(self, stream: Stream, vectors: Any, trans: int, nrhs: int, measured: int, out: int) -> None:
        """Measure the backward error, if requested, while the solution is copied."""
        side = stream.fork() if measured and out else stream
        if out:
            self.program.move(side, (out, vectors.x.pointer, self.n * nrhs))
        if measured:
            self.program.residual(stream, self.buffers, vectors, trans, nrhs)
        stream.join(side)

    # ---- the same between arrays of `host`, with one right-hand side

    def refactor_host(self, stream: Stream) -> None:
        self._send(stream, True, False)
        self.refactor(stream)
        self.report(stream)

    def solve_host(self, stream: Stream, trans: int, measured: int) -> None:
        self._send(stream, False, True)
        self.solve(stream, trans, 1, measured, out=self.host.x.ctypes.data)

    def refactor_solve_host(self, stream: Stream, trans: int, measured: int) -> None:
        self._send(stream, True, True)
        self.refactor_solve(stream, trans, 1, measured, out=self.host.x.ctypes.data)

    def _send(self, stream: Stream, values: bool, b: bool) -> None:
        """Copy the arrays of `host` to the device."""
        buffers, host, arrays = self.buffers, self.host, []
        if values:
            arrays.append((buffers.input.pointer, host.values.ctypes.data, host.values.size))
        if b:
            arrays.append((buffers.vectors(1).b.pointer, host.b.ctypes.data, host.b.size))
        self.program.move(stream, *arrays)

    def refine(self, stream: Stream, trans: int, nrhs: int) -> None:
        """One step: correct x by the residual, and keep the previous x."""
        vectors = self.buffers.vectors(nrhs)
        stream.copy(vectors.kept.pointer, vectors.x.pointer, self.vector_bytes(nrhs))
        self._step(stream, vectors, trans, nrhs)
        self.program.residual(stream, self.buffers, vectors, trans, nrhs)

    def _step(self, stream: Stream, vectors: Any, trans: int, nrhs: int) -> None:
        self.program.solve(stream, self.buffers, vectors, trans, nrhs, vectors.residual, vectors.step)
        self.program.add_step(stream, self.buffers, vectors, nrhs)

    # ---- calls that do not wait: their status accumulates on the device

    def refactor_deferred(self, stream: Stream, given: int = 0) -> None:
        self.refactor(stream, given)
        self.program.add_up(stream, self.buffers, self.accumulated.pointer, factored=True, solved=False)

    def solve_deferred(
        self, stream: Stream, trans: int, nrhs: int, measured: int, steps: int, b: int = 0, x: int = 0
    ) -> None:
        """Solve with this many steps of refinement, needed or not."""
        vectors = with_addresses(self.buffers.vectors(nrhs), b=b, x=x)
        self.program.solve(stream, self.buffers, vectors, trans, nrhs, vectors.b, vectors.x)
        self._certify_deferred(stream, vectors, (trans, nrhs), measured, steps, False)

    def refactor_solve_deferred(
        self,
        stream: Stream,
        trans: int,
        nrhs: int,
        measured: int,
        steps: int,
        given: int = 0,
        b: int = 0,
        x: int = 0,
    ) -> None:
        program, buffers = self.program, self.buffers
        vectors = with_addresses(buffers.vectors(nrhs), b=b, x=x)
        self._with_values(
            stream, True, given, lambda values: program.factor_solve(stream, buffers, values, vectors, trans, nrhs)
        )
        self._certify_deferred(stream, vectors, (trans, nrhs), measured, steps, True)

    def _certify_deferred(
        self, stream: Stream, vectors: Any, system: tuple[int, int], measured: int, steps: int, factored: bool
    ) -> None:
        accumulated = self.accumulated.pointer
        if not measured:
            self.program.add_up(stream, self.buffers, accumulated, factored, solved=True)
            return
        for _ in range(steps):
            self.program.residual(stream, self.buffers, vectors, *system, accumulated=0)
            self._step(stream, vectors, *system)
        self.program.residual(stream, self.buffers, vectors, *system, accumulated, factored)

    @property
    def accumulated(self) -> AccumulatedBuffer:
        """Allocated at the first such call."""
        if self._accumulated is None:
            self._accumulated = AccumulatedBuffer(self.device)
        return self._accumulated

    def read_accumulated(self, stream: Stream) -> None:
        """Wait for the status of these calls."""
        if self._accumulated is not None:
            self._accumulated.read(stream)

    def take_accumulated(self, stream: Stream) -> AccumulatedStatus:
        """The status of these calls, which is cleared."""
        return AccumulatedStatus() if self._accumulated is None else self._accumulated.take(stream)

    # ---- without a graph

    def report(self, stream: Stream) -> None:
        """Copy the status to the host and clear it, which a measured solve does itself."""
        self.program.report(stream, self.buffers)

    def status(self) -> Status:
        """Status of the last reported factorization, or of the last measured solve; the caller has waited."""
        return Status._make(self.host.status.item())

    def factor_now(self, stream: Stream) -> Status:
        """Factor the values in the buffers and wait; the status.

        Most factors do that once, which is faster than making a graph for it.
        """
        if ("factor",) in self._graphs:
            stream.replay(self.graph("factor"))
        else:
            self._make_ready("factor")
            self.factor(stream)
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
        return self._fetched(self.buffers.values, np.empty(self.program.pattern.nnz, self.program.dtype))

    def vector(self, buffer: Buffer, nrhs: int) -> np.ndarray:
        """Right-hand sides or solutions in a buffer, shape (nrhs, n); the caller has waited."""
        return self._fetched(buffer, np.empty((nrhs, self.n), self.program.dtype))

    def _fetched(self, buffer: Buffer, array: np.ndarray) -> np.ndarray:
        self.device.fetch(self.device.own_stream(), array, buffer.pointer)
        return array

    def backward_error(self) -> float:
        """Of the last solve that measured it, or of a refinement step after it."""
        status = self.status()
        error: float = _core.backward_error(status.residual, status.x_norm, status.b_norm, status.a_norm)
        return error

    def vector_bytes(self, nrhs: int) -> int:
        return int(self.n) * nrhs * self.program.dtype.itemsize


def kind_of(what: str, *key: int) -> tuple[Any, ...]:
    """Kind of a call: it determines the kernels, arrays and buffers needed."""
    if "solve" not in what or what.endswith("_host"):
        return (what,)
    trans, nrhs, measured = key[:3]
    return what, trans, nrhs > 1, measured


def with_addresses(buffers: Any, **addresses: int) -> Any:
    """`buffers` with the named members at these addresses; 0: unchanged."""
    changed = copy(buffers)
    for name, address in addresses.items():
        if address:
            setattr(changed, name, Buffer(None, address, getattr(buffers, name).nbytes))
    return changed
