"""The crisscross engine: columns by busy waiting up to a division point, and a dense corner behind it.

Chen, Wang, Yang et al., crisscross blocked LU for circuit matrices on GPUs; plans/crisscross.py says what is done
where, plans/crisscross_model.py how the division point is chosen. A factorization is sflu's kernel, whose last tickets
are U12 and the Schur complement, a column of the corner each, and then the kernels of the supernodal engine for the
corner, which is one front. A solve is the sweep forward of the columns, the corner, and the sweep backward.
"""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core
from ..cuda.layout import record
from ..cuda.stream import Buffer, Kernel, Stream
from ..matrix import Pattern
from ..plans.columns import ColumnPlan, make_column_plan
from ..plans.crisscross import corner_last, divide
from ..plans.crisscross_model import Curves, predict_divisions
from ..plans.fronts import Limits
from .buffers import Buffers, Memory, Vectors
from .grouped_program import CONTROL_BYTES, RESERVED_BYTES, RESIDENT
from .program import Program, addresses
from .sflu import CORNER_ARRAYS, LONG_SCALARS, SfluProgram
from .supernodal import FrontProgram

LEAST_BATCH, MOST_BATCH = 16384, 49152  # of terms of a column that lies in shared memory [bytes]
CORNER = "corner."  # before the names of what the corner's front writes


