"""Fronts of a plan on a device, their factorization and solves, and the supernodal engine's program, which consists of
them; crisscross has a front too. Determinants and inertia are those of the inverted diagonal blocks.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cuda.layout import constant, record, struct
from ...cuda.nvrtc import HERMITIAN, kernel_kind
from ...cuda.stream import Buffer, Stream
from ..device.buffers import Buffers, Memory, Solve
from ..device.interrupted import outliving
from ..device.program import Part, Program, address, joined, outer_determinant
from .memory import (
    FACTOR_ARRAYS,
    SHARED,
    SOLVE_ARRAYS,
    TICKETS,
    arrays_of,
    factor_memory,
    missing_bytes,
    needed_bytes,
    vector_memory,
)
from .plan import LARGE, Plan
from .plan import SHARED as FRONTS

# ---- Factors that stream


class Copies:
    """Copies of one factor while its commands are added to a stream.

    Parameters
    ----------
    plan : Plan
        That streams.
    stream : Stream
        Of the kernels, of a graph.
    factor, host : Buffer
        The arena, and the segments on the host.
    """

    def __init__(self, plan: Plan, stream: Stream, factor: Buffer, host: Buffer):
        self._stream, self._side = stream, stream.fork()
        itemsize = np.dtype(plan.scalar).itemsize
        sizes, places = plan.segment_size * itemsize, plan.segment_place * itemsize
        self._nbytes = sizes[: plan.streamed].tolist()
        self._begin = places[: plan.streamed].tolist()
        self._device = [factor.pointer + place for place in self._begin]
        self._host = (host.pointer + np.cumsum(sizes) - sizes).tolist()
        self._held: dict[int, list[Any]] = {}  # segments on the device: events after which they may be overwritten

    def _evict(self, segment: int) -> list[Any]:
        """Free a buffer; the events after which it is free."""
        begin, end = self._begin[segment], self._begin[segment] + self._nbytes[segment]
        met = [s for s in self._held if self._begin[s] < end and begin < self._begin[s] + self._nbytes[s]]
        return [event for s in met for event in self._held.pop(s)]

    def open(self, segment: int) -> None:
        """Later kernels write this segment."""
        for event in self._evict(segment):
            self._stream.wait(event)

    def save(self, segment: int) -> None:
        """The kernels have written it; copy it to the host."""
        self._side.wait(self._stream.record())
        self._side.copy(self._host[segment], self._device[segment], self._nbytes[segment])
        self._held[segment] = [self._side.record()]

    def load(self, segment: int) -> None:
        """Later kernels read this segment."""
        if segment in self._held:
            return
        for event in self._evict(segment):
            self._side.wait(event)
        self._side.copy(self._device[segment], self._host[segment], self._nbytes[segment])
        self._stream.wait(self._side.record())

    def leave(self, segment: int) -> None:
        """The kernels have read it."""
        self._held.setdefault(segment, []).append(self._stream.record())

    def close(self) -> None:
        """Later commands wait for all copies."""
        self._stream.join(self._side)


# ---- The launches of one solve with fronts

SLOTS = constant(SHARED, "SOLVE_SLOTS")  # records of a ticket
SLOT_BYTES = struct(SHARED, "SolveFront").itemsize
TASK_BYTES = struct(SHARED, "LargeSolveTask").itemsize
THREADS = constant(SHARED, "SOLVE_THREADS")


def solve_file(transposed: bool) -> str:
    """File of the kernels for small fronts."""
    return "fronts/solve_transposed.cu" if transposed else "fronts/solve_fronts.cu"


class FrontSolve:
    """A solve, part by part (core/plan/fronts/solve_schedule.hpp).

    Every part is a launch for small fronts and one for large ones, where it has such; forward the small ones come
    first, backward the large ones.
    """

    def __init__(self, fronts: Fronts, buffers: Buffers, solve: Solve):
        vectors, trans, nrhs, b, x = solve
        self._fronts, plan = fronts, fronts.plan
        self._schedule = plan.solve_schedule
        self._columns = plan.solve_columns(nrhs)
        self._suffix = "1" if nrhs == 1 else "several"
        self._groups = -(-nrhs // self._columns)
        self._transposed = bool(trans and not fronts.one_triangle)
        into, out = fronts.orders[self._transposed], fronts.orders[not self._transposed]
        self._control = vectors.own["control"].pointer
        self._shared = {
            "groups": self._groups,
            "group_capacity": vectors.groups,
            "front_count": plan.nf,
            "perm_in": into[0],
            "perm_out": out[0],
            "scale_in": into[1],
            "scale_out": out[1],
            "factor": buffers.own["factor"],
            "b": b,
            "x": x,
            "ld": plan.ld,
            "n": plan.n,
            "nrhs": nrhs,
            "conjugate": fronts.solves_conjugated(trans),
            "places": max(1, plan.below.size),
        }
        self._known, self._last = (self._shared, fronts.solve_arrays, vectors.own), plan.last_part

    def forward(self, stream: Stream, part: int) -> None:
        self._small(stream, part, "forward")
        self._large(stream, part, "forward")

    def backward(self, stream: Stream, part: int) -> None:
        self._large(stream, part, "backward")
        self._small(stream, part, "backward")

    def _tickets(self, part: int) -> int:
        return int(self._schedule.ticket_ptr[part + 1] - self._schedule.ticket_ptr[part])

    def _fields(self, part: int, ends: bool) -> dict[str, Any]:
        return {
            "slots": address(
                self._fronts.solve_arrays["slots"], SLOTS * SLOT_BYTES * int(self._schedule.ticket_ptr[part])
            ),
            "tickets": self._tickets(part),
            "control": self._control + 4 * TICKETS * part,
            "ends_solve": ends,
        }

    def _small(self, stream: Stream, part: int, direction: str) -> None:
        """Fronts of phases 0 to 2."""
        tickets, fronts = self._tickets(part), self._fronts
        if not tickets:
            return
        middle = "_transposed" if self._transposed else ""
        name = f"solve_{direction}{middle}_{self._suffix}"
        resident, shared_bytes = fronts.plan.solve_shape(self._columns)
        shape = fronts.blocks(tickets * self._groups, 1, resident), THREADS, shared_bytes
        early = direction == "backward"  # after a factorization, waiting blocks would crowd a few multiprocessors
        fields = self._fields(part, part == self._last)
        fronts.launch(stream, solve_file(self._transposed), name, shape, self._known, early, **fields)

    def _large(self, stream: Stream, part: int, direction: str) -> None:
        """Fronts of phase 3."""
        fronts, schedule = self._fronts, self._schedule
        first, end = (getattr(schedule, f"{direction}_ptr")[part : part + 2]).tolist()
        if first == end:
            return
        file, name = "fronts/solve_large.cu", f"solve_large_{direction}_{self._suffix}"
        ends = part == self._last and not self._tickets(part)
        arrays = fronts.solve_arrays
        tasks = {direction: address(arrays[direction], TASK_BYTES * first), f"{direction}_count": end - first}
        resident, shared_bytes = fronts.plan.large_solve_shape(direction == "forward", self._columns)
        fronts.launch(
            stream,
            file,
            name,
            (fronts.blocks((end - first) * self._groups, 1, resident), THREADS, shared_bytes),
            (tasks, {"forward_count": 0, "backward_count": 0}, *self._known),
            True,
            solve=record(fronts.kernel(file, name).arguments["solve"], *self._known, **self._fields(part, ends)),
            front_count=int(np.count_nonzero(fronts.plan.is_large)),
            transposed=self._transposed,
        )


DEPENDENT_TASKS = 20  # per multiprocessor: most tasks of a launch of large fronts that begins early
WARP_FRONTS = constant(SHARED, "WARP_FRONTS")  # of phase 0 that a block has
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")  # of the shared memory of a block
LARGE_TASK = struct(FRONTS, "LargeTask")
# File and kernel by phase.
FRONT_KERNELS = (
    ("fronts/warp_fronts.cu", "factor_warps"),
    ("fronts/block_fronts.cu", "factor_small"),
    ("fronts/block_fronts.cu", "factor_blocks"),
)


class Fronts(Part):
    """A plan of fronts in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : Plan
        For the limits of `device`.
    tiny, singular : float
        Pivots of the scaled matrix below these are perturbed, and may mean a singular matrix.
    hermitian : bool, optional
        False of LDL^T of a complex symmetric matrix.
    """

    def __init__(self, device: Any, plan: Plan, tiny: float, singular: float, hermitian: bool = True):
        super().__init__(device, np.dtype(plan.scalar), kind_of_plan(plan, hermitian))
        self.plan, self.tiny, self.singular = plan, tiny, singular

    @property
    def files(self) -> tuple[str, ...]:
        return (*self._factor_files, solve_file(False), *(["fronts/solve_large.cu"] if self._has_large else []))

    @cached_property
    def _has_large(self) -> bool:
        return bool(self.plan.is_large.any())

    @property
    def _factor_files(self) -> list[str]:
        files = {FRONT_KERNELS[phase][0] for phase in range(LARGE) if (self.plan.phase == phase).any()}
        return sorted(files | ({"fronts/large_fronts.cu"} if self._has_large else set()))

    _factor_arrays = cached_property(lambda self: self.upload_all(arrays_of(self.plan, FACTOR_ARRAYS)))
    solve_arrays = cached_property(lambda self: self.upload_all(arrays_of(self.plan, SOLVE_ARRAYS)))
    orders = cached_property(lambda self: self.upload_orders(self.plan))

    def _copies(self, stream: Stream, buffers: Buffers) -> Copies | None:
        """Copies if the factor streams, else None."""
        if not self.plan.streamed:
            return None
        return Copies(self.plan, stream, buffers.own["factor"], buffers.own["host_factor"])

    # ---- commands

    def run(
        self, stream: Stream, buffers: Buffers, values: Buffer | None = None, solve: FrontSolve | None = None
    ) -> None:
        """Factor, solve, or both: streamed segments then get their forward solve before they leave the device."""
        plan, copies, passed = self.plan, self._copies(stream, buffers), 0
        if values is not None:
            for segment in range(len(plan.segment_ptr) - 1):
                streams = copies if segment < plan.streamed else None
                if streams:
                    streams.open(segment)
                self.factor_segment(stream, buffers, values, segment)
                if streams:
                    streams.save(segment)
                    if solve:
                        solve.forward(stream, segment)
                        streams.leave(segment)
            passed = plan.streamed
        if solve:
            sweeps = [(solve.forward, part) for part in range(passed, plan.solve_parts)]
            sweeps += [(solve.backward, part) for part in reversed(range(plan.solve_parts))]
            for sweep, part in sweeps:
                streams = copies if part < plan.streamed else None
                if streams:
                    streams.load(part)
                sweep(stream, part)
                if streams:
                    streams.leave(part)
        if copies:
            copies.close()

    def factor_segment(self, stream: Stream, buffers: Buffers, values: Buffer, segment: int) -> None:
        for k in range(*self.plan.launch_ptr[segment : segment + 2].tolist()):
            self._factor_phase(stream, buffers, values, self.plan.launches[k], self._dependent[k])

    def factor_tasks(
        self, stream: Stream, buffers: Buffers, values: Buffer, segment: int, begin: int, count: int
    ) -> None:
        """Some tasks of a segment that is one large front."""
        launch = self.plan.launches[self.plan.launch_ptr[segment]].copy()
        launch["begin"], launch["count"] = begin, count
        self._factor_phase(stream, buffers, values, launch, False)

    @cached_property
    def _dependent(self) -> list[bool]:
        return dependent_launches(self.plan)

    def _factor_phase(
        self, stream: Stream, buffers: Buffers, values: Buffer, launch: np.ndarray, dependent: bool
    ) -> None:
        phase, count, threads, shared_bytes = (
            int(launch[name]) for name in ("phase", "count", "threads", "shared_bytes")
        )
        begin, arrays, own = int(launch["begin"]), self._factor_arrays, buffers.own
        fields = {"values": values, "status": buffers.device_status, "tiny": self.tiny, "singular": self.singular}
        if phase == LARGE:
            fields |= {
                "tasks": address(arrays["tasks"], LARGE_TASK.itemsize * begin),
                "task_count": count,
                "counters": address(own["large_counters"], 4 * int(launch["scalars"])),
                "arrivals": own["arrivals"] if dependent else None,
            }
            resident = self.plan.large_blocks
            if dependent:
                resident, most = 1, self.plan.limits.shared_memory_bytes
                shared_bytes = max(shared_bytes, most // 2 + RESERVED_BYTES)
            shape = self.blocks(count, 1, resident), threads, shared_bytes
            self.launch(stream, "fronts/large_fronts.cu", "factor_large", shape, (arrays, own), dependent, **fields)
            return
        fields |= {"start": address(arrays["start"], 4 * begin), "count": count}
        shape = -(-count // WARP_FRONTS) if phase == 0 else count, threads, shared_bytes
        self.launch(stream, *FRONT_KERNELS[phase], shape, (arrays, own), dependent, **fields)


def kind_of_plan(plan: Plan, hermitian: bool) -> int:
    """Kind of factorization, as kernels number kinds."""
    return kernel_kind("ldlt" if plan.ldlt else "cholesky" if plan.cholesky else "lu", hermitian)


def dependent_launches(plan: Plan) -> list[bool]:
    """Which launches may begin before the previous one is done.

    Only within a segment: fronts wait for their own children, and the end of the kernel for all earlier launches.
    Segments share memory. Large fronts of many tasks need the whole device, and early blocks would crowd its first free
    multiprocessors; those of few tasks take one block each.
    """
    few = DEPENDENT_TASKS * plan.limits.multiprocessors
    dependent = []
    for first, end in itertools.pairwise(plan.launch_ptr.tolist()):
        dependent += [
            k > first and (launch["phase"] < LARGE or launch["count"] <= few)
            for k, launch in enumerate(plan.launches[first:end], first)
        ]
    return dependent


# ---- Diagonal blocks of factors

DIAGONAL = "fronts/diagonal.cu"
PANEL, DIAGONAL_THREADS = constant(FRONTS, "PANEL"), constant(DIAGONAL, "DIAGONAL_THREADS")
BLOCK = struct(DIAGONAL, "DiagonalBlock")


def are_tiles(plan: Plan) -> np.ndarray:
    """Which of the diagonal blocks are those of large fronts."""
    return np.repeat(plan.is_large, blocks_of(plan)[1])


def blocks_of(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Order of the diagonal blocks of each front, except the last one, and their number."""
    size = np.where(plan.is_large, int(plan.large_tile), PANEL)
    return size, -(-np.asarray(plan.width, dtype=np.int64) // size)


def diagonal_blocks(plan: Plan) -> np.ndarray:
    """Type BLOCK: panels of fronts of phases before the last, tiles of large ones, front by front."""
    width, rows = (np.asarray(of, dtype=np.int64) for of in (plan.width, plan.rows))
    large, (size, count) = plan.is_large, blocks_of(plan)
    front = np.repeat(np.arange(plan.nf), count)
    k = np.arange(len(front)) - np.repeat(np.cumsum(count) - count, count)  # among the front's blocks
    panels = plan.factor_entries - count * size * size  # of large fronts, ahead of the tiles
    found = np.zeros(len(front), BLOCK)
    found["ld"] = np.where(large, size, rows)[front]
    step = np.where(large, size * size, PANEL * (rows + 1))
    found["at"] = (np.asarray(plan.factor_offset) + np.where(large, panels, 0))[front] + k * step[front]
    found["order"] = np.minimum(size[front], width[front] - k * size[front])
    return found


COUNTS = constant(DIAGONAL, "INERTIA_COUNTS")
LEAST = 1e3  # eigenvalues of a block below this many roundings of its largest entry may have either sign


class Diagonal(Part):
    """Kernels that read the diagonal blocks of factors by one plan that does not stream."""

    files = (DIAGONAL,)

    def __init__(self, device: Any, plan: Plan):
        super().__init__(device, np.dtype(plan.scalar), plan.cholesky)
        self._plan = plan

    @cached_property
    def _blocks(self) -> tuple[Buffer | None, np.ndarray]:
        """On the device, and type BLOCK."""
        blocks = diagonal_blocks(self._plan)
        return self.upload(blocks), blocks

    @cached_property
    def _outer(self) -> tuple[float, float]:
        """The part of a determinant that is the same for all values."""
        return outer_determinant(self._plan)

    def _launch(self, stream: Stream, name: str, **fields: Any) -> None:
        """Launch a kernel, after its arguments have been uploaded."""
        on_device, blocks = self._blocks
        count, order = len(blocks), int(blocks["order"].max())
        self.device.own_stream().synchronize()
        shape = self.blocks(count, 1, 16), DIAGONAL_THREADS, order * order * self.dtype.itemsize
        self.launch(stream, DIAGONAL, name, shape, blocks=on_device, count=count, **fields)

    def slogdet(self, stream: Stream, factor: Buffer) -> tuple[Any, float]:
        """Sign and logarithm of the modulus of the determinant of A; waits."""
        count, wide = len(self._blocks[1]), np.dtype("D" if self.dtype.kind == "c" else "d")
        logs, signs = np.empty(count), np.empty(count, wide)
        out = self.device.empty(logs.nbytes + signs.nbytes)
        fields = {"factor": factor, "signs": out, "logs": out.pointer + signs.nbytes}
        self._launch(stream, "block_determinants", **fields)
        with outliving(self.device, out):
            stream.read(signs, out.pointer, signs.nbytes)
            stream.read(logs, out.pointer + signs.nbytes, logs.nbytes)
        sign, shift = self._outer
        if self._plan.cholesky:  # for large fronts it is the inverted triangle
            return 1.0, shift - float((logs * np.where(are_tiles(self._plan), 2, 1)).sum())
        return sign * np.conj(joined(signs)), shift - float(logs.sum())

    def signs(self, stream: Stream, factor: Buffer) -> tuple[int, int, int]:
        """How many eigenvalues of Hermitian D are positive, negative, and too small to tell; waits."""
        sums, found = self.device.zeros(4 * COUNTS), np.zeros(COUNTS, np.uint32)
        least = LEAST * np.finfo(self.dtype).eps
        self._launch(stream, "count_signs", factor=factor, least=least, counts=sums)
        with outliving(self.device, sums):
            stream.read(found, sums.pointer, found.nbytes)
        positive, negative, small = found.tolist()
        return positive, negative, small


class FrontProgram(Program):
    """A plan of fronts in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : Plan
        For the limits of `device`.
    pattern : Pattern
    hermitian : bool, optional
        False of LDL^T of a complex symmetric matrix.
    pivots : ndarray, optional
        The order of the CPU engine's pivots, if the plan is for it.
    """

    def __init__(
        self, device: Any, plan: Plan, pattern: Pattern, hermitian: bool = True, pivots: np.ndarray | None = None
    ):
        super().__init__(device, pattern, np.dtype(plan.scalar), kind_of_plan(plan, hermitian))
        self.plan, self._pivots = plan, pivots
        width, height = plan.width.astype(np.int64), (plan.rows - plan.width).astype(np.int64)
        triangle = int((width * (width + 1) // 2 + width * height).sum())
        self.nnz = triangle if plan.one_triangle else 2 * triangle
        self.flops = plan.flops
        self.factor_seconds, self.solve_seconds = plan.factor_seconds, plan.solve_seconds
        self.n_windows, self.host_bytes = plan.streamed, plan.host_size * self.dtype.itemsize
        self.fronts = Fronts(device, plan, *self.small_pivots(), hermitian)
        self.diagonal = Diagonal(device, plan)
        self.has_signs = self.kind == HERMITIAN and not plan.streamed
        self.parts = (self.fronts, self.diagonal) if self.has_signs else (self.fronts,)

    def small_pivots(self) -> tuple[float, float]:
        """Pivots below the first are perturbed, pivots below the second may mean a singular matrix."""
        if self.plan.cholesky:  # scales nothing: its pivots must be positive
            return 0.0, 0.0
        perturbed, tiny = _core.small_pivots_of_fronts(self.dtype.char, self.n)
        # LDL^T has no perturbed pivots and accepts small ones: growth shows whether they were too small.
        return (tiny, tiny) if self.plan.ldlt else (perturbed, tiny)

    def has_pivots_of(self, cpu: Any) -> bool:
        return self._pivots is not None and np.array_equal(self._pivots, cpu.pivot_columns)

    @cached_property
    def needed_bytes(self) -> int:  # type: ignore[override]
        return needed_bytes(self.plan, self.pattern)

    def missing_bytes(self, usable: int) -> int:
        return missing_bytes(self.plan, self.pattern, usable)

    def factor_memory(self) -> Memory:
        return factor_memory(self.fronts.plan)

    def vector_memory(self, capacity: int) -> Memory:
        return vector_memory(self.fronts.plan, capacity)

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.fronts.run(stream, buffers, values)

    def solve(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        self.fronts.run(stream, buffers, solve=FrontSolve(self.fronts, buffers, solve))

    def signs_of_pivots(self, stream: Stream, buffers: Buffers) -> tuple[int, int, int] | None:
        return self.diagonal.signs(stream, buffers.own["factor"]) if self.has_signs else None

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        if self.plan.streamed or self.plan.ldlt:
            return None
        return self.diagonal.slogdet(stream, buffers.own["factor"])

    def factor_solve(self, stream: Stream, buffers: Buffers, values: Buffer, solve: Solve) -> None:
        self.fronts.run(stream, buffers, values, FrontSolve(self.fronts, buffers, solve))
