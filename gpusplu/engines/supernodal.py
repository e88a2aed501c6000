"""The supernodal engine's program: fronts, factored and solved with."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np

from ..cuda.layout import constant, record, struct
from ..cuda.stream import Buffer, Stream
from ..matrix import Pattern
from ..plans.fronts import SHARED, Plan
from .buffers import Buffers, Memory, Vectors
from .front_memory import (
    FACTOR_ARRAYS,
    LARGE_ARRAYS,
    LARGE_SOLVE_ARRAYS,
    ORDER_ARRAYS,
    SOLVE_ARRAYS,
    arrays_of,
    factor_memory,
    missing_bytes,
    needed_bytes,
    vector_memory,
)
from .front_solve import FrontSolve
from .program import Program, addresses
from .windows import Windows

DEPENDENT_TASKS = 20  # for a multiprocessor: the most of a launch of large fronts that is dependent
WARP_FRONTS = constant(SHARED, "WARP_FRONTS")  # of phase 0 that a block has
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")  # of the shared memory of a block
# File and kernel by phase.
FRONT_KERNELS = (
    ("fronts/warp_fronts.cu", "factor_warps"),
    ("fronts/block_fronts.cu", "factor_small"),
    ("fronts/block_fronts.cu", "factor_blocks"),
)


class FrontProgram(Program):
    """A plan of fronts in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
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
        self.n_windows, self.host_bytes = plan.streamed, plan.host_size * self.dtype.itemsize
        # Pivots of the scaled matrix below these are perturbed, and may mean a singular matrix. Cholesky scales
        # nothing: its pivots must be positive.
        eps = float(np.finfo(self.dtype).eps)
        self.tiny = 0.0 if plan.cholesky else eps**0.5
        self.singular = 0.0 if plan.cholesky else plan.n * eps

    @cached_property
    def needed_bytes(self) -> int:  # type: ignore[override]
        return needed_bytes(self.plan, self.pattern)

    def missing_bytes(self, usable: int) -> int:
        return missing_bytes(self.plan, self.pattern, usable)

    def prepare(self) -> None:
        files = {FRONT_KERNELS[phase][0] for phase in range(3) if (self.plan.phase == phase).any()}
        files |= {"fronts/solve_fronts.cu", "common/values.cu", "common/residual.cu"}
        files |= {"fronts/large_fronts.cu", "fronts/solve_large.cu"} if (self.plan.phase == 3).any() else set()
        self.device.prepare(sorted(files), self.dtype.char, self.cholesky)

    def factor_memory(self) -> Memory:
        return factor_memory(self.plan)

    def vector_memory(self, capacity: int) -> Memory:
        return vector_memory(self.plan, capacity)

    def _upload_all(self, names: dict[str, str]) -> dict[str, Buffer | None]:
        return {name: self.upload(array) for name, array in arrays_of(self.plan, names).items()}

    @cached_property
    def _factor_arrays(self) -> dict[str, Buffer | None]:
        return self._upload_all(FACTOR_ARRAYS)

    @cached_property
    def _large_arrays(self) -> dict[str, Buffer | None]:
        shared = ("fronts", "entry_source", "entry_place", "entry_scale")
        return {name: self._factor_arrays[name] for name in shared} | self._upload_all(LARGE_ARRAYS)

    @cached_property
    def solve_arrays(self) -> dict[str, Buffer | None]:
        return self._upload_all(SOLVE_ARRAYS)

    @cached_property
    def solve_large_arrays(self) -> dict[str, Buffer | None]:
        return self._upload_all(LARGE_SOLVE_ARRAYS)

    @cached_property
    def orders(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        found = self._upload_all(ORDER_ARRAYS)
        return [(found["row_perm"], found["row_scale"]), (found["col_perm"], found["col_scale"])]

    def _windows(self, stream: Stream, buffers: Buffers) -> Windows | None:
        """If the factor streams."""
        if not self.plan.streamed:
            return None
        return Windows(self.plan, stream, buffers.own["factor"], buffers.own["host_factor"])

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
        """Factor, solve, or both: what streams is then solved with forward before it leaves the device."""
        plan, windows, passed = self.plan, self._windows(stream, buffers), 0
        if values is not None:
            dependent = dependent_launches(plan)
            for segment in range(len(plan.segment_ptr) - 1):
                streams = windows if segment < plan.streamed else None
                if streams:
                    streams.open(segment)
                for k in range(plan.launch_ptr[segment], plan.launch_ptr[segment + 1]):
                    self._factor_phase(stream, buffers, values, plan.launches[k], dependent[k])
                if streams:
                    streams.save(segment)
                    if solve:
                        solve.forward(stream, segment)
                        streams.leave(segment)
            passed = plan.streamed
        if solve:
            ways = [(solve.forward, part) for part in range(passed, plan.solve_parts)]
            ways += [(solve.backward, part) for part in reversed(range(plan.solve_parts))]
            for way, part in ways:
                streams = windows if part < plan.streamed else None
                if streams:
                    streams.load(part)
                way(stream, part)
                if streams:
                    streams.leave(part)
        if windows:
            windows.close()

    def _factor_phase(
        self, stream: Stream, buffers: Buffers, values: Buffer, launch: np.ndarray, dependent: bool
    ) -> None:
        phase, count, threads, shared_bytes = (
            int(launch[name]) for name in ("phase", "count", "threads", "shared_bytes")
        )
        shared = {
            "values": values.pointer,
            "factor": buffers.own["factor"].pointer,
            "blocks": buffers.own["blocks"].pointer,
            "status": buffers.device_status.pointer,
            "tiny": self.tiny,
            "singular": self.singular,
        }
        if phase == 3:
            kernel = self.kernel("fronts/large_fronts.cu", "factor_large")
            arrivals = buffers.own["arrivals"] if dependent else None
            arrays = {**self._large_arrays, "counters": buffers.own["large_counters"], "arrivals": arrivals}
            fields = {**addresses(arrays), **shared, "task_count": count}
            fields["tasks"] += struct("shared/large_fronts.hpp", "LargeTask").itemsize * int(launch["begin"])
            fields["counters"] += 4 * int(launch["scalars"])
            args = record(kernel.arguments, **fields)
            resident = self.plan.large_blocks
            if dependent:
                resident, most = 1, self.plan.limits.shared_memory_bytes
                shared_bytes = max(shared_bytes, most // 2 + RESERVED_BYTES)
            stream.launch(kernel, self._blocks(count, 1, resident), threads, shared_bytes, args, dependent)
            return
        file, name = FRONT_KERNELS[phase]
        kernel = self.kernel(file, name)
        arrays = {**self._factor_arrays, "counters": buffers.own["counters"], "arrivals": buffers.own["arrivals"]}
        fields = {**addresses(arrays), **shared, "count": count, "walk": 1}
        fields["start"] += 4 * int(launch["begin"])
        grid = -(-count // WARP_FRONTS) if phase == 0 else count
        stream.launch(kernel, grid, threads, shared_bytes, record(kernel.arguments, **fields), dependent)


def dependent_launches(plan: Plan) -> list[bool]:
    """Which launches may begin before the one ahead of them is done.

    Where that one is of the same segment: fronts wait for their own children, and the end of the kernel for all that
    was launched before. Segments share memory. Large fronts of many tasks want all of the device, whose first free
    multiprocessors their blocks would crowd on; those of few take one block of each.
    """
    few = DEPENDENT_TASKS * plan.limits.multiprocessors
    dependent = []
    for first, end in itertools.pairwise(plan.launch_ptr.tolist()):
        dependent += [
            k > first and (launch["phase"] < 3 or launch["count"] <= few)
            for k, launch in enumerate(plan.launches[first:end], first)
        ]
    return dependent
