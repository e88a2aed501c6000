"""The crisscross engine's program: columns by busy waiting up to a division point, and a dense trailing block.

Chen, Wang, Yang et al., crisscross blocked LU for circuit matrices on GPUs, section 6.2; plan.py describes the division
of the work, model.py the choice of the division point. The program is composed of sflu's factorization of columns, with
U12 and the Schur complement as the last tickets (`Trailing`), of the solves of all column engines, and of fronts: the
trailing block is one front. A solve is the forward sweep of the columns, the trailing block, and the backward sweep.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.calibration import costs_of, for_core
from ...cuda.layout import record
from ...cuda.stream import Buffer, Stream
from ..columns.groups import CONTROL_BYTES, RESERVED_BYTES, RESIDENT
from ..columns.plan import ColumnPlan, make_column_plan
from ..columns.program import ColumnArrays, ColumnProgram, ColumnSolve
from ..device.buffers import Buffers, Memory, Solve, Vectors
from ..device.program import Part
from ..sflu.program import LONG_SCALARS, TRAILING_ARRAYS, ColumnFactorization, Tuning, factor_words
from ..supernodal.memory import all_vector_bytes, factor_memory, plan_bytes, vector_memory
from ..supernodal.plan import Limits
from ..supernodal.program import Fronts, FrontSolve
from .model import predict_divisions, trailing_costs
from .plan import divide, trailing_last

LEAST_BATCH, MOST_BATCH = 16384, 49152  # of terms of a column that lies in shared memory [bytes]


class Trailing(Part):
    """U12 and the Schur complement: the terms of the trailing block's columns, the last tickets of a factorization.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    division : int
        First column of the trailing block.
    dtype : dtype
    """

    kernel_name = "columns/crisscross.cu", "factor_crisscross"  # and its file

    def __init__(self, device: Any, plan: ColumnPlan, division: int, dtype: np.dtype):
        super().__init__(device, dtype)
        self._plan, self._division = plan, division
        itemsize = self.dtype.itemsize
        longest = int(np.diff(plan.col_ptr[division:]).max(initial=0)) * itemsize
        taken = RESERVED_BYTES + CONTROL_BYTES + LONG_SCALARS * itemsize
        available = int(device.shared_memory_bytes) // RESIDENT - taken & ~15
        # Shared memory for a column and its terms [bytes], and most entries for it.
        self.capacity, self.kept = available, (available - LEAST_BATCH) // itemsize
        if longest + LEAST_BATCH <= available:
            self.capacity, self.kept = min(available, longest + MOST_BATCH), longest // itemsize

    def count_bytes(self) -> int:
        """Memory of the terms, and of the pointer, place in the order, step and wait of each entry [bytes]."""
        plan = self._plan
        entries = plan.nnz - plan.col_ptr[self._division]
        terms = plan.count_trailing_terms(self._division)
        return int(20 * entries + 8 * terms)

    @cached_property
    def _terms(self) -> dict[str, Buffer | None]:
        """Terms by the names of the kernel's arguments."""
        sizes = self.capacity, self.kept, RESIDENT * int(self.device.multiprocessors), self.dtype.itemsize
        return self.upload_all(self._plan.trailing_terms(self._division, *sizes))

    def record(self) -> np.ndarray:
        """``struct TrailingArrays`` of kernels/columns/trailing_columns.cuh."""
        return record(TRAILING_ARRAYS, **self._terms, capacity=self.capacity, kept=self.kept)


PREFIX = "trailing."  # before the names of what the trailing block's front writes


