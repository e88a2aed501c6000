"""The supernodal engine's program: fronts, factored and solved with."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from ..kernels.launch import Buffer, Queue
from ..kernels.layout import record, struct
from ..matrix import Pattern
from ..plan import FRONT, Plan
from .buffers import GROUP, Buffers, Memory, Vectors
from .program import Program, address, addresses

CONTROL = 8  # words ahead of the counters of a solve
INVERSE_SCALARS = 16 * 20  # of the front or of the inverted block that a warp works on
# File, kernel and threads of a block by phase.
FRONT_KERNELS = (
    ("warp_fronts.cu", "factor_warps", 128),
    ("block_fronts.cu", "factor_small", 128),
    ("block_fronts.cu", "factor_blocks", 512),
)
LARGE_SOLVE_BLOCKS = 2  # of the solve with large fronts on a multiprocessor
TASK_BYTES = struct("solve_large.cu", "LargeSolveTask").itemsize


class FrontProgram(Program):
    """A plan of fronts in the memory of a device.

    Parameters
    ----------
    device : kernels.launch.Device
    plan : Plan
        For the limits of `device`.
    pattern : Pattern
    """

    def __init__(self, device: Any, plan: Plan, pattern: Pattern):
        super().__init__(device, pattern, np.dtype(plan.scalar), plan.cholesky)
        self.plan = plan
        width, height = plan.width.astype(np.int64), (plan.rows - plan.width).astype(np.int64)
        triangle = int((width * (width + 1) // 2 + width * height).sum())
        self.nnz = triangle if plan.cholesky else 2 * triangle
        self.flops = plan.flops
        self.factor_seconds, self.solve_seconds = plan.factor_seconds, plan.solve_seconds
        self.needed_bytes = needed_bytes(plan, pattern)
        # Pivots of the scaled matrix below these are perturbed, and may mean a singular matrix. Cholesky scales
        # nothing: its pivots must be positive.
        eps = float(np.finfo(self.dtype).eps)
        self.tiny = 0.0 if plan.cholesky else eps**0.5
        self.singular = 0.0 if plan.cholesky else plan.n * eps

    def prepare(self) -> None:
        files = {FRONT_KERNELS[phase][0] for phase in range(3) if (self.plan.phase == phase).any()}
        files |= {"solve_fronts.cu", "values.cu", "residual.cu"}
        files |= {"large_fronts.cu", "solve_large.cu"} if (self.plan.phase == 3).any() else set()
        self.device.prepare(sorted(files), self.dtype.char, self.cholesky)

    def factor_memory(self) -> Memory:
        plan, itemsize = self.plan, self.dtype.itemsize
        return Memory(
            {"factor": plan.factor_size * itemsize, "blocks": plan.block_size * itemsize},
            {"counters": 4 * plan.nf, "arrivals": 4 * plan.nf, "large_counters": 4 * plan.large_counters},
        )

    def vector_memory(self, capacity: int) -> Memory:
        plan, itemsize, below = self.plan, self.dtype.itemsize, max(1, self.plan.below.size)
        columns = 1 if capacity == 1 else GROUP
        groups = -(-capacity // columns)
        return Memory(
            {"work": plan.n * groups * columns * itemsize, "vectors": below * groups * columns * itemsize},
            {
                "counters": 4 * (CONTROL + 2 * groups * plan.nf),
                "progress": 16 * groups * self.large_fronts,
                "mail": 2 * (plan.n + below) * itemsize,
            },
        )

    @cached_property
    def _factor_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        return {
            "fronts": self.upload(plan.front_records),
            "start": self.upload(plan.start),
            "owner_ptr": self.upload(plan.owner_ptr),
            "items": self.upload(plan.items),
            "partial": self.upload(plan.partial),
            "entry_source": self.upload(plan.entry_source),
            "entry_place": self.upload(plan.entry_place),
            "entry_scale": self.upload(plan.entry_scale),
        }

    @cached_property
    def _large_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        shared = ("fronts", "entry_source", "entry_place", "entry_scale")
        return {
            **{name: self._factor_arrays[name] for name in shared},
            "large": self.upload(plan.large_front_bytes),
            "tasks": self.upload(plan.large_task_bytes),
            "piece_ptr": self.upload(plan.large_piece_ptr),
            "pieces": self.upload(plan.large_piece_bytes),
            "place": self.upload(plan.place),
        }

    @cached_property
    def _schedule(self) -> Any:
        return _core.make_solve_schedule(self.plan._core)

    @cached_property
    def _solve_arrays(self) -> dict[str, Buffer | None]:
        plan, schedule = self.plan, self._schedule
        return {
            "slots": self.upload(schedule.slot_bytes),
            "below": self.upload(plan.below),
            "piece_ptr": self.upload(schedule.piece_ptr),
            "pieces": self.upload(schedule.piece_bytes),
        }

    @property
    def large_fronts(self) -> int:
        """Fronts of phase 3."""
        return int(self._schedule.large_bytes.size) // struct("solve_large.cu", "LargeSolveFront").itemsize

    @cached_property
    def _solve_large_arrays(self) -> dict[str, Buffer | None]:
        schedule = self._schedule
        return {
            "fronts": self.upload(schedule.large_bytes),
            "forward": self.upload(schedule.large_forward_bytes),
            "backward": self.upload(schedule.large_backward_bytes),
        }

    @cached_property
    def _orders(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        plan = self.plan
        return [
            (self.upload(plan.row_perm), self.upload(plan.row_scale)),
            (self.upload(plan.col_perm), self.upload(plan.col_scale)),
        ]

    # ---- commands

    def factor(self, queue: Queue, buffers: Buffers, values: Buffer) -> None:
        for launch, early in zip(self.plan.launches, early_launches(self.plan), strict=True):
            self._factor_phase(queue, buffers, values, launch, early)

    def _factor_phase(self, queue: Queue, buffers: Buffers, values: Buffer, launch: np.ndarray, early: bool) -> None:
        phase, count, itemsize = int(launch["phase"]), int(launch["count"]), self.dtype.itemsize
        shared = {
            "values": values.pointer,
            "factor": buffers.own["factor"].pointer,
            "blocks": buffers.own["blocks"].pointer,
            "status": buffers.device_status.pointer,
            "tiny": self.tiny,
            "singular": self.singular,
        }
        if phase == 3:
            kernel = self.kernel("large_fronts.cu", "factor_large")
            arrays = {**self._large_arrays, "counters": buffers.own["large_counters"]}
            fields = {**addresses(arrays), **shared, "task_count": count}
            fields["tasks"] += struct("large_fronts.cu", "LargeTask").itemsize * int(launch["begin"])
            fields["counters"] += 4 * int(launch["scalars"])
            args = record(kernel.arguments, **fields)
            grid = self._blocks(count, 1, self.plan.large_blocks)
            queue.launch(kernel, grid, self.plan.large_threads, self.plan.large_shared_bytes, args)
            return
        file, name, threads = FRONT_KERNELS[phase]
        kernel = self.kernel(file, name)
        arrays = {**self._factor_arrays, "counters": buffers.own["counters"], "arrivals": buffers.own["arrivals"]}
        fields = {**addresses(arrays), **shared, "count": count, "walk": 1}
        fields["start"] += 4 * int(launch["begin"])
        if phase == 0:
            warps = threads // 32
            grid, shared_bytes = -(-count // warps), warps * (2 * FRONT.itemsize + INVERSE_SCALARS * itemsize)
        else:
            grid, shared_bytes = count, 256 + (INVERSE_SCALARS + int(launch["scalars"])) * itemsize
        queue.launch(kernel, grid, threads, shared_bytes, record(kernel.arguments, **fields), early)

    def solve(
        self, queue: Queue, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        middle = "_transposed" if trans and not self.cholesky else ""
        columns = 1 if nrhs == 1 else GROUP
        groups = -(-nrhs // columns)
        schedule = self._schedule
        into, out = self._orders[1 if middle else 0], self._orders[0 if middle else 1]
        fields = {
            **addresses(self._solve_arrays),
            "tickets": schedule.tickets,
            "groups": groups,
            "group_capacity": vectors.groups,
            "front_count": self.plan.nf,
            "perm_in": address(into[0]),
            "perm_out": address(out[0]),
            "scale_in": address(into[1]),
            "scale_out": address(out[1]),
            "factor": buffers.own["factor"].pointer,
            "b": b.pointer,
            "x": x.pointer,
            "ld": self.plan.n,
            "n": self.plan.n,
            "nrhs": nrhs,
            "conjugate": trans == (1 if self.cholesky else 2),
            "places": max(1, self.plan.below.size),
            "work": vectors.own["work"].pointer,
            "vectors": vectors.own["vectors"].pointer,
            "counters": vectors.own["counters"].pointer,
            "mail": vectors.own["mail"].pointer,
        }
        shared = 16 + (256 + 2 * (256 + 16)) * columns * self.dtype.itemsize
        grid = self._blocks(schedule.tickets * groups, 1, 1 if self.dtype.char == "D" else 2)
        file = "solve_transposed.cu" if middle else "solve_fronts.cu"
        forward, backward = (self.kernel(file, f"solve_{to}{middle}_{columns}") for to in ("forward", "backward"))
        args = record(forward.arguments, **fields)
        if schedule.tickets:
            queue.launch(forward, grid, 256, shared, args)
        if schedule.large_forward_bytes.size:
            self._solve_large(queue, vectors, args, bool(middle), columns)
        if schedule.tickets:
            queue.launch(backward, grid, 256, shared, args)

    def _solve_large(self, queue: Queue, vectors: Vectors, solve: np.ndarray, transposed: bool, columns: int) -> None:
        """Forward and backward with the fronts of phase 3."""
        schedule, itemsize, tile = self._schedule, self.dtype.itemsize, self.plan.large_tile
        forward, backward = (
            self.kernel("solve_large.cu", f"solve_large_{to}_{columns}") for to in ("forward", "backward")
        )
        counts = [schedule.large_forward_bytes.size // TASK_BYTES, schedule.large_backward_bytes.size // TASK_BYTES]
        args = record(
            forward.arguments,
            solve=solve,
            **addresses(self._solve_large_arrays),
            forward_count=counts[0],
            backward_count=counts[1],
            front_count=self.large_fronts,
            transposed=transposed,
            progress=vectors.own["progress"].pointer,
        )
        shared = 16 + 17 * tile * columns * itemsize
        for kernel, count in zip((forward, backward), counts, strict=True):
            grid = self._blocks(count * int(solve["groups"]), 1, LARGE_SOLVE_BLOCKS)
            queue.launch(kernel, grid, 256, shared, args)


def early_launches(plan: Plan) -> list[bool]:
    """Which launches may begin before the one ahead of them is done.

    Fronts of a block, where that one is of the same segment: they wait for their own children, and the end of the
    kernel for all that was launched before. Segments share memory.
    """
    segments = [
        int(np.searchsorted(plan.segment_ptr, plan.start[launch["begin"]], "right")) if launch["phase"] < 3 else -1
        for launch in plan.launches
    ]
    return [k > 0 and segments[k] == segments[k - 1] >= 0 for k in range(len(segments))]


def needed_bytes(plan: Plan, pattern: Pattern) -> int:
    """Device memory of the arrays of a plan and of a factor with one right-hand side at a time [bytes]."""
    arrays = (plan.front_records, plan.items, plan.entry_source, plan.entry_place, plan.entry_scale, plan.gather_source)
    itemsize = np.dtype(plan.scalar).itemsize
    scalars = plan.factor_size + plan.block_size + 2 * pattern.nnz + pattern.size + 6 * plan.n + 3 * plan.below.size
    return int(sum(array.nbytes for array in arrays) + scalars * itemsize + 12 * pattern.nnz + 8 * plan.below.size)
