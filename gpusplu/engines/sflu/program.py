"""The sflu engine's program: a plan of columns, factored and solved with by busy waiting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.matrix import Pattern
from ...cuda.stream import Buffer, Stream
from ..columns.arrays import ColumnArrays
from ..columns.plan import ColumnPlan
from ..columns.program import ColumnProgram
from ..columns.solve import ColumnSolve
from ..device.buffers import Buffers, Memory
from .factorization import ColumnFactorization, Tuning, factor_words


class SfluProgram(ColumnProgram):
    """A plan of columns in the memory of a device; `tuning` is for measurements."""

    name = "sflu"

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        pattern: Pattern,
        dtype: np.dtype,
        pivot_threshold: float = 0.1,
        tuning: Tuning = Tuning(),  # noqa: B008 (frozen)
    ):
        super().__init__(device, plan, pattern, dtype, pivot_threshold)
        self.arrays = ColumnArrays(device, plan, dtype)
        self.factorization = ColumnFactorization(self.arrays, plan.n, tuning)
        self.solution = ColumnSolve(self.arrays, self.factorization.launches, plan.n)
        parts = self.arrays, self.factorization, self.factorization.launches, self.solution
        self.compose(plan, float(2.0 * plan.flops + plan.nnz), *parts)
        lists = self.factorization.long_lists.values()
        self.needed_bytes = self.count_bytes() + sum(array.nbytes for array in lists)

    @property
    def details(self) -> dict[str, Any]:
        return {"symbolic": self.plan.symbolic}

    def factor_memory(self) -> Memory:
        return super().factor_memory()._replace(zeros=factor_words(self.n))

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.factorization.run(stream, buffers, values)
