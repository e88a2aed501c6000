"""Groups of neighbouring columns that blocks own, and the launches that process them.

Groups are whole small subtrees and chunks of chains (core/plan/columns/groups.hpp). Blocks take them by tickets, so one
launch factors and one solves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Kernel, Stream
from ..device.program import Part
from .plan import ColumnPlan

SHARED = "shared/columns.hpp"
CONTROL_BYTES = struct(SHARED, "ColumnControl").itemsize
THREADS, RESIDENT = constant(SHARED, "COLUMN_THREADS"), constant(SHARED, "COLUMN_BLOCKS")  # blocks per multiprocessor
TICKET_BYTES = 4 * constant(SHARED, "TICKET_WORDS")
MOST_COLUMNS = constant(SHARED, "MOST_GROUP_COLUMNS")
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")


@dataclass(frozen=True)
class Groups:
    """Ranges of columns in the order of tickets, the begin of each level, and the memory they need.

    Attributes
    ----------
    range : ndarray of int32, shape (2 * count,)
    level_ptr : ndarray of int32
    columns : int
        Most columns in a group.
    entries : int
        Most entries in a group before the division that fits shared memory.
    """

    range: np.ndarray
    level_ptr: np.ndarray
    columns: int
    entries: int

    @property
    def count(self) -> int:
        return len(self.range) // 2


@dataclass(frozen=True)
class Grouping:
    """Options of the grouping and the launches; other values than the defaults are for measurements and tests.

    Attributes
    ----------
    leaf_entries : int or None
        Entries of a run of subtrees; None: as many as give every block two runs.
    chain_entries : int or None
        Of a chunk of a chain. None: less than the capacity, so that more multiprocessors work on a chain at the price
        of more hops between blocks.
    by_levels : bool
        Each level of groups is a launch of its own.
    grouped : bool
        False: every column by itself.
    """

    leaf_entries: int | None = None
    chain_entries: int | None = None
    by_levels: bool = False
    grouped: bool = True


def group_capacity(device: Any, itemsize: int) -> int:
    """Entries of L + U that fit a block's shared memory if `RESIDENT` blocks share a multiprocessor."""
    available = device.shared_memory_bytes // RESIDENT - RESERVED_BYTES - CONTROL_BYTES - 4 * MOST_COLUMNS
    return int(available // itemsize)


def choose_groups(
    device: Any,
    plan: ColumnPlan,
    division: int,
    capacity: int,
    grouping: Grouping,
    single: np.ndarray | None = None,
) -> Groups:
    """Groups for a device: of whole subtrees, and of chunks of chains.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    division : int
        Columns from here on belong to a dense trailing block, do not wait for each other, and are groups by themselves,
        the last ones.
    capacity : int
        Entries that fit a block.
    grouping : Grouping
    single : ndarray of int32, optional
        Columns before the division, ascending, that are groups by themselves.
    """
    single = np.empty(0, np.int32) if single is None else single
    longest = int(np.delete(np.diff(plan.col_ptr[: division + 1]), single).max(initial=0))
    leaf = grouping.leaf_entries or max(256, plan.nnz // (2 * RESIDENT * int(device.multiprocessors)))
    chain, columns = grouping.chain_entries or max(2048, 3 * longest), MOST_COLUMNS
    if not grouping.grouped:
        leaf, columns = 0, 1
    ranges, level_ptr = plan.groups(division, min(leaf, capacity), min(chain, capacity), columns, single)
    first, end = ranges.reshape(-1, 2).T
    entries = plan.col_ptr[end] - plan.col_ptr[first]
    if division < plan.n:
        trailing = np.arange(division, plan.n, dtype=np.int32)
        ranges = np.concatenate([ranges, np.stack([trailing, trailing + 1], 1).ravel()])
        level_ptr = np.append(level_ptr, np.int32(len(ranges) // 2))
    most = int(entries[entries <= capacity].max(initial=1))
    return Groups(ranges, level_ptr, int((end - first).max(initial=1)), most)


class GroupLaunches(Part):
    """Groups on a device, and launches of kernels that take them by tickets."""

    def __init__(self, device: Any, dtype: np.dtype, groups: Groups, by_levels: bool = False):
        super().__init__(device, dtype)
        self.groups, self.by_levels = groups, by_levels

    _range = cached_property(lambda self: self.upload(self.groups.range))

    def launch_groups(
        self,
        stream: Stream,
        kernel: Kernel,
        file: str,
        control: Buffer,
        begins: Any,
        shared: int,
        known: Sequence[Mapping[str, Any]],
        more: bool = False,
        **fields: Any,
    ) -> None:
        """One launch for the tickets between each two of `begins`; all of them, unless `more` follow."""
        for begin, end in pairwise(map(int, begins)):
            tickets = record(
                struct(file, "ColumnTickets"),
                groups=self._range,
                first=begin,
                count=end - begin,
                last_launch=end == begins[-1] and not more,
                control=control,
            )
            grid = self.blocks(end - begin, 1, RESIDENT)
            stream.launch(kernel, grid, THREADS, shared, record(kernel.arguments, *known, tickets=tickets, **fields))
