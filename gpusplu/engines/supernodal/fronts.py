"""Fronts of a plan on a device: their factorization and solves.

They are the whole of the supernodal engine's program (program.py), and the trailing block of crisscross'.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import constant, record, struct
from ...cuda.nvrtc import kernel_kind
from ...cuda.stream import Buffer, Stream
from ..device.buffers import Buffers, Vectors
from ..device.program import Part, addresses
from .memory import (
    FACTOR_ARRAYS,
    LARGE_ARRAYS,
    LARGE_SOLVE_ARRAYS,
    ORDER_ARRAYS,
    SHARED,
    SOLVE_ARRAYS,
    TICKETS,
    arrays_of,
)
from .plan import LARGE, Plan


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
    """op(A) X = B for columns that are n apart, part by part (core/plan/fronts/solve_schedule.hpp).

    Every part is a launch for small fronts and one for large ones, where it has such; forward the small ones come
    first, backward the large ones.
    """

    def __init__(
        self,
        fronts: Fronts,
        buffers: Buffers,
        vectors: Vectors,
        trans: int,
        nrhs: int,
        b: Buffer,
        x: Buffer,
    ):
        self._fronts, plan = fronts, fronts.plan
        self._schedule = plan.solve_schedule
        self._columns = plan.solve_columns(nrhs)
        self._suffix = "1" if nrhs == 1 else "several"
        self._groups = -(-nrhs // self._columns)
        self._transposed = bool(trans and not fronts.one_triangle)
        into, out = fronts.orders[self._transposed], fronts.orders[not self._transposed]
        self._control = vectors.own["control"].pointer
        self._shared = {
            **addresses(fronts.solve_arrays),
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
            **{name: vectors.own[name] for name in ("work", "vectors", "counters", "packets")},
        }
        self._progress, self._last = vectors.own["progress"], plan.last_part

    def forward(self, stream: Stream, part: int) -> None:
        self._small(stream, part, "forward")
        self._large(stream, part, "forward")

    def backward(self, stream: Stream, part: int) -> None:
        self._large(stream, part, "backward")
        self._small(stream, part, "backward")

    def _tickets(self, part: int) -> int:
        return int(self._schedule.ticket_ptr[part + 1] - self._schedule.ticket_ptr[part])

    def _fields(self, part: int, ends: bool) -> dict[str, Any]:
        fields = {
            **self._shared,
            "tickets": self._tickets(part),
            "control": self._control + 4 * TICKETS * part,
            "ends_solve": ends,
        }
        fields["slots"] += SLOTS * SLOT_BYTES * int(self._schedule.ticket_ptr[part])
        return fields

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
        fronts.launch(stream, solve_file(self._transposed), name, shape, early, **fields)

    def _large(self, stream: Stream, part: int, direction: str) -> None:
        """Fronts of phase 3."""
        fronts, schedule = self._fronts, self._schedule
        first, end = (getattr(schedule, f"{direction}_ptr")[part : part + 2]).tolist()
        if first == end:
            return
        file, name = "fronts/solve_large.cu", f"solve_large_{direction}_{self._suffix}"
        ends = part == self._last and not self._tickets(part)
        arrays = addresses(fronts.solve_large_arrays)
        arrays[direction] += TASK_BYTES * first
        resident, shared_bytes = fronts.plan.large_solve_shape(direction == "forward", self._columns)
        fronts.launch(
            stream,
            file,
            name,
            (fronts.blocks((end - first) * self._groups, 1, resident), THREADS, shared_bytes),
            True,
            solve=record(fronts.kernel(file, name).arguments["solve"], **self._fields(part, ends)),
            **arrays,
            **{"forward_count": 0, "backward_count": 0, f"{direction}_count": end - first},
            front_count=int(np.count_nonzero(fronts.plan.is_large)),
            transposed=self._transposed,
            progress=self._progress,
        )


DEPENDENT_TASKS = 20  # per multiprocessor: most tasks of a launch of large fronts that begins early
WARP_FRONTS = constant(SHARED, "WARP_FRONTS")  # of phase 0 that a block has
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")  # of the shared memory of a block
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

    @cached_property
    def _factor_arrays(self) -> dict[str, Buffer | None]:
        return self.upload_all(arrays_of(self.plan, FACTOR_ARRAYS))

    @cached_property
    def _large_arrays(self) -> dict[str, Buffer | None]:
        shared = ("fronts", "entry_source", "entry_place", "entry_scale")
        own = self.upload_all(arrays_of(self.plan, LARGE_ARRAYS))
        return {name: self._factor_arrays[name] for name in shared} | own

    @cached_property
    def solve_arrays(self) -> dict[str, Buffer | None]:
        return self.upload_all(arrays_of(self.plan, SOLVE_ARRAYS))

    @cached_property
    def solve_large_arrays(self) -> dict[str, Buffer | None]:
        return self.upload_all(arrays_of(self.plan, LARGE_SOLVE_ARRAYS))

    @cached_property
    def orders(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        found = self.upload_all(arrays_of(self.plan, ORDER_ARRAYS))
        return [(found["row_perm"], found["row_scale"]), (found["col_perm"], found["col_scale"])]

    def _copies(self, stream: Stream, buffers: Buffers) -> Copies | None:
        """Copies if the factor streams, else None."""
        if not self.plan.streamed:
            return None
        return Copies(self.plan, stream, buffers.own["factor"], buffers.own["host_factor"])

    # ---- commands

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self._run(stream, buffers, values, None)

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        self._run(stream, buffers, None, FrontSolve(self, buffers, vectors, trans, nrhs, b, x))

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        self._run(stream, buffers, values, FrontSolve(self, buffers, vectors, trans, nrhs, vectors.b, vectors.x))

    def _run(self, stream: Stream, buffers: Buffers, values: Buffer | None, solve: FrontSolve | None) -> None:
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
        shared = {
            "values": values,
            "factor": buffers.own["factor"],
            "blocks": buffers.own["blocks"],
            "status": buffers.device_status,
            "tiny": self.tiny,
            "singular": self.singular,
        }
        if phase == LARGE:
            arrivals = buffers.own["arrivals"] if dependent else None
            arrays = {**self._large_arrays, "counters": buffers.own["large_counters"], "arrivals": arrivals}
            fields = {**addresses(arrays), **shared, "task_count": count}
            fields["tasks"] += struct("shared/fronts.hpp", "LargeTask").itemsize * int(launch["begin"])
            fields["counters"] += 4 * int(launch["scalars"])
            resident = self.plan.large_blocks
            if dependent:
                resident, most = 1, self.plan.limits.shared_memory_bytes
                shared_bytes = max(shared_bytes, most // 2 + RESERVED_BYTES)
            shape = self.blocks(count, 1, resident), threads, shared_bytes
            self.launch(stream, "fronts/large_fronts.cu", "factor_large", shape, dependent, **fields)
            return
        arrays = {**self._factor_arrays, "counters": buffers.own["counters"], "arrivals": buffers.own["arrivals"]}
        fields = {**addresses(arrays), **shared, "count": count, "walk": 1}
        fields["start"] += 4 * int(launch["begin"])
        grid = -(-count // WARP_FRONTS) if phase == 0 else count
        self.launch(stream, *FRONT_KERNELS[phase], (grid, threads, shared_bytes), dependent, **fields)


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
