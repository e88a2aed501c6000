"""The solves of all column engines: one launch for both sweeps."""

from __future__ import annotations

import numpy as np

from ...cuda.stream import Buffer, Stream
from ..device.buffers import GROUP, Buffers, Memory, Vectors
from ..device.program import Part
from .arrays import ColumnArrays
from .groups import CONTROL_BYTES, TICKET_BYTES, GroupLaunches

FILE = "columns/column_solve.cu"


class ColumnSolve(Part):
    """op(A) X = B with the columns of a plan.

    Parameters
    ----------
    arrays : ColumnArrays
    launches : GroupLaunches
    division : int
        Columns from here on belong to a dense trailing block, which another part solves with between the sweeps.
    """

    def __init__(self, arrays: ColumnArrays, launches: GroupLaunches, division: int):
        super().__init__(arrays.device, arrays.dtype)
        self._arrays, self._launches, self._division = arrays, launches, division

    @property
    def files(self) -> tuple[str, ...]:
        return (FILE,)

    def vector_memory(self, capacity: int) -> Memory:
        """Work memory with up to `capacity` right-hand sides."""
        columns = 1 if capacity == 1 else GROUP
        values = 2 * self._arrays.plan.n * columns * -(-capacity // columns)  # of both sweeps
        return Memory({}, {"packets": 2 * values * self.dtype.itemsize, "solve_control": TICKET_BYTES})

    def run(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        """Both sweeps."""
        groups = self._launches.groups
        count, levels = groups.count, groups.level_ptr.astype(np.int64)
        begins = np.array([0, 2 * count])
        if self._launches.by_levels:
            begins = np.concatenate([levels, 2 * count - levels[-2::-1]])
        self.sweep(stream, buffers, vectors, trans, nrhs, b, x, begins)

    def sweep(
        self,
        stream: Stream,
        buffers: Buffers,
        vectors: Vectors,
        trans: int,
        nrhs: int,
        b: Buffer,
        x: Buffer,
        begins: np.ndarray,
        more: bool = False,
    ) -> None:
        """Groups `begins[0]` to `begins[-1]` of the forward sweep, then of the backward sweep in reverse order."""
        columns = 1 if nrhs == 1 else GROUP
        arrays, groups, rhs_groups = self._arrays, self._launches.groups, -(-nrhs // columns)
        into, out = arrays.orders[1 if trans else 0], arrays.orders[0 if trans else 1]
        self._launches.launch_groups(
            stream,
            self.kernel(FILE, f"solve_columns_{'transposed_' if trans else ''}{columns}"),
            FILE,
            vectors.own["solve_control"],
            begins * rhs_groups,
            CONTROL_BYTES + groups.columns * columns * 2 * self.dtype.itemsize,
            more,
            columns=arrays.record(FILE),
            row_diag=arrays.row_diag,
            group_count=groups.count,
            most_columns=groups.columns,
            factor=buffers.own["factor"],
            perm_in=into[0],
            perm_out=out[0],
            scale_in=into[1],
            scale_out=out[1],
            b=b,
            x=x,
            ld=arrays.plan.n,
            nrhs=nrhs,
            conjugate=int(trans == 2),
            packets=vectors.own["packets"],
            division=self._division,
            trailing=vectors.own.get("trailing"),
        )
