"""The launches of one solve with fronts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Kernel, Stream
from ..device.buffers import Buffers, Vectors
from ..device.part import address, addresses
from .memory import SHARED, TICKETS

if TYPE_CHECKING:
    from .fronts import Fronts

SLOTS = constant(SHARED, "SOLVE_SLOTS")  # records of a ticket
SLOT_BYTES = struct(SHARED, "SolveFront").itemsize
TASK_BYTES = struct(SHARED, "LargeSolveTask").itemsize
THREADS = constant(SHARED, "SOLVE_THREADS")


def solve_file(transposed: bool) -> str:
    """Of the kernels for small fronts."""
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
            "perm_in": address(into[0]),
            "perm_out": address(out[0]),
            "scale_in": address(into[1]),
            "scale_out": address(out[1]),
            "factor": buffers.own["factor"].pointer,
            "b": b.pointer,
            "x": x.pointer,
            "ld": plan.ld,
            "n": plan.n,
            "nrhs": nrhs,
            "conjugate": fronts.solves_conjugated(trans),
            "places": max(1, plan.below.size),
            "work": vectors.own["work"].pointer,
            "vectors": vectors.own["vectors"].pointer,
            "counters": vectors.own["counters"].pointer,
            "packets": vectors.own["packets"].pointer,
        }
        self._progress, self._last = vectors.own["progress"].pointer, plan.last_part

    def forward(self, stream: Stream, part: int) -> None:
        self._small(stream, part, "forward")
        self._large(stream, part, "forward")

    def backward(self, stream: Stream, part: int) -> None:
        self._large(stream, part, "backward")
        self._small(stream, part, "backward")

    def _tickets(self, part: int) -> int:
        return int(self._schedule.ticket_ptr[part + 1] - self._schedule.ticket_ptr[part])

    def _fields(self, part: int, ends: bool) -> dict[str, int]:
        fields = {
            **self._shared,
            "tickets": self._tickets(part),
            "control": self._control + 4 * TICKETS * part,
            "ends_solve": ends,
        }
        fields["slots"] += SLOTS * SLOT_BYTES * int(self._schedule.ticket_ptr[part])
        return fields

    def _small(self, stream: Stream, part: int, way: str) -> None:
        """Fronts of phases 0 to 2."""
        tickets, fronts = self._tickets(part), self._fronts
        if not tickets:
            return
        middle = "_transposed" if self._transposed else ""
        kernel = fronts.kernel(solve_file(self._transposed), f"solve_{way}{middle}_{self._suffix}")
        resident, shared_bytes = fronts.plan.solve_shape(self._columns)
        grid = fronts.blocks(tickets * self._groups, 1, resident)
        args = record(kernel.arguments, **self._fields(part, part == self._last))
        dependent = way == "backward"  # after a factorization, blocks that wait would crowd on a few multiprocessors
        stream.launch(kernel, grid, THREADS, shared_bytes, args, dependent)

    def _large(self, stream: Stream, part: int, way: str) -> None:
        """Fronts of phase 3."""
        fronts, schedule = self._fronts, self._schedule
        first, end = (getattr(schedule, f"{way}_ptr")[part : part + 2]).tolist()
        if first == end:
            return
        kernel: Kernel = fronts.kernel("fronts/solve_large.cu", f"solve_large_{way}_{self._suffix}")
        ends = part == self._last and not self._tickets(part)
        arrays = addresses(fronts.solve_large_arrays)
        arrays[way] += TASK_BYTES * first
        args = record(
            kernel.arguments,
            solve=record(kernel.arguments["solve"], **self._fields(part, ends)),
            **arrays,
            **{"forward_count": 0, "backward_count": 0, f"{way}_count": end - first},
            front_count=int(np.count_nonzero(fronts.plan.is_large)),
            transposed=self._transposed,
            progress=self._progress,
        )
        resident, shared_bytes = fronts.plan.large_solve_shape(way == "forward", self._columns)
        grid = fronts.blocks((end - first) * self._groups, 1, resident)
        stream.launch(kernel, grid, THREADS, shared_bytes, args, dependent=True)