class CrisscrossProgram(SfluProgram):
    """A plan of columns and a corner in the memory of a device.

    Attributes
    ----------
    curves : Curves
        Predicted seconds by division point; what the division was chosen by, unless `forced`.
    """

    engine = "crisscross"
    forced: int | None = None  # a division point, for measurements

    def _arranged(self, plan: ColumnPlan) -> ColumnPlan:
        """The plan with the columns of the corner at its end; the division, and the front of the corner, on the way."""
        device, dtype = self.device, self.dtype
        limits = Limits(device.shared_memory_bytes, device.multiprocessors, device.arch)
        forced = None if self.forced is None else np.array([self.forced])
        self.curves: Curves = predict_divisions(plan, dtype, limits, forced)
        self._given = plan.row_perm, plan.col_perm
        plan = _in_order(plan, self.pattern, corner_last(self.curves.order, self.curves.best))
        self._parts = divide(plan, self.curves.best, dtype, limits)
        self.corner: FrontProgram | None = None
        if self._parts.corner is not None:
            nothing: Any = SimpleNamespace(n=self._parts.corner.n, nnz=0, size=0, core=SimpleNamespace(identity=True))
            self.corner = FrontProgram(device, self._parts.corner, nothing)  # its values are the columns'
            self.corner.tiny, self.corner.singular = self.tiny, self.singular
        self.corner_terms = _core.count_trailing_terms(plan.col_ptr, plan.row, plan.diag, self._parts.division)
        return plan

    def _count_flops(self) -> float:
        corner = self.corner.flops if self.corner else 0.0
        return float(2.0 * self._parts.multiply_adds + self.plan.nnz + corner)

    def repivoted(self, cpu: Any) -> Program | None:
        same = all(map(np.array_equal, (cpu.row_perm, cpu.col_perm), self._given))
        return None if same or self._remake is None else self._remake(cpu)

    def prepare(self) -> None:
        if self.corner is None:
            super().prepare()
            return
        self.device.prepare(
            ("columns/column_solve.cu", "columns/crisscross.cu", "common/residual.cu", "common/values.cu"),
            self.dtype.char,
            0,
        )
        self.corner.prepare()

    @property
    def division(self) -> int:
        return self._parts.division

    @cached_property
    def _shared(self) -> tuple[int, int]:
        """Shared memory for a column of the corner and its terms [bytes], and for how many entries at most."""
        itemsize = self.dtype.itemsize
        longest = int(np.diff(self.plan.col_ptr[self.division :]).max(initial=0)) * itemsize
        taken = RESERVED_BYTES + CONTROL_BYTES + LONG_SCALARS * itemsize
        room = int(self.device.shared_memory_bytes) // RESIDENT - taken & ~15
        if longest + LEAST_BATCH <= room:
            return min(room, longest + MOST_BATCH), longest // itemsize
        return room, (room - LEAST_BATCH) // itemsize

    @property
    def factor_seconds(self) -> float:  # type: ignore[override]
        return float(sum(self._predicted))

    @cached_property
    def _predicted(self) -> tuple[float, float]:
        """Seconds of both parts at the division taken."""
        curves = self.curves
        here = int(np.flatnonzero(curves.division == self.division)[0])
        return float(curves.sparse[here]), float(curves.dense[here])

    @property
    def details(self) -> dict[str, Any]:
        sparse, dense = self._predicted
        return {"division": self.division, "predicted_sparse_seconds": sparse, "predicted_dense_seconds": dense}

    def _count_bytes(self) -> int:
        needed = super()._count_bytes()
        if self.corner is not None:
            needed += self.corner.needed_bytes - self.corner.factor_memory().nbytes  # that is counted already
            entries = int(self.plan.nnz - self.plan.col_ptr[self.division])
            needed += 20 * entries + 8 * self.corner_terms  # pointer, place in the order, step and wait of each entry
        return needed

    def factor_memory(self) -> Memory:
        return _with_corner(super().factor_memory(), self.corner.factor_memory() if self.corner else None)

    def vector_memory(self, capacity: int) -> Memory:
        memory = _with_corner(
            super().vector_memory(capacity), self.corner.vector_memory(capacity) if self.corner else None
        )
        order = self.n - self.division
        return memory._replace(empty={**memory.empty, "corner": order * capacity * self.dtype.itemsize})

    # ---- the plan on the device

    @cached_property
    def _column_arrays(self) -> dict[str, Buffer | None]:
        return {**super()._column_arrays, "diag": self.upload(self._parts.diag)}

    @cached_property
    def _row_diag(self) -> Buffer | None:
        return self.upload(self._parts.row_diag)

    @cached_property
    def _terms(self) -> dict[str, Buffer | None]:
        """Of the corner's columns, by the names of the kernel's arguments."""
        plan, (capacity, kept) = self.plan, self._shared
        overlapped = RESIDENT * int(self.device.multiprocessors)
        terms = _core.trailing_terms(
            plan.col_ptr, plan.row, plan.diag, self.division, capacity, kept, overlapped, self.dtype.itemsize
        )
        return {name: self.upload(array) for name, array in terms.items()}

    # ---- commands

    @property
    def _factor_kernel(self) -> tuple[str, Kernel]:
        if self.corner is None:
            return super()._factor_kernel
        file = "columns/crisscross.cu"
        return file, self.kernel(file, "factor_crisscross" if self._mapped else "factor_crisscross_search")

    @property
    def _corner_record(self) -> np.ndarray:
        if self.corner is None:
            return super()._corner_record
        capacity, kept = self._shared
        return record(CORNER_ARRAYS, **addresses(self._terms), capacity=capacity, kept=kept)

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.factor_columns(stream, buffers, values)
        if self.corner is not None:
            self.corner.factor(stream, _of_corner(buffers), buffers.own["factor"])

    def factor_columns(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        """All but the corner's own factorization."""
        super().factor(stream, buffers, values)

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        if self.corner is None:
            super().solve(stream, buffers, vectors, trans, nrhs, b, x)
            return
        count, inner = self.groups.count, vectors.own["corner"]
        self._solve_groups(stream, buffers, vectors, trans, nrhs, b, x, np.array([0, count]), more=True)
        self.corner.solve(stream, _of_corner(buffers), _of_corner(vectors), trans, nrhs, inner, inner)
        self._solve_groups(stream, buffers, vectors, trans, nrhs, b, x, np.array([count, 2 * count]))


def _in_order(plan: ColumnPlan, pattern: Pattern, order: np.ndarray) -> ColumnPlan:
    """The plan with its columns gathered like this."""
    if np.array_equal(order, np.arange(plan.n)):
        return plan
    row_perm, col_perm = (np.ascontiguousarray(perm[order]) for perm in (plan.row_perm, plan.col_perm))
    return make_column_plan(pattern, row_perm, col_perm, plan.row_scale, plan.col_scale)


def _with_corner(memory: Memory, corner: Memory | None) -> Memory:
    """What columns and corner need, the corner's under names of its own."""
    if corner is None:
        return memory
    named = [{CORNER + name: nbytes for name, nbytes in part.items()} for part in corner]
    return Memory(*({**own, **other} for own, other in zip(memory, named, strict=True)))


def _of_corner(buffers: Any) -> Any:
    """The corner's share of buffers or vectors, under the names that its program knows."""
    own = {name.removeprefix(CORNER): buffer for name, buffer in buffers.own.items() if name.startswith(CORNER)}
    if isinstance(buffers, Vectors):
        return SimpleNamespace(own=own, groups=buffers.groups)
    return SimpleNamespace(own=own, device_status=buffers.device_status)
