"""The common part of the programs of the column engines: arrays of a plan, solves by one launch for both sweeps.

L + U of the plan lies in `buffers.own["factor"]`, in the order of its compressed columns: U's part of a column with the
pivot, then L's without the unit diagonal.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.model import seconds
from ...cost.table import shipped
from ...cuda.layout import record, struct
from ...cuda.stream import Buffer, Stream
from ..device.buffers import GROUP, STATUS, Buffers, Memory, Solve
from ..device.interrupted import outliving
from ..device.program import Part, Program, joined, outer_determinant
from .groups import CONTROL_BYTES, TICKET_BYTES, GroupLaunches
from .plan import ColumnPlan

NAMES = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "u_ptr")


class ColumnArrays(Part):
    """The arrays that all column engines read.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    dtype : dtype
    diag, row_diag : ndarray of int64, shape (n,), optional
        Where the part of L begins in a column and in a row, if not after the diagonal.
    """

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        dtype: np.dtype,
        diag: np.ndarray | None = None,
        row_diag: np.ndarray | None = None,
    ):
        super().__init__(device, dtype)
        self.plan = plan
        self._diag = plan.diag if diag is None else diag
        self._given_row_diag = row_diag

    @cached_property
    def arrays(self) -> dict[str, Buffer | None]:
        """Pattern and maps, by the members of ``struct ColumnArrays``."""
        plan = self.plan
        maps: dict[str, Any] = {"map_ptr": None, "map": None}
        if plan.has_maps:  # kernels read a map even if it is empty
            maps = {"map_ptr": plan.map_ptr, "map": plan.map if plan.map.size else np.zeros(1, plan.map.dtype)}
        return self.upload_all({name: getattr(plan, name) for name in NAMES} | {"diag": self._diag} | maps)

    def record(self, file: str) -> np.ndarray:
        """``struct ColumnArrays`` of columns.cuh."""
        return record(struct(file, "ColumnArrays"), **self.arrays, n=self.plan.n)

    @cached_property
    def entries(self) -> tuple[Buffer | None, Buffer | None]:
        """The canonical value at each place of L + U, -1 for fill, and the scale of canonical values."""
        plan = self.plan
        source = np.full(plan.nnz, -1, np.int32)
        source[plan.entry_place] = plan.entry_source
        return self.upload(source), self.upload(plan.entry_scale)

    orders = cached_property(lambda self: self.upload_orders(self.plan))

    @cached_property
    def row_diag(self) -> Buffer | None:
        """Position of the diagonal in the rows."""
        given = self._given_row_diag
        return self.upload(self.plan.row_diagonals() if given is None else given)


SOLVE = "columns/column_solve.cu"


class ColumnSolve(Part):
    """op(A) X = B with the columns of a plan.

    Parameters
    ----------
    arrays : ColumnArrays
    launches : GroupLaunches
    division : int
        Columns from here on belong to a dense trailing block, which another part solves with between the sweeps.
    """

    files = (SOLVE,)

    def __init__(self, arrays: ColumnArrays, launches: GroupLaunches, division: int):
        super().__init__(arrays.device, arrays.dtype)
        self._arrays, self._launches, self._division = arrays, launches, division

    def vector_memory(self, capacity: int) -> Memory:
        """Work memory with up to `capacity` right-hand sides."""
        columns = 1 if capacity == 1 else GROUP
        values = 2 * self._arrays.plan.n * columns * -(-capacity // columns)  # of both sweeps
        return Memory({}, {"packets": 2 * values * self.dtype.itemsize, "solve_control": TICKET_BYTES})

    def run(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        """Both sweeps."""
        groups = self._launches.groups
        count, levels = groups.count, groups.level_ptr.astype(np.int64)
        begins = np.array([0, 2 * count])
        if self._launches.by_levels:
            begins = np.concatenate([levels, 2 * count - levels[-2::-1]])
        self.sweep(stream, buffers, solve, begins)

    def sweep(self, stream: Stream, buffers: Buffers, solve: Solve, begins: np.ndarray, more: bool = False) -> None:
        """Groups `begins[0]` to `begins[-1]` of the forward sweep, then of the backward sweep in reverse order."""
        vectors, trans, nrhs, b, x = solve
        columns = 1 if nrhs == 1 else GROUP
        arrays, groups, rhs_groups = self._arrays, self._launches.groups, -(-nrhs // columns)
        into, out = arrays.orders[1 if trans else 0], arrays.orders[0 if trans else 1]
        self._launches.launch_groups(
            stream,
            self.kernel(SOLVE, f"solve_columns_{'transposed_' if trans else ''}{columns}"),
            SOLVE,
            vectors.own["solve_control"],
            begins * rhs_groups,
            CONTROL_BYTES + groups.columns * columns * 2 * self.dtype.itemsize,
            (vectors.own, buffers.own),
            more,
            columns=arrays.record(SOLVE),
            row_diag=arrays.row_diag,
            group_count=groups.count,
            most_columns=groups.columns,
            perm_in=into[0],
            perm_out=out[0],
            scale_in=into[1],
            scale_out=out[1],
            b=b,
            x=x,
            ld=arrays.plan.n,
            nrhs=nrhs,
            conjugate=int(trans == 2),
            division=self._division,
            trailing=vectors.own.get("trailing"),
        )


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

    def solve(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        self.solution.run(stream, buffers, solve)

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
