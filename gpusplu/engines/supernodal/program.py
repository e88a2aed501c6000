"""The supernodal engine's program."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cuda.nvrtc import HERMITIAN
from ...cuda.stream import Buffer, Stream
from ..device.buffers import Buffers, Memory, Vectors
from ..device.program import Program
from .diagonal import Determinants, Signs
from .fronts import Fronts, kind_of_plan
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
        self._signs = Signs(device, plan) if self.kind == HERMITIAN and not plan.streamed else None
        self.parts = (self.fronts, self._signs) if self._signs else (self.fronts,)

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

    def signs_of_pivots(self, stream: Stream, buffers: Buffers) -> tuple[int, int, int] | None:
        return self._signs.count(stream, buffers.own["factor"]) if self._signs else None

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        if self.plan.streamed or self.plan.ldlt:
            return None
        return self._determinants.slogdet(stream, buffers.own["factor"])

    @cached_property
    def _determinants(self) -> Determinants:
        return Determinants(self.device, self.plan)

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        self.fronts.factor_solve(stream, buffers, values, vectors, trans, nrhs)
