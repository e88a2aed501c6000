"""The common part of the programs of the column engines."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.model import seconds
from ...cost.table import shipped
from ...cuda.stream import Buffer, Stream
from ..device.buffers import STATUS, Buffers, Memory, Vectors
from ..device.interrupted import outliving
from ..device.program import Part, Program, joined, outer_determinant
from .arrays import ColumnArrays
from .plan import ColumnPlan
from .solve import ColumnSolve


class ColumnProgram(Program):
    """A plan of columns in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    pattern : Pattern
    dtype : dtype
    pivot_threshold : float
        Threshold by which the CPU engine chose the pivots.
    """

    name: ClassVar[str]
    plan: ColumnPlan
    arrays: ColumnArrays
    solution: ColumnSolve

    def __init__(self, device: Any, plan: ColumnPlan, pattern: Pattern, dtype: np.dtype, pivot_threshold: float = 0.1):
        super().__init__(device, pattern, dtype)
        # The original orders: columns may be rearranged.
        self._pivots = plan.row_perm, plan.col_perm, plan.row_scale, plan.col_scale
        self.growth_bound = _core.multiplier_bound(pivot_threshold)

    def has_pivots_of(self, cpu: Any) -> bool:
        scales = cpu.symbolic.row_scale, cpu.symbolic.col_scale
        return all(map(np.array_equal, (cpu.pivot_rows, cpu.pivot_columns, *scales), self._pivots))

    def compose(self, plan: ColumnPlan, flops: float, *parts: Part) -> None:
        """Store the plan as the engine arranged it, and its parts."""
        self.plan, self.parts = plan, parts
        self.nnz, self.flops = plan.nnz + plan.n, flops
        features = {"call": 1.0, "levels": float(plan.n_levels), "fill": float(self.nnz), "flops": flops}
        self.factor_seconds, self.solve_seconds = (
            seconds(shipped()[f"{self.name}.{phase}"], features) for phase in ("refactor", "solve")
        )

    def count_bytes(self) -> int:
        """Bytes of the plan, a factor and one right-hand side at a time, without the engine's additions [bytes]."""
        pattern, itemsize = self.pattern, self.dtype.itemsize
        residual = 12 * pattern.nnz + 8 * pattern.n
        values = (2 * pattern.nnz + pattern.size + 6 * pattern.n) * itemsize
        return int(self.plan.nbytes + 4 * self.plan.nnz + residual + values + self.factor_memory().nbytes)

    def factor_memory(self) -> Memory:
        return Memory({"factor": self.plan.nnz * self.dtype.itemsize}, {})

    def vector_memory(self, capacity: int) -> Memory:
        return self.solution.vector_memory(capacity)

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        self.solution.run(stream, buffers, vectors, trans, nrhs, b, x)

    @cached_property
    def _diagonal(self) -> tuple[Buffer | None, float, float]:
        """Location of the pivots in the factor, and the part of sign and logarithm that is the same for all values."""
        return self.upload(self.plan.diag), *outer_determinant(self.plan)

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        at, sign, shift = self._diagonal
        pivots = np.empty(self.n, self.dtype)
        out, status = self.device.empty(pivots.nbytes), self.device.zeros(STATUS.itemsize)
        self.device.own_stream().synchronize()
        arrays = (buffers.own["factor"].pointer, out.pointer, 0, status.pointer)
        self.launch_gather(stream, "gather_values", arrays, (at, None), self.n)
        with outliving(self.device, (out, status)):
            stream.read(pivots, out.pointer, pivots.nbytes)
        moduli = abs(pivots).astype(float)
        return sign * joined(pivots / moduli), shift + float(np.log(moduli).sum())
