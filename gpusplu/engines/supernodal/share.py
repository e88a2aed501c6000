"""A plan of several devices as one of them has it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...cuda.layout import struct
from .deal_pieces import ALIGN
from .plan import FRONT, View
from .tiles import TASK

if TYPE_CHECKING:
    from .shared_plan import SharedPlan

LARGE_SOLVE_FRONT = struct("shared/solve.hpp", "LargeSolveFront")


def aligned(scalars: int) -> int:
    """As parts of arenas are."""
    return -(-scalars // ALIGN) * ALIGN


class Share(View):
    """A plan as one of the devices has it."""

    def __init__(self, plan: SharedPlan, device: int):
        super().__init__(plan)
        self._plan, self._device = plan, device
        self.factor_size = self._scratch + max((plan.tiles[f].entries for f in self._others), default=0)
        self.block_size = int(plan.block_sizes[device]) + sum(aligned(int(plan.block_entries[f])) for f in self._beside)

    @cached_property
    def own(self) -> np.ndarray:
        """Which fronts are this device's."""
        found: np.ndarray = self._plan.front_device == self._device
        return found

    @cached_property
    def front_records(self) -> np.ndarray:
        """Type FRONT: blocks that come from elsewhere are where they come to, factors of others' fronts where they are
        for a while."""
        records, plan = self._plan.front_records, self._plan
        edges = [edge.child for edge in plan.edges if plan.device_of[edge.target] == self._device]
        if not (edges or self._others or self._beside):
            return records
        records = np.array(records, FRONT)
        records["factor"][self._others] = self._scratch
        for front in [*edges, *self._beside]:
            records["block"][front] = self.block_place(front)
        return records

    # ---- fronts that several devices share

    @property
    def _scratch(self) -> int:
        """Where those factors are that are another device's in the end [scalars]."""
        return int(self._plan.factor_sizes[self._device])

    @cached_property
    def _others(self) -> list[int]:
        """Fronts that it shares and others have in the end."""
        home, device = self._plan.front_device, self._device
        return [front for front, tiles in self._plan.tiles.items() if device in tiles.group and home[front] != device]

    @cached_property
    def _beside(self) -> dict[int, int]:
        """Places of blocks that are not in the plan's order: neither from nor for a front of this device."""
        plan, device, found = self._plan, self._device, {}
        at = int(plan.block_sizes[device])
        for front in sorted(plan.transfers):
            ends = front, int(plan.parent[front])
            part = any(end in plan.tiles and device in plan.tiles[end].group for end in ends)
            if part and device not in plan.front_device[list(ends)]:
                found[front] = at
                at += aligned(int(plan.block_entries[front]))
        return found

    def factor_place(self, front: int) -> int:
        """Of a front's factor [scalars]."""
        return self._scratch if front in self._others else int(self._plan.factor_offset[front])

    def block_place(self, front: int) -> int:
        """Of its contribution block."""
        if front in self._beside:
            return self._beside[front]
        own = self._plan.front_device[front] == self._device
        return int((self._plan.block_offset if own else self._plan.received)[front])

    @cached_property
    def _stages(self) -> tuple[np.ndarray, dict[int, list[tuple[int, int]]]]:
        """Tasks of large fronts, those of shared fronts by stage; and where those of each stage are that are this
        device's: the first one, and how many."""
        plan = self._plan
        tasks, found = np.array(plan.large_task_bytes).view(TASK), {}
        for front, tiles in plan.tiles.items():
            launch = plan.launches[plan.launch_ptr[plan.front_segment[front]]]
            begin, end = int(launch["begin"]), int(launch["begin"] + launch["count"])
            stage, owner = tiles.stages(tasks["row"][begin:end], tasks["col"][begin:end])
            stage[owner != self._device] = tiles.chunks + 1
            tasks[begin:end] = tasks[begin:end][np.argsort(stage, kind="stable")]
            counts = np.bincount(stage + 1, minlength=tiles.chunks + 2)[: tiles.chunks + 2]
            starts = begin + np.cumsum(counts) - counts
            found[front] = list(zip(starts.tolist(), counts.tolist(), strict=True))
        return tasks.view(np.uint8), found

    @property
    def large_task_bytes(self) -> np.ndarray:
        return self._stages[0] if self._plan.tiles else self._plan.large_task_bytes

    def stage_tasks(self, front: int, stage: int) -> tuple[int, int]:
        """Of a shared front, from stage -1 on: the first task of this device, and how many."""
        return self._stages[1][front][stage + 1]

    @cached_property
    def solve_schedule(self) -> Any:
        """Of all devices; a front waits for children of this one only."""
        return ScheduleShare(self._plan, self._device)

    @cached_property
    def last_part(self) -> int:
        plan = self._plan
        return next((k for k, part in enumerate(plan.parts) if plan.device_of[part[0]] == self._device), -1)

    # ---- rows of right-hand sides and solutions: the first device has those of the caller, the others their own

    @cached_property
    def at(self) -> np.ndarray:
        """Plan positions of this device's pivots, ascending."""
        fronts = np.flatnonzero(self.own)
        width, first = self._plan.width[fronts], self._plan.first[fronts].astype(np.int64)
        offsets = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        found: np.ndarray = np.repeat(first, width) + offsets
        return found

    @property
    def ld(self) -> int:
        return len(self.at) if self._device else int(self._plan.n)

    def _places(self) -> np.ndarray:
        places = np.zeros(self._plan.n, np.int32)
        places[self.at] = np.arange(len(self.at), dtype=np.int32)
        return places

    row_perm = cached_property(lambda self: self._places() if self._device else self._plan.row_perm)
    col_perm = cached_property(lambda self: self.row_perm if self._device else self._plan.col_perm)
    row_scale = cached_property(lambda self: self._scale(self._plan.row_scale, self._plan.row_perm))
    col_scale = cached_property(lambda self: self._scale(self._plan.col_scale, self._plan.col_perm))

    def _scale(self, scale: np.ndarray, perm: np.ndarray) -> np.ndarray:
        own: np.ndarray = scale[perm[self.at]] if self._device and scale.size else scale
        return own


class ScheduleShare(View):
    """The solve schedule as one of the devices has it."""

    def __init__(self, plan: SharedPlan, device: int):
        super().__init__(plan.solve_schedule)
        self._plan, self._device = plan, device

    @cached_property
    def large_bytes(self) -> np.ndarray:
        plan = self._plan
        records = np.array(self._viewed.large_bytes).view(LARGE_SOLVE_FRONT)
        number, tile = np.cumsum(plan.is_large) - 1, int(plan.large_tile)
        for edge in plan.edges:
            if plan.is_large[edge.child] and plan.device_of[edge.target] == self._device:
                records["arrivals"][number[edge.parent]] -= -(-plan.below_range(edge.child)[1] // tile)
        found: np.ndarray = records.view(np.uint8)
        return found
