"""The SFLU engine: synchronization-free left-looking LU on the pattern that the CPU engine's pivots fixed.

Zhao, Wen, Luo, Jin, Liu and Zhou's SFLU, with tickets, release and acquire, and groups of columns in shared memory
(kernels/columns/sflu.cuh says what differs from the paper). A factorization is one launch, and so is a solve.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .. import _core
from ..cuda.layout import constant, record, struct
from ..cuda.stream import Buffer, Kernel, Stream
from .buffers import Buffers, Memory
from .grouped_program import CONTROL_BYTES, GroupedProgram
from .program import address, addresses

MOST_PLACES = constant("shared/columns.hpp", "MOST_PLACES")
LONG_ARRAYS = struct("columns/sflu.cuh", "LongArrays")
CORNER_ARRAYS = struct("columns/sflu.cuh", "TrailingArrays")
LONG_SCALARS = constant("shared/columns.hpp", "COLUMN_WARPS")  # that a block keeps for long columns


class SfluProgram(GroupedProgram):
    """A plan of columns in the memory of a device, factored by busy waiting.

    Attributes
    ----------
    splits : bool
        A block works on a long column (core/plan/columns/long_columns.hpp) if there are maps; False: a warp, for
        comparison.
    """

    engine = "sflu"
    splits = True

    def prepare(self) -> None:
        files = ("columns/column_solve.cu", "common/residual.cu", "columns/sflu.cu", "common/values.cu")
        self.device.prepare(files, self.dtype.char, 0)

    def factor_memory(self) -> Memory:
        memory = super().factor_memory()
        return Memory(memory.empty, {**memory.zeros, "done": 4 * self.plan.n, "control": 16})

    @property
    def _mapped(self) -> bool:
        """Whether places come from the map; the kernel counts them, and entries, by 32 bits then."""
        plan = self.plan
        few = max(plan.nnz, plan.map.size) <= np.iinfo(np.int32).max
        return bool(plan.has_maps and plan.map.dtype == np.uint16 and few)

    @cached_property
    def _places(self) -> int:
        """Places that a warp keeps: those of the longest column of L, if there is room."""
        if self._mapped:
            return 0
        longest = int((self.plan.col_ptr[1:] - self.plan.diag).max(initial=2))
        room = super().capacity * self.dtype.itemsize // (4 * LONG_SCALARS)  # half of it
        return min(longest, room, MOST_PLACES) & ~1

    @property
    def _places_bytes(self) -> int:
        return 2 * self._places * LONG_SCALARS

    @property
    def capacity(self) -> int:
        return super().capacity - LONG_SCALARS - -(-self._places_bytes // self.dtype.itemsize)

    @cached_property
    def long_columns(self) -> np.ndarray:
        if not (self.splits and self._mapped):
            return super().long_columns
        columns: np.ndarray = _core.choose_long_columns(*self._pattern_before_division, self.plan.level)
        return columns

    @property
    def _pattern_before_division(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        plan, division = self.plan, self.division
        return plan.col_ptr[: division + 1], plan.row, plan.diag[:division]

    @cached_property
    def _long_lists(self) -> dict[str, np.ndarray]:
        """Parts and terms of long columns."""
        lists: dict[str, np.ndarray] = _core.long_columns(*self._pattern_before_division, self.long_columns)
        return lists

    def _count_bytes(self) -> int:
        return super()._count_bytes() + sum(array.nbytes for array in self._long_lists.values())

    @cached_property
    def _long_arrays(self) -> dict[str, Buffer | None]:
        """The same on the device, and which of them a ticket is."""
        if not self.long_columns.size:
            return dict.fromkeys(LONG_ARRAYS.names or ())
        first = self.groups.range[::2]
        index = np.searchsorted(self.long_columns, first)
        is_long = np.isin(first, self.long_columns)
        of_ticket = np.where(is_long, index, -1).astype(np.int32)
        return {name: self.upload(array) for name, array in {**self._long_lists, "of_ticket": of_ticket}.items()}

    @cached_property
    def _follows(self) -> Buffer | None:
        return self.upload(_core.columns_that_follow(self.plan.col_ptr, self.plan.row, self.plan.diag))

    @property
    def _factor_begins(self) -> np.ndarray:
        """Where launches of a factorization begin and end among the groups."""
        level_ptr = self.groups.level_ptr
        return level_ptr if self.by_levels else level_ptr[[0, -1]]

    @property
    def _factor_kernel(self) -> tuple[str, Kernel]:
        """And its file."""
        return "columns/sflu.cu", self.kernel(
            "columns/sflu.cu", "factor_sflu" if self._mapped else "factor_sflu_search"
        )

    @property
    def _corner_record(self) -> np.ndarray:
        """``struct TrailingArrays`` of kernels/columns/trailing_columns.cuh."""
        return np.zeros((), CORNER_ARRAYS)

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        groups, own = self.groups, buffers.own
        source, scale = self._entries
        flags = _core.flag_words(groups.columns)
        file, kernel = self._factor_kernel
        begins = self._factor_begins
        shared = 4 * flags + groups.entries * self.dtype.itemsize + self._places_bytes
        corner = self._corner_record
        self.launch(
            stream,
            kernel,
            file,
            own["control"],
            begins,
            CONTROL_BYTES + LONG_SCALARS * self.dtype.itemsize + max(shared, int(corner["capacity"])),
            columns=self.column_record(file),
            longs=record(LONG_ARRAYS, **addresses(self._long_arrays)),
            trailing=corner,
            source=address(source),
            scale=address(scale),
            values=values.pointer,
            factor=own["factor"].pointer,
            done=own["done"].pointer,
            division=self.division,
            capacity=groups.entries,
            flags=groups.columns,
            follows=0 if self._mapped else address(self._follows),
            places=self._places,
            status=buffers.device_status.pointer,
            tiny=self.tiny,
            singular=self.singular,
        )
