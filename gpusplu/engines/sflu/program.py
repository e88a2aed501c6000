"""The sflu engine's program: a plan of columns, factored and solved with by busy waiting.

Zhao, Wen, Luo, Jin, Liu and Zhou's SFLU (section III-C, algorithm 2), with tickets, release and acquire, and groups
of columns in shared memory (kernels/columns/sflu.cuh says what differs from the paper). A factorization is one launch,
with which crisscross factors the columns ahead of its trailing block too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.calibration import for_core
from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Stream
from ..columns.groups import CONTROL_BYTES, SHARED, TICKET_BYTES, Grouping, GroupLaunches, choose_groups, group_capacity
from ..columns.plan import ColumnPlan
from ..columns.program import ColumnArrays, ColumnProgram, ColumnSolve
from ..device.buffers import Buffers, Memory
from ..device.program import Part

MOST_PLACES = constant(SHARED, "MOST_PLACES")
LONG_ARRAYS = struct("columns/sflu.cuh", "LongArrays")
TRAILING_ARRAYS = struct("columns/sflu.cuh", "TrailingArrays")
LONG_SCALARS = constant(SHARED, "COLUMN_WARPS")  # scalars that a block stores for long columns


@dataclass(frozen=True)
class Tuning(Grouping):
    """Options of the columns' factorization; other values than the defaults are for measurements and tests.

    Attributes
    ----------
    splits : bool
        A block works on a long column (core/plan/columns/long_columns.hpp) if there are maps; False: a warp.
    """

    splits: bool = True


class ColumnFactorization(Part):
    """The columns of a plan up to a division.

    Parameters
    ----------
    arrays : ColumnArrays
    division : int
    tuning : Tuning
    trailing : Trailing, optional
        Takes the columns after the division as the last tickets.
    """

    def __init__(self, arrays: ColumnArrays, division: int, tuning: Tuning, trailing: Any = None):
        super().__init__(arrays.device, arrays.dtype)
        plan, itemsize, self._costs = arrays.plan, arrays.dtype.itemsize, for_core(arrays.device.name)
        self._arrays, self._trailing, self._division = arrays, trailing, division
        kernel: tuple[str, str] = ("columns/sflu.cu", "factor_sflu") if trailing is None else trailing.kernel_name
        self._file, self._name = kernel
        block_capacity = group_capacity(self.device, itemsize)
        self.mapped = is_mapped(plan)
        self._places = 0 if self.mapped else places_of_a_warp(plan, block_capacity * itemsize)
        self._places_bytes = 2 * self._places * (LONG_SCALARS)
        self.long_columns: np.ndarray = np.empty(0, np.int32)
        if tuning.splits and self.mapped:
            self.long_columns = plan.choose_long_columns(division, self._costs)
        capacity = block_capacity - LONG_SCALARS - -(-self._places_bytes // itemsize)
        groups = choose_groups(self.device, plan, division, capacity, tuning, self.long_columns)
        self.launches = GroupLaunches(self.device, self.dtype, groups, tuning.by_levels)

    @property
    def files(self) -> tuple[str, ...]:
        return (self._file,)

    @cached_property
    def long_lists(self) -> dict[str, np.ndarray]:
        """Parts and terms of long columns."""
        return self._arrays.plan.long_columns(self.long_columns, self._costs)

    @cached_property
    def _long_arrays(self) -> dict[str, Buffer | None]:
        """Lists of long columns on the device, and the ticket of each."""
        if not self.long_columns.size:
            return dict.fromkeys(LONG_ARRAYS.names or ())
        first = self.launches.groups.range[::2]
        index = np.searchsorted(self.long_columns, first)
        of_ticket = np.where(np.isin(first, self.long_columns), index, -1).astype(np.int32)
        return self.upload_all({**self.long_lists, "of_ticket": of_ticket})

    @cached_property
    def _follows(self) -> Buffer | None:
        """Columns with the same pattern as the previous one, if places have to be searched."""
        return None if self.mapped else self.upload(self._arrays.plan.columns_that_follow())

    def run(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        """Add the launches."""
        groups, own = self.launches.groups, buffers.own
        source, scale = self._arrays.entries
        flags = _core.flag_words(groups.columns)
        shared = 4 * flags + groups.entries * self.dtype.itemsize + self._places_bytes
        trailing = np.zeros((), TRAILING_ARRAYS) if self._trailing is None else self._trailing.record()
        tiny = _core.small_pivot_of_columns(self.dtype.char)
        self.launches.launch_groups(
            stream,
            self.kernel(self._file, self._name if self.mapped else f"{self._name}_search"),
            self._file,
            own["control"],
            groups.level_ptr if self.launches.by_levels else groups.level_ptr[[0, -1]],
            CONTROL_BYTES + LONG_SCALARS * self.dtype.itemsize + max(shared, int(trailing["capacity"])),
            [own],
            columns=self._arrays.record(self._file),
            longs=record(LONG_ARRAYS, **self._long_arrays),
            trailing=trailing,
            source=source,
            scale=scale,
            values=values,
            division=self._division,
            capacity=groups.entries,
            flags=groups.columns,
            follows=self._follows,
            places=self._places,
            status=buffers.device_status,
            tiny=tiny,
        )


def factor_words(n: int) -> dict[str, int]:
    """Arrays that a factorization writes besides L + U, initially zero [bytes]."""
    return {"done": 4 * n, "control": TICKET_BYTES}


def is_mapped(plan: ColumnPlan) -> bool:
    """Whether places come from the map; the kernel then counts them, and entries, with 32 bits."""
    few = max(plan.nnz, plan.map.size) <= np.iinfo(np.int32).max
    return bool(plan.has_maps and few)


def places_of_a_warp(plan: ColumnPlan, block_capacity: int) -> int:
    """Places that a warp stores: those of the longest column of L, if they fit half of the `block_capacity` of a block
    [bytes]."""
    longest = int((plan.col_ptr[1:] - plan.diag).max(initial=2))
    return min(longest, block_capacity // (4 * (LONG_SCALARS)), MOST_PLACES) & ~1


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
        tuning: Tuning = Tuning(),
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


PROGRAM = SfluProgram
