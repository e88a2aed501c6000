"""Programs of columns whose blocks own groups of neighbouring columns, and the solves of all column engines.

Groups are whole small subtrees and pieces of chains (core/plan/columns/groups.hpp). They are taken by tickets, so one
launch factors and one solves; `by_levels` launches each level of groups by itself instead, for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _core
from ..cuda.layout import constant, record, struct
from ..cuda.stream import Buffer, Kernel, Stream
from ..dispatch import costs
from .buffers import GROUP, Buffers, Memory, Vectors
from .column_program import ColumnProgram
from .program import address

SHARED = "shared/columns.hpp"
CONTROL_BYTES = struct(SHARED, "ColumnControl").itemsize
THREADS, RESIDENT = (
    constant(SHARED, "COLUMN_THREADS"),
    constant(SHARED, "COLUMN_BLOCKS"),
)  # of a block; a multiprocessor
MOST_COLUMNS = constant(SHARED, "MOST_GROUP_COLUMNS")
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")


@dataclass(frozen=True)
class Groups:
    """Ranges of columns in the order of tickets, where each of their levels begins, and what they need.

    Attributes
    ----------
    range : ndarray of int32, shape (2 * count,)
    level_ptr : ndarray of int32
    columns : int
        Most in a group.
    entries : int
        Most in a group before the division that has room in shared memory.
    """

    range: np.ndarray
    level_ptr: np.ndarray
    columns: int
    entries: int

    @property
    def count(self) -> int:
        return len(self.range) // 2


def make_groups(
    plan: Any,
    division: int,
    leaf: int,
    capacity: int,
    columns: int = MOST_COLUMNS,
    chain: int | None = None,
    alone: np.ndarray | None = None,
) -> Groups:
    """Groups of at most `leaf` entries of whole subtrees, of at most `chain` or `capacity` entries otherwise.

    Columns `alone`, ascending, are groups by themselves. Those from `division` on, which do not wait for each other,
    come last and by themselves.
    """
    ranges, level_ptr = _core.column_groups(
        plan.col_ptr[: division + 1],
        plan.row,
        plan.diag[:division],
        min(leaf, capacity),
        min(chain or capacity, capacity),
        columns,
        alone,
    )
    first, end = ranges.reshape(-1, 2).T
    entries = plan.col_ptr[end] - plan.col_ptr[first]
    if division < plan.n:
        corner = np.arange(division, plan.n, dtype=np.int32)
        ranges = np.concatenate([ranges, np.stack([corner, corner + 1], 1).ravel()])
        level_ptr = np.append(level_ptr, np.int32(len(ranges) // 2))
    most = int(entries[entries <= capacity].max(initial=1))
    return Groups(ranges, level_ptr, int((end - first).max(initial=1)), most)


class GroupedProgram(ColumnProgram):
    """A plan of columns and its groups in the memory of a device; solves."""

    engine: str
    leaf_entries: int | None = None  # of a run of subtrees; None: as many as give every block two
    # Of a piece of a chain. None: shorter than room is, so that more multiprocessors work on a chain at the price of
    # more hops between blocks.
    chain_entries: int | None = None
    by_levels = False
    grouped = True  # False: every column by itself

    @property
    def division(self) -> int:
        """Columns from here on belong to a dense corner."""
        return int(self.n)

    # ---- the plan on the device

    @cached_property
    def groups(self) -> Groups:
        """For shared memory that `RESIDENT` blocks share."""
        if not self.grouped:
            return make_groups(self.plan, self.division, 0, self.capacity, 1)
        blocks = RESIDENT * int(self.device.multiprocessors)
        leaf = self.leaf_entries or max(256, self.plan.nnz // (2 * blocks))
        alone = self.long_columns
        longest = int(np.delete(np.diff(self.plan.col_ptr[: self.division + 1]), alone).max(initial=0))
        chain = self.chain_entries or max(2048, 3 * longest)
        return make_groups(self.plan, self.division, leaf, self.capacity, chain=chain, alone=alone)

    @property
    def long_columns(self) -> np.ndarray:
        """Columns before the division, ascending, that are groups by themselves."""
        return np.empty(0, np.int32)

    @property
    def capacity(self) -> int:
        """Entries of L + U that a block has room for."""
        room = self.device.shared_memory_bytes // RESIDENT - RESERVED_BYTES - CONTROL_BYTES - 4 * MOST_COLUMNS
        return int(room // self.dtype.itemsize)

    @cached_property
    def _ranges(self) -> Buffer | None:
        return self.upload(self.groups.range)

    @cached_property
    def _row_diag(self) -> Buffer | None:
        return self.upload(_core.row_diagonals(self.plan.col_ptr, self.plan.row, self.plan.diag, self.plan.row_ptr))

    @cached_property
    def _features(self) -> costs.Features:
        return {"call": 1.0, "levels": float(self.plan.n_levels), "fill": float(self.nnz), "flops": self.flops}

    @property
    def factor_seconds(self) -> float:  # type: ignore[override]
        return costs.seconds(costs.DEVICE[f"{self.engine}.refactor"], self._features)

    @property
    def solve_seconds(self) -> float:  # type: ignore[override]
        return costs.seconds(costs.DEVICE[f"{self.engine}.solve"], self._features)

    def vector_memory(self, capacity: int) -> Memory:
        columns = 1 if capacity == 1 else GROUP
        values = 2 * self.n * columns * -(-capacity // columns)  # of both sweeps
        return Memory({}, {"packets": 2 * values * self.dtype.itemsize, "solve_control": 16})

    # ---- commands

    def tickets(self, file: str, control: Buffer, first: int, count: int, last: bool) -> np.ndarray:
        """``struct ColumnTickets`` of a launch."""
        return record(
            struct(file, "ColumnTickets"),
            groups=address(self._ranges),
            first=first,
            count=count,
            last_launch=last,
            control=control.pointer,
        )

    def launch(
        self,
        stream: Stream,
        kernel: Kernel,
        file: str,
        control: Buffer,
        begins: Any,
        shared: int,
        more: bool = False,
        **fields: Any,
    ) -> None:
        """One launch for the tickets between each two of `begins`; all of them, unless `more` follow."""
        for begin, end in pairwise(map(int, begins)):
            tickets = self.tickets(file, control, begin, end - begin, end == begins[-1] and not more)
            grid = self._blocks(end - begin, 1, RESIDENT)
            stream.launch(kernel, grid, THREADS, shared, record(kernel.arguments, tickets=tickets, **fields))

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        count, levels = self.groups.count, self.groups.level_ptr.astype(np.int64)
        begins = np.concatenate([levels, 2 * count - levels[-2::-1]]) if self.by_levels else np.array([0, 2 * count])
        self._solve_groups(stream, buffers, vectors, trans, nrhs, b, x, begins)

    def _solve_groups(
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
        """Groups `begins[0]` to `begins[-1]` of the sweep forward and then, the last one first, of that backward."""
        columns = 1 if nrhs == 1 else GROUP
        groups, rhs_groups = self.groups, -(-nrhs // columns)
        into, out = self._orders[1 if trans else 0], self._orders[0 if trans else 1]
        self.launch(
            stream,
            self.kernel("columns/column_solve.cu", f"solve_columns_{'transposed_' if trans else ''}{columns}"),
            "columns/column_solve.cu",
            vectors.own["solve_control"],
            begins * rhs_groups,
            CONTROL_BYTES + groups.columns * columns * 2 * self.dtype.itemsize,
            more,
            columns=self.column_record("columns/column_solve.cu"),
            row_diag=address(self._row_diag),
            group_count=groups.count,
            most_columns=groups.columns,
            factor=buffers.own["factor"].pointer,
            perm_in=address(into[0]),
            perm_out=address(out[0]),
            scale_in=address(into[1]),
            scale_out=address(out[1]),
            b=b.pointer,
            x=x.pointer,
            ld=self.n,
            nrhs=nrhs,
            conjugate=int(trans == 2),
            packets=vectors.own["packets"].pointer,
            division=self.division,
            trailing=address(vectors.own.get("corner")),
        )
