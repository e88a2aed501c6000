"""The supernodal engine's program on several devices: one process, one plan, one list of commands.

The values of the matrix go from device to device, in chunks, so that all devices have them at about the same time. Each
device factors its segments in order, shares some fronts with others, and sends the contribution blocks that other
devices' fronts need as soon as they are complete.

The first device has right-hand sides, solutions, residuals and the status: it sends each device the rows of the
device's pivots, and stores the rows that come back.

Every device has a stream of kernels and one of copies to others. Each waits for its inputs by events; commands are
added in an order in which children come before parents, so that nothing waits for a later command. The first device's
stream of kernels is the caller's: the others begin after its earlier commands, and it ends after all of them, so that
everything can be one graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ...common.matrix import Pattern
from ...cuda.devices import usable_bytes
from ...cuda.several import failures, too_small
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceFailedError
from ..device.buffers import STATUS, Buffers, Solve, Vectors
from ..device.call import CommandGraphs
from ..device.factor import HELD, MUST_RESTORE, PENDING, SOLVES, STATUS_REQUESTED, DeviceFactor
from ..device.program import THREADS, WARP, Program
from .memory import factor_memory, vector_memory
from .program import FrontProgram, Fronts, FrontSolve
from .shared_plan import SharedPlan, needed_of_each, shares_of
from .tiles import LARGE_FRONT, Part, Rectangle


class Copy(NamedTuple):
    """`width` bytes from one address to another, repeated, with pitches between the repetitions."""

    to: int
    source: int
    width: int
    times: int = 1
    to_pitch: int = 0
    source_pitch: int = 0

    @property
    def nbytes(self) -> int:
        return self.width * self.times

    def run(self, stream: Stream) -> None:
        if self.times == 1:
            stream.copy(self.to, self.source, self.width)
        else:
            stream.copy_rows(self.to, self.to_pitch, self.source, self.source_pitch, self.width, self.times)

    def by(self, place: int) -> tuple[Copy, Copy]:
        """Two copies through `place`: to it, contiguous, and from it."""
        to_staging = self._replace(to=place, to_pitch=self.width)
        return to_staging, self._replace(source=place, source_pitch=self.width)


class Streams:
    """Streams of a factor on each device, made once; the first device's kernels go to the caller's."""

    def __init__(self, devices: Sequence[Any]):
        self.devices = tuple(devices)
        self.kernels = [None, *(device.new_stream() for device in self.devices[1:])]
        self.copies = [device.new_stream() for device in self.devices]
        #: Whether device k has direct access to device m.
        self.direct = [[one.reaches(other) for other in self.devices] for one in self.devices]


class Team:
    """The devices during one list of commands.

    Parameters
    ----------
    streams : Streams
    stream : Stream
        The caller's, of the first device.
    bounce : list of Buffer
        Page-locked memory of the host for copies between devices without peer access. Every list of commands uses it
        from its begin, and adds what is missing.
    """

    def __init__(self, streams: Streams, stream: Stream, bounce: list[Buffer]):
        self._devices, self._direct = streams.devices, streams.direct
        self._kernels = [stream, *map(stream.peer_stream, streams.devices[1:], streams.kernels[1:])]
        self._copies = [*map(stream.peer_stream, streams.devices, streams.copies)]
        self._bounce, self._current, self._used = bounce, 0, 0
        self._arrived: dict[tuple[int, Hashable], list[Any]] = {}
        self._met: dict[int, Any] = {}

    def __enter__(self) -> Team:
        begin = self._kernels[0].record()
        for k, device in enumerate(self._devices):
            with device:
                self._copies[k].wait(begin)
                if k:
                    self._kernels[k].wait(begin)
        return self

    def __exit__(self, *error: object) -> None:
        ends = []
        for k, device in enumerate(self._devices):
            with device:
                ends += [self._copies[k].record(), *([self._kernels[k].record()] if k else [])]
        for end in ends:
            self._kernels[0].wait(end)

    @contextmanager
    def on(self, k: int) -> Iterator[Stream]:
        """The stream of device k's kernels, while that device is the current one."""
        with self._devices[k]:
            yield self._kernels[k]

    def meet(self, devices: Iterable[int]) -> None:
        """Later kernels of each of these devices run after its copies so far, and copies to it after its kernels so
        far: memory that it wrote, read or sent from before may then be reused, by other devices too."""
        for k in devices:
            with self._devices[k]:
                self._kernels[k].wait(self._copies[k].record())
                self._met[k] = self._kernels[k].record()

    def send(self, k: int, m: int, what: Hashable, copies: Sequence[Copy]) -> None:
        """Copy from device k, after its kernels so far, to device m, which calls `receive` with `what` to wait for the
        data."""
        direct = self._direct[k][m]
        routes = [(copy, copy) if direct else copy.by(self._take(copy.nbytes)) for copy in copies]
        with self._devices[k]:
            stream = self._copies[k]
            stream.wait(self._kernels[k].record())
            self._wait_for(m, stream)
            for copy, _ in routes:
                copy.run(stream)
            event = stream.record()
        if not direct:
            with self._devices[m]:
                stream = self._copies[m]
                stream.wait(event)
                self._wait_for(m, stream)
                for _, copy in routes:
                    copy.run(stream)
                event = stream.record()
        self._arrived.setdefault((m, what), []).append(event)

    def _wait_for(self, m: int, stream: Stream) -> None:
        """Wait until device m has met the others."""
        if m in self._met:
            stream.wait(self._met[m])

    def receive(self, m: int, what: Hashable) -> None:
        """Later kernels of device m run after the copies known as `what`."""
        with self._devices[m]:
            for event in self._arrived.pop((m, what), ()):
                self._kernels[m].wait(event)

    def _take(self, nbytes: int) -> int:
        nbytes = -(-nbytes // ALIGN) * ALIGN
        while self._current < len(self._bounce) and self._used + nbytes > self._bounce[self._current].nbytes:
            self._current, self._used = self._current + 1, 0
        if self._current == len(self._bounce):
            self._bounce.append(self._devices[0].host(max(nbytes, LEAST_BOUNCE)))
        self._used += nbytes
        return self._bounce[self._current].pointer + self._used - nbytes


ALIGN, LEAST_BOUNCE = 256, 1 << 20  # of places on the host, and of an allocation [bytes]


# ---- Layout of the data that devices send each other in a solve


class Layout:
    """Addresses of values of places and positions in the work memory of a solve for some number of right-hand sides."""

    def __init__(self, program: SharedProgram, capacity: int):
        plan = program.plan
        self._one, self._itemsize, self._n = capacity == 1, program.dtype.itemsize, int(plan.n)
        self._columns = int(plan.solve_columns(capacity))
        self._groups = -(-capacity // self._columns)
        self._below = max(1, int(plan.below.size))

    def places(self, begin: int, count: int) -> list[tuple[str, int, int]]:
        """Array, offset and bytes of the contributions of fronts to their parents at these places."""
        size = self._itemsize
        if self._one:
            return [("packets", 2 * (self._n + begin) * size, 2 * count * size)]
        width = self._columns * size
        starts = [group * self._below + begin for group in range(self._groups)]
        return [("vectors", start * width, count * width) for start in starts]

    def positions(self, begin: int, end: int) -> list[tuple[str, int, int]]:
        """The same of solutions at these plan positions: packets, and with several also numbers."""
        width, count = self._columns * self._itemsize, end - begin
        starts = [group * self._n + begin for group in range(self._groups)]
        found = [("packets", 2 * start * width, 2 * count * width) for start in starts]
        return found if self._one else found + [("work", start * width, count * width) for start in starts]

    def copies(self, to: Any, source: Any, ranges: list[tuple[str, int, int]]) -> list[Copy]:
        """Copies between the work memories of two devices."""
        return [Copy(to[name].pointer + at, source[name].pointer + at, nbytes) for name, at, nbytes in ranges]


# ---- Commands of one front that several devices share, stage by stage (tiles.py)

FILE = "fronts/devices.cu"
COUNTER_BYTES = 4


class SharedFront:
    """One front of a program that several devices share; parameters: the program, and the front of its plan."""

    def __init__(self, program: SharedProgram, front: int):
        plan = program.plan
        self._program, self._front, self.tiles = program, front, plan.tiles[front]
        self._owner, self._segment = int(plan.front_device[front]), int(plan.front_segment[front])
        number = int(np.count_nonzero(plan.is_large[:front]))
        self._counter = int(plan.large_fronts.view(LARGE_FRONT)[number]["counter"])
        self._control = COUNTER_BYTES * int(plan.launches[plan.launch_ptr[self._segment]]["scalars"])

    def factor(self, team: Team, buffers: Buffers, values: Buffer) -> None:
        devices = self.tiles.group
        team.meet(devices)
        for stage in range(-1, self.tiles.chunks + 1):
            for k in devices:
                team.receive(k, (self._front, stage))
                self._launch(team, k, stage, buffers, values)
            for each in self.tiles.sent(stage, self._owner):
                places = [self._factor(buffers, k) for k in (each.target, each.source)]
                copies = [self._copy(places[0], places[1], part) for part in each.parts]
                team.send(each.source, each.target, (self._front, each.stage), copies)
        team.receive(self._owner, (self._front, None))
        team.meet(devices)

    def _factor(self, buffers: Buffers, k: int) -> int:
        """Address of the front's factor on a device."""
        program = self._program
        begin = int(program.own(buffers, k).own["factor"].pointer)
        return begin + int(program.shares[k].factor_place(self._front)) * program.dtype.itemsize

    def _copy(self, to: int, source: int, part: Part) -> Copy:
        size = self._program.dtype.itemsize
        at, pitch = part.begin * size, part.ld * size
        return Copy(to + at, source + at, part.rows * size, part.columns, pitch, pitch)

    def _launch(self, team: Team, k: int, stage: int, buffers: Buffers, values: Buffer) -> None:
        """Launch the tasks of a stage that belong to device k."""
        program = self._program
        begin, count = program.shares[k].stage_tasks(self._front, stage)
        if not count:
            return
        own: Any = program.own(buffers, k)
        with team.on(k) as kernels:
            self._set_progress(kernels, k, own.own["large_counters"].pointer + self._control, stage)
            given = program.values_of(buffers, values, k)
            program.each[k].factor_tasks(kernels, own, given, self._segment, begin, count)

    def _set_progress(self, kernels: Stream, k: int, counters: int, stage: int) -> None:
        """Set the progress before a stage, for its launch."""
        part, tiles = self._program.each[k], self.tiles
        begin, end = tiles.columns(stage) if stage >= 0 else (0, 0)
        shape = part.blocks(tiles.count, THREADS, 1), THREADS, 0
        fields = {"counters": counters, "counter": self._counter, "tiles": tiles.count, "begin": begin, "end": end}
        part.launch(kernels, FILE, "set_progress", shape, **fields, upper=not part.one_triangle)


# Chunk of the values sent from one device to the next: large enough for the link's rate, yet few chunks [bytes].
CHUNK, MOST_CHUNKS = 16 << 20, 8


class SharedProgram(FrontProgram):
    """A plan of fronts in the memories of several devices.

    Parameters
    ----------
    devices : sequence of cuda.devices.Device
        The first one has values and vectors.
    plan : SharedPlan
    pattern, hermitian, pivots
        As FrontProgram takes them.
    limit : int, optional
        Memory of each device that may be used [bytes].
    """

    def __init__(
        self,
        devices: Sequence[Any],
        plan: SharedPlan,
        pattern: Pattern,
        hermitian: bool = True,
        pivots: np.ndarray | None = None,
        limit: int | None = None,
    ):
        super().__init__(devices[0], plan, pattern, hermitian, pivots)
        self.plan: SharedPlan = plan
        self.devices, self.limit, self.shares = tuple(devices), limit, shares_of(plan)
        pairs = zip(self.devices, self.shares, strict=True)
        self.each = [Fronts(device, share, *self.small_pivots(), hermitian) for device, share in pairs]
        self.fronts, self.has_signs = self.each[0], False
        self.parts = tuple(self.each)
        self.shared = {int(plan.front_segment[f]): SharedFront(self, f) for f in plan.tiles}

    # ---- memory

    @property
    def details(self) -> dict[str, Any]:
        return {"devices": [device.index for device in self.devices], **self.plan.facts}

    @cached_property
    def needed(self) -> list[int]:
        """Memory of each device for a factor and one right-hand side at a time [bytes]."""
        return needed_of_each(self.plan, self.pattern)

    @cached_property
    def needed_bytes(self) -> int:  # type: ignore[override]
        """Memory of the first device."""
        return self.needed[0]

    def missing_bytes(self, usable: int) -> int:
        """None: a device that has too little is an error here.

        Raises
        ------
        DeviceMemoryError
        """
        free = [usable_bytes(device, self.limit) for device in self.devices]
        uploaded = [part.nbytes for part in self.each]
        left = [max(0, need - present) for need, present in zip(self.needed, uploaded, strict=True)]
        error = too_small(left, free, self.devices)
        if error:
            raise error
        return 0

    def free_bytes(self) -> int:
        return min(int(device.free_bytes()) for device in self.devices)

    def factor_peers(self) -> Any:
        """Memory of a factor on the other devices.

        `own`: for each device `own` and `device_status` as in Buffers, and its copy of the `values`; `statuses`: of the
        other devices, on the first; `streams`, and `bounce` of `Team`.
        """
        own: list[Any] = [None]
        for device, share in zip(self.devices[1:], self.shares[1:], strict=True):
            with device:
                memory = factor_memory(share).allocate(device)
                values, status = device.empty(self.pattern.nnz * self.dtype.itemsize), device.zeros(STATUS.itemsize)
                device.own_stream().synchronize()
            own.append(SimpleNamespace(own=memory, values=values, device_status=status))
        statuses = self.device.empty(STATUS.itemsize * len(own))
        return SimpleNamespace(streams=Streams(self.devices), own=own, statuses=statuses, bounce=[])

    def vector_peers(self, capacity: int) -> Any:
        """The same for solves: `own`, for each device `own` as in Vectors, b and x of its rows, and memory for these
        `rows` on the first device; and `bounce`."""
        own: list[Any] = [None]
        for device, share in zip(self.devices[1:], self.shares[1:], strict=True):
            with device:
                memory = vector_memory(share, capacity).allocate(device)
                nbytes = share.ld * capacity * self.dtype.itemsize
                b, x = device.empty(nbytes), device.empty(nbytes)
                device.own_stream().synchronize()
            own.append(SimpleNamespace(own=memory, b=b, x=x, rows=self.device.empty(nbytes)))
        return SimpleNamespace(own=own, bounce=[])

    def prepare(self) -> None:
        super().prepare()
        for device, part in zip(self.devices[1:], self.each[1:], strict=True):
            files = {*part.files, *([FILE] if self.shared else [])}
            device.prepare(sorted(files), self.dtype.char, self.kind)
        self.device.prepare([FILE], self.dtype.char, self.kind)

    @cached_property
    def _pivot_rows(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """For every device: the rows of b, and of x, that belong to its pivots."""
        plan = self.plan
        return [(self.upload(plan.row_perm[s.at]), self.upload(plan.col_perm[s.at])) for s in self.shares]

    # ---- commands

    def own(self, buffers: Buffers, k: int) -> Any:
        """Memory of a factor on device k."""
        return buffers.peers.own[k] if k else buffers

    def values_of(self, buffers: Buffers, values: Buffer, k: int) -> Buffer:
        """The copy of the values on device k."""
        return buffers.peers.own[k].values if k else values

    @cached_property
    def _chunks(self) -> list[tuple[int, int]]:
        """Begin and end of the chunks of the values that are sent at once [bytes]."""
        nbytes = self.pattern.nnz * self.dtype.itemsize
        step = max(CHUNK, -(-nbytes // (MOST_CHUNKS * CHUNK)) * CHUNK)
        return [(begin, min(begin + step, nbytes)) for begin in range(0, nbytes, step)]

    def _send_values(self, team: Team, buffers: Buffers, values: Buffer) -> None:
        """Send from each device to the next: if the first one sent to all, its link would be the bottleneck."""
        where = [self.values_of(buffers, values, k).pointer for k in range(len(self.devices))]
        for begin, end in self._chunks:
            for k in range(1, len(self.devices)):
                team.send(k - 1, k, "values", [Copy(where[k] + begin, where[k - 1] + begin, end - begin)])
                team.receive(k, "values")

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        plan, peers = self.plan, buffers.peers
        everybody = range(len(self.devices))
        with Team(peers.streams, stream, peers.bounce) as team:
            for k in everybody[1:]:
                with team.on(k) as kernels:
                    kernels.clear(peers.own[k].device_status.pointer, STATUS.itemsize)
            self._send_values(team, buffers, values)
            for segment in plan.order:
                shared, k = self.shared.get(segment), plan.device_of[segment]
                for m in shared.tiles.group if shared else [k]:
                    team.receive(m, segment)
                if shared:
                    shared.factor(team, buffers, values)
                else:
                    with team.on(k) as kernels:
                        given = self.values_of(buffers, values, k)
                        self.each[k].factor_segment(kernels, self.own(buffers, k), given, segment)
                self._send_blocks(team, buffers, segment)
            for k in everybody[1:]:
                to = peers.statuses.pointer + (k - 1) * STATUS.itemsize
                team.send(k, 0, "statuses", [Copy(to, peers.own[k].device_status.pointer, STATUS.itemsize)])
            team.receive(0, "statuses")
            self._merge(stream, buffers)

    def _send_blocks(self, team: Team, buffers: Buffers, segment: int) -> None:
        """Send to the devices of the parents: one transfer per destination, as there may be many small blocks."""
        plan, found = self.plan, dict[tuple[int, int, int], list[Copy]]()
        for front, parts in plan.sent.get(segment, ()):
            above = int(plan.front_segment[plan.parent[front]])
            for part in parts:
                places = [self._block(buffers, k, front) for k in (part.target, part.source)]
                copy = self._block_copy(front, part, places[0], places[1])
                found.setdefault((part.source, part.target, above), []).append(copy)
        for (source, target, above), copies in found.items():
            team.send(source, target, above, copies)

    def _block(self, buffers: Buffers, k: int, front: int) -> int:
        """Address of a front's contribution block on a device."""
        begin = int(self.own(buffers, k).own["blocks"].pointer)
        return begin + int(self.shares[k].block_place(front)) * self.dtype.itemsize

    def _block_copy(self, front: int, part: Rectangle, to: int, source: int) -> Copy:
        size, ld, height = self.dtype.itemsize, int(self.plan.block_ld[front]), self.plan.below_range(front)[1]
        (top, bottom), (begin, end) = part.rows, part.columns
        at = (begin * ld + top) * size
        if bottom - top == height:
            return Copy(to + at, source + at, ld * (end - begin) * size)
        return Copy(to + at, source + at, (bottom - top) * size, end - begin, ld * size, ld * size)

    @cached_property
    def _edges_of(self) -> dict[int, list[Any]]:
        """Edges by the segment of the child."""
        found: dict[int, list[Any]] = {}
        for edge in self.plan.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    def _merge(self, stream: Stream, buffers: Buffers) -> None:
        """Merge the status of the other devices into the first one's status."""
        fields = {"status": buffers.device_status, "others": buffers.peers.statuses, "count": len(self.devices) - 1}
        self.launch(stream, FILE, "merge_status", (1, WARP, 0), **fields)

    factor_solve = Program.factor_solve  # one after the other

    def solve(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        vectors, trans, nrhs, b, x = solve
        layout = Layout(self, nrhs)
        sides = self._rows_of_sides(trans)
        with Team(buffers.peers.streams, stream, vectors.peers.bounce) as team:
            solves = [FrontSolve(self.fronts, buffers, solve)]
            for k in range(1, len(self.devices)):
                own = vectors.peers.own[k]
                self._move_rows(stream, "gather_rows", b, own.rows, sides[k][0], nrhs)
                nbytes = self.shares[k].ld * nrhs * self.dtype.itemsize
                team.send(0, k, "b", [Copy(own.b.pointer, own.rows.pointer, nbytes)])
                team.receive(k, "b")
                remote: Any = SimpleNamespace(own=own.own, groups=vectors.groups)
                of_share = Solve(remote, trans, nrhs, own.b, own.x)
                solves.append(FrontSolve(self.each[k], self.own(buffers, k), of_share))
            self._walk(team, solves, vectors, layout)
            for k in range(1, len(self.devices)):
                own = vectors.peers.own[k]
                nbytes = self.shares[k].ld * nrhs * self.dtype.itemsize
                team.send(k, 0, "x", [Copy(own.rows.pointer, own.x.pointer, nbytes)])
            team.receive(0, "x")
            for k in range(1, len(self.devices)):
                self._move_rows(stream, "scatter_rows", vectors.peers.own[k].rows, x, sides[k][1], nrhs)

    def _walk(self, team: Team, solves: list[FrontSolve], vectors: Vectors, layout: Layout) -> None:
        """Solve forward and backward, part by part."""
        plan = self.plan

        def memory(k: int) -> Any:
            return vectors.peers.own[k].own if k else vectors.own

        for number, part in enumerate(plan.parts):
            k = plan.device_of[part[0]]
            team.receive(k, ("forward", part[0]))
            with team.on(k) as kernels:
                solves[k].forward(kernels, number)
            for segment in part:
                for edge in self._edges_of.get(segment, ()):
                    m = plan.device_of[edge.target]
                    copies = layout.copies(memory(m), memory(k), layout.places(*plan.below_range(edge.child)))
                    team.send(k, m, ("forward", edge.target), copies)
        for number, part in reversed(list(enumerate(plan.parts))):
            k = plan.device_of[part[0]]
            team.receive(k, "x of parents")
            with team.on(k) as kernels:
                solves[k].backward(kernels, number)
            for segment in part:
                for m in sorted(plan.readers[segment]):
                    copies = layout.copies(memory(m), memory(k), layout.positions(*plan.pivot_range(segment)))
                    team.send(k, m, "x of parents", copies)

    def _rows_of_sides(self, trans: int) -> list[tuple[Buffer | None, Buffer | None]]:
        """Rows of b and of x of every device's pivots, for op(A)."""
        swapped = bool(trans and not self.one_triangle)
        return [(out, into) if swapped else (into, out) for into, out in self._pivot_rows]

    def _move_rows(self, stream: Stream, name: str, source: Buffer, to: Buffer, rows: Buffer | None, nrhs: int) -> None:
        if rows is None:
            return
        count = rows.nbytes // 4
        fields = {"from": source, "to": to, "row": rows, "count": count, "ld": self.n, "columns": nrhs}
        self.launch(stream, FILE, name, (self.blocks(count, THREADS, 8), THREADS, 0), **fields)


class SharedFactor(DeviceFactor):
    """LU, Cholesky or LDL^T factor of one matrix on several devices, with its recovery when a device, or a copy between
    devices, fails.

    Kernels of an interrupted call have changed counters that others wait for, so their memory is allocated again, and
    the previous values are factored again: on the devices or, if that fails too, by the CPU engine.
    """

    _stale = False  # the graphs can no longer be used

    @property
    def _devices(self) -> tuple[Any, ...]:
        program: Any = self._commands.program
        return tuple(program.devices)

    @contextmanager
    def _guard(self, wait: bool = True, values: Any = None, given: bool = True) -> Iterator[None]:
        """Go back to the values held if devices fail."""
        if not wait and self._device.caller_stream().captured:
            raise RuntimeError("calls of a factor on several devices cannot be captured")
        try:
            with failures(self._devices):
                if values is not None or not wait:
                    self._reset()
                yield
        except DeviceFailedError:
            if not self._stale:
                self._go_back(values, given)
            raise

    def _go_back(self, values: Any, given: bool) -> None:
        """Restore the previous values, without the graphs."""
        buffers, previous = self._commands.buffers, self._state in (PENDING, STATUS_REQUESTED, MUST_RESTORE)
        held = self._commands.values()
        if values is not None:
            new = np.asarray(values.get() if hasattr(values, "get") else values)
            previous = np.array_equal(self._pattern.gather(new) if given else new, held)
        if previous:
            held = self._commands.fetched(buffers.previous, held)
        self._state, self._unchecked = HELD, False
        self._host_is_stale()
        self._in_graphs, self._stale = (), True
        program, allowed = self._commands.program, self._device_memory
        with suppress(Exception):  # ignore errors of the devices: the CPU engine continues
            self._commands = CommandGraphs(program, allowed)
            stream = self._commands.begin()
            self._commands.send(stream, self._commands.buffers.values.pointer, held)
            with failures(self._devices):
                self._found = self._commands.factor_now(stream)
            self._accept(held)
            self._stale = False
        if self._stale:
            self._make_cpu(held)
            self._host = SOLVES

    def _reset(self) -> None:
        """New memory and graphs, if the previous ones cannot be used."""
        if self._stale:
            self._commands = CommandGraphs(self._commands.program, self._device_memory)
            self._commands.send(self._commands.begin(), self._commands.buffers.values.pointer, self._cpu.values())
            self._stale = False
