"""A plan on a device, and the launches that it stands for.

`Program` holds what all factors on one pattern and of one dtype share and never changes; what one factor writes is in
buffers.py. Every method with a queue only adds commands to it, so that graphs can be recorded of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..kernels.launch import Buffer, Kernel, Queue
from ..kernels.layout import record, struct
from ..matrix import Pattern
from ..plan import FRONT, Plan
from .buffers import GROUP, Buffers, Vectors

INVERSE_SCALARS = 16 * 20  # of the front or of the inverted block that a warp works on
# File, kernel and threads of a block by phase.
FRONT_KERNELS = (
    ("warp_fronts.cu", "factor_warps", 128),
    ("block_fronts.cu", "factor_small", 128),
    ("block_fronts.cu", "factor_blocks", 512),
)
TASK_BYTES = struct("solve_large.cu", "LargeSolveTask").itemsize


class Program:
    """A plan in the memory of a device.

    Parameters
    ----------
    device : kernels.launch.Device
    plan : Plan
        For the limits of `device`.
    pattern : Pattern

    Attributes
    ----------
    nnz : int
        Entries of the factors, zeros of merged fronts included.
    nbytes : int
        Device memory of the plan so far [bytes].
    """

    def __init__(self, device: Any, plan: Plan, pattern: Pattern):
        self.device, self.plan, self.pattern = device, plan, pattern
        self.dtype = np.dtype(plan.scalar)
        self.cholesky = int(plan.cholesky)
        self.nbytes = 0
        width, height = plan.width.astype(np.int64), (plan.rows - plan.width).astype(np.int64)
        triangle = int((width * (width + 1) // 2 + width * height).sum())
        self.nnz = triangle if plan.cholesky else 2 * triangle
        # Pivots of the scaled matrix below these are perturbed, and may mean a singular matrix. Cholesky scales
        # nothing: its pivots must be positive.
        eps = float(np.finfo(self.dtype).eps)
        self.tiny = 0.0 if plan.cholesky else eps**0.5
        self.singular = 0.0 if plan.cholesky else plan.n * eps

    def prepare(self) -> None:
        """Compile what a factorization and a solve need and the cache has not, several files at a time."""
        files = {FRONT_KERNELS[phase][0] for phase in range(3) if (self.plan.phase == phase).any()}
        files |= {"solve_fronts.cu", "values.cu", "residual.cu"}
        files |= {"large_fronts.cu", "solve_large.cu"} if (self.plan.phase == 3).any() else set()
        self.device.prepare(sorted(files), self.dtype.char, self.cholesky)

    def upload(self, array: np.ndarray | None) -> Buffer | None:
        """A copy on the device; None for an empty array."""
        if array is None or array.size == 0:
            return None
        self.nbytes += array.nbytes
        buffer: Buffer = self.device.upload(array)
        return buffer

    def kernel(self, file: str, name: str) -> Kernel:
        kernel: Kernel = self.device.kernel(file, name, self.dtype.char, self.cholesky)
        return kernel

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
    def _map(self) -> tuple[Buffer | None, Buffer | None]:
        """Source and source_ptr of the canonical values in the caller's."""
        core = self.pattern.core
        return (None, None) if core.identity else (self.upload(core.source), self.upload(core.source_ptr))

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

    @cached_property
    def _columns(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """Canonical A as it is: the rows of its transpose."""
        return self.upload(self.pattern.ptr), self.upload(self.pattern.ind), None

    @cached_property
    def _rows(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """The rows of A: pointers, columns, and which canonical value an entry is."""
        n, nnz = self.pattern.n, self.pattern.nnz
        rows = sp.csc_array((np.arange(nnz, dtype=np.int32), self.pattern.ind, self.pattern.ptr), shape=(n, n)).tocsr()
        arrays = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        ptr, ind, source = map(self.upload, arrays)
        return ptr, ind, source

    # ---- commands

    def take_values(self, queue: Queue, buffers: Buffers, new: bool) -> None:
        """Check the canonical values; `new`: those that the input buffer stands for, the ones before being kept."""
        kernel, count = self.kernel("values.cu", "gather_values" if new else "check_values"), self.pattern.nnz
        source, source_ptr = self._map
        args = record(
            kernel.arguments,
            **{"from": buffers.input.pointer},
            to=buffers.values.pointer,
            previous=buffers.previous.pointer,
            source=address(source),
            source_ptr=address(source_ptr),
            count=count,
            status=buffers.device_status.pointer,
        )
        queue.launch(kernel, self._blocks(count, 256, 8), 256, 64, args)

    def _blocks(self, work: int, threads: int, resident: int) -> int:
        """Blocks for `work` threads of work: no more than the device holds at once."""
        return max(1, min(-(-work // threads), resident * int(self.device.multiprocessors)))

    def factor(self, queue: Queue, buffers: Buffers, values: Buffer) -> None:
        """Factor canonical values."""
        for launch in self.plan.launches:
            self._factor_phase(queue, buffers, values, launch)

    def _factor_phase(self, queue: Queue, buffers: Buffers, values: Buffer, launch: np.ndarray) -> None:
        phase, count, itemsize = int(launch["phase"]), int(launch["count"]), self.dtype.itemsize
        shared = {
            "values": values.pointer,
            "factor": buffers.factor.pointer,
            "blocks": buffers.blocks.pointer,
            "status": buffers.device_status.pointer,
            "tiny": self.tiny,
            "singular": self.singular,
        }
        if phase == 3:
            kernel = self.kernel("large_fronts.cu", "factor_large")
            arrays = {**self._large_arrays, "counters": buffers.large_counters}
            fields = {**addresses(arrays), **shared, "task_count": count}
            fields["tasks"] += struct("large_fronts.cu", "LargeTask").itemsize * int(launch["begin"])
            fields["counters"] += 4 * int(launch["scalars"])
            args = record(kernel.arguments, **fields)
            grid = self._blocks(count, 1, self.plan.large_blocks)
            queue.launch(kernel, grid, self.plan.large_threads, self.plan.large_shared_bytes, args)
            return
        file, name, threads = FRONT_KERNELS[phase]
        kernel = self.kernel(file, name)
        arrays = {**self._factor_arrays, "counters": buffers.counters}
        fields = {**addresses(arrays), **shared, "count": count, "walk": 1}
        fields["start"] += 4 * int(launch["begin"])
        if phase == 0:
            warps = threads // 32
            grid, shared_bytes = -(-count // warps), warps * (2 * FRONT.itemsize + INVERSE_SCALARS * itemsize)
        else:
            grid, shared_bytes = count, 256 + (INVERSE_SCALARS + int(launch["scalars"])) * itemsize
        queue.launch(kernel, grid, threads, shared_bytes, record(kernel.arguments, **fields))

    def solve(
        self, queue: Queue, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        """op(A) X = B for columns that are n apart."""
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
            "factor": buffers.factor.pointer,
            "b": b.pointer,
            "x": x.pointer,
            "ld": self.plan.n,
            "n": self.plan.n,
            "nrhs": nrhs,
            "conjugate": trans == (1 if self.cholesky else 2),
            "places": max(1, self.plan.below.size),
            "work": vectors.work.pointer,
            "vectors": vectors.vectors.pointer,
            "counters": vectors.counters.pointer,
            "mail": vectors.mail.pointer,
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
            progress=vectors.progress.pointer,
        )
        gather = 256
        shared = 16 + (tile * tile + (max(gather, 8 * tile) + tile) * columns) * itemsize
        residents = (3, 1) if columns == 1 else (2, 2)  # blocks a multiprocessor
        for kernel, count, resident in zip((forward, backward), counts, residents, strict=True):
            grid = self._blocks(count * int(solve["groups"]), 1, resident)
            queue.launch(kernel, grid, 256, shared, args)

    def residual(self, queue: Queue, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int) -> None:
        """r = b - op(A) x and the norms of its backward error."""
        columns = 1 if nrhs == 1 else GROUP
        if self.cholesky:  # rows of A are the conjugates of its columns
            arrays, conjugate = self._columns, trans != 1
        else:
            arrays, conjugate = (self._columns if trans else self._rows), trans == 2
        kernel = self.kernel("residual.cu", f"measure_residual_{columns}")
        n, nnz = self.plan.n, self.pattern.nnz
        lanes_log2 = min(5, max(0, (-(-nnz // max(n, 1)) - 1).bit_length()))
        args = record(
            kernel.arguments,
            ptr=address(arrays[0]),
            ind=address(arrays[1]),
            source=address(arrays[2]),
            values=buffers.values.pointer,
            x=vectors.x.pointer,
            b=vectors.b.pointer,
            r=vectors.residual.pointer,
            ld=n,
            n=n,
            nrhs=nrhs,
            conjugate=conjugate,
            lanes_log2=lanes_log2,
            norms=vectors.norms.pointer,
            done=vectors.done.pointer,
            status=buffers.device_status.pointer,
            report=buffers.status.ctypes.data,  # page-locked, so it has the same address there
        )
        queue.launch(kernel, self._blocks(n << lanes_log2, 256, 8), 256, 128, args)

    def add_step(self, queue: Queue, buffers: Buffers, vectors: Vectors, nrhs: int) -> None:
        """x += step"""
        kernel, n = self.kernel("residual.cu", "add_step"), self.plan.n
        args = record(kernel.arguments, x=vectors.x.pointer, step=vectors.step.pointer, ld=n, n=n, nrhs=nrhs)
        queue.launch(kernel, self._blocks(n * nrhs, 256, 8), 256, 0, args)


def address(buffer: Buffer | None) -> int:
    """Null for what is not there."""
    return 0 if buffer is None else buffer.pointer


def addresses(buffers: dict[str, Buffer | None]) -> dict[str, int]:
    """`address` of each."""
    return {name: address(buffer) for name, buffer in buffers.items()}
