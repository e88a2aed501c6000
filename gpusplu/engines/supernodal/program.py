"""The supernodal engine's program."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...cuda.stream import Buffer, Stream
from ...matrix import Pattern
from ..device.buffers import Buffers, Memory, Vectors
from ..device.program import Program
from .determinants import Determinants
from .fronts import Fronts
from .memory import factor_memory, missing_bytes, needed_bytes, vector_memory
from .plan import Plan


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
        # Cholesky scales nothing: its pivots must be positive.
        limits = (0.0, 0.0) if plan.cholesky else _core.small_pivots_of_fronts(self.dtype.char, plan.n)
        self.fronts = Fronts(device, plan, *limits)
        self.parts = (self.fronts,)

    @cached_property
    def needed_bytes(self) -> int:  # type: ignore[override]
        return needed_bytes(self.plan, self.pattern)

    def missing_bytes(self, usable: int) -> int:
        return missing_bytes(self.plan, self.pattern, usable)

    def factor_memory(self) -> Memory:
        return factor_memory(self.plan)

    def vector_memory(self, capacity: int) -> Memory:
        return vector_memory(self.plan, capacity)

    def ready_to_factor(self) -> None:
        self.fronts.ready_to_factor()

    def ready_to_solve(self, trans: int, nrhs: int) -> None:
        self.fronts.ready_to_solve(trans)

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.fronts.factor(stream, buffers, values)

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        self.fronts.solve(stream, buffers, vectors, trans, nrhs, b, x)

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        if self.plan.streamed:
            return None
        return self._determinants.slogdet(stream, buffers.own["factor"])

    @cached_property
    def _determinants(self) -> Determinants:
        return Determinants(self.device, self.plan)

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        self.fronts.factor_solve(stream, buffers, values, vectors, trans, nrhs)