class CrisscrossProgram(ColumnProgram):
    """A plan of columns and a trailing block in the memory of a device.

    Parameters
    ----------
    division : int, optional
        Default: chosen by the model.
    tuning : Tuning, optional

    Attributes
    ----------
    curves : Curves
        Predicted seconds by division point.
    division : int
        First column of the trailing block; n if there is none.
    """

    name = "crisscross"

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        pattern: Pattern,
        dtype: np.dtype,
        pivot_threshold: float = 0.1,
        division: int | None = None,
        tuning: Tuning = Tuning(),  # noqa: B008 (frozen)
    ):
        super().__init__(device, plan, pattern, dtype, pivot_threshold)
        known = device.shared_memory_bytes, device.multiprocessors, device.arch
        limits, costs = Limits(*known, costs=for_core(device.name)), trailing_costs(costs_of(device.name))
        divisions = None if division is None else np.array([division])
        self.curves = predict_divisions(plan, dtype, limits, divisions, costs)
        plan = in_order(plan, pattern, trailing_last(self.curves.order, self.curves.best))
        divided = divide(plan, self.curves.best, dtype, limits)
        self.division, tiny = divided.division, _core.small_pivot_of_columns(self.dtype.char)
        self.fronts = None if divided.trailing is None else Fronts(device, divided.trailing, tiny, tiny)
        self.trailing = None if divided.trailing is None else Trailing(device, plan, self.division, dtype)
        self.arrays = ColumnArrays(device, plan, dtype, divided.diag, divided.row_diag)
        self.factorization = ColumnFactorization(self.arrays, self.division, tuning, self.trailing)
        self.solution = ColumnSolve(self.arrays, self.factorization.launches, self.division)
        parts = self.arrays, self.factorization, self.factorization.launches, self.solution, self.fronts, self.trailing
        dense = self.fronts.plan.flops if self.fronts else 0.0
        flops = float(2.0 * divided.multiply_adds + plan.nnz + dense)
        self.compose(plan, flops, *(part for part in parts if part is not None))
        index = int(np.flatnonzero(self.curves.division == self.division)[0])
        self.predicted = float(self.curves.sparse[index]), float(self.curves.dense[index])
        self.factor_seconds = sum(self.predicted)
        lists = sum(array.nbytes for array in self.factorization.long_lists.values())
        self.needed_bytes = self.count_bytes() + lists
        if self.fronts and self.trailing:
            front = self.fronts.plan
            self.needed_bytes += plan_bytes(front) + all_vector_bytes(front, 1) + self.trailing.count_bytes()

    @property
    def details(self) -> dict[str, Any]:
        sparse, dense = self.predicted
        return {"division": self.division, "predicted_sparse_seconds": sparse, "predicted_dense_seconds": dense}

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        return super().slogdet(stream, buffers) if self.division == self.n else None  # else part of it is a front

    def factor_memory(self) -> Memory:
        columns = super().factor_memory()._replace(zeros=factor_words(self.n))
        return with_front(columns, factor_memory(self.fronts.plan)) if self.fronts else columns

    def vector_memory(self, capacity: int) -> Memory:
        memory = super().vector_memory(capacity)
        if self.fronts:
            memory = with_front(memory, vector_memory(self.fronts.plan, capacity))
        order = self.n - self.division
        return memory._replace(empty={**memory.empty, "trailing": order * capacity * self.dtype.itemsize})

    # ---- commands

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.factorization.run(stream, buffers, values)
        if self.fronts:
            self.fronts.run(stream, of_front(buffers), buffers.own["factor"])

    def solve(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        if self.fronts is None:
            self.solution.run(stream, buffers, solve)
            return
        count, inner = self.factorization.launches.groups.count, solve.vectors.own["trailing"]
        forward, backward = np.array([0, count]), np.array([count, 2 * count])
        self.solution.sweep(stream, buffers, solve, forward, more=True)
        of_trailing = Solve(of_front(solve.vectors), solve.trans, solve.nrhs, inner, inner)
        front = FrontSolve(self.fronts, of_front(buffers), of_trailing)
        self.fronts.run(stream, of_front(buffers), solve=front)
        self.solution.sweep(stream, buffers, solve, backward)


def in_order(plan: ColumnPlan, pattern: Pattern, order: np.ndarray) -> ColumnPlan:
    """The plan with its columns in this order (gather)."""
    if np.array_equal(order, np.arange(plan.n)):
        return plan
    row_perm, col_perm = (np.ascontiguousarray(perm[order]) for perm in (plan.row_perm, plan.col_perm))
    return make_column_plan(pattern, row_perm, col_perm, plan.row_scale, plan.col_scale)


def with_front(memory: Memory, front: Memory) -> Memory:
    """Memory for the columns and the trailing block, the latter under prefixed names."""
    named = [{PREFIX + name: nbytes for name, nbytes in part.items()} for part in front]
    return Memory(*({**own, **other} for own, other in zip(memory, named, strict=True)))


def of_front(buffers: Any) -> Any:
    """The trailing block's part of buffers or vectors, under the names that its fronts use."""
    own = {name.removeprefix(PREFIX): buffer for name, buffer in buffers.own.items() if name.startswith(PREFIX)}
    if isinstance(buffers, Vectors):
        return SimpleNamespace(own=own, groups=buffers.groups)
    return SimpleNamespace(own=own, device_status=buffers.device_status)


PROGRAM = CrisscrossProgram
