"""A plan whose fronts are dealt to several devices: what each of them is told, and what goes from one to another.

All devices have the same fronts with the same numbers; what differs is where a device has the block of a child that is
another's, and for how many children a front waits in a solve. A solve goes by parts: all segments of a device up to one
that needs another device's come in one launch each way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...cuda.layout import struct
from .deal import Deal, Fronts, segments_of
from .plan import FRONT, Limits, Plan

LARGE_SOLVE_FRONT = struct("shared/solve.hpp", "LargeSolveFront")


class Edge(NamedTuple):
    """A front whose parent is another device's: fronts and segments."""

    child: int
    parent: int
    source: int
    target: int


class SharedPlan(Plan):
    """Fronts in segments, each of which is a device's.

    Attributes
    ----------
    deal : Deal
    devices : int
    peer_to_peer : bool
        They all reach each other.
    order : list of int
        Segments as they run, children before parents.
    device_of : list of int
        Of every segment.
    """

    def __init__(self, core: Any, limits: Limits, deal: Deal, order: list[int], device_of: list[int], devices: int):
        super().__init__(core, limits)
        self.peer_to_peer = True
        self.deal, self.order, self.device_of, self.devices = deal, order, device_of, devices

    @property
    def facts(self) -> dict[str, Any]:
        """For explain()."""
        busy = self.deal.busy(self.devices)
        return {
            "shares": [seconds / sum(busy) for seconds in busy],
            "traffic_bytes": self.deal.traffic,
            "peer_to_peer": self.peer_to_peer,
            "seconds_shared": self.deal.seconds,
            "seconds_on_one": self.deal.alone,
        }

    @cached_property
    def front_segment(self) -> np.ndarray:
        """Of every front."""
        counts = np.diff(self.segment_ptr)
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def front_device(self) -> np.ndarray:
        """Of every front."""
        found: np.ndarray = np.array(self.device_of)[self.front_segment]
        return found

    @cached_property
    def links(self) -> set[tuple[int, int]]:
        """Segments of children and of their parents, where they differ."""
        child = np.flatnonzero(self.parent >= 0)
        pairs = np.stack([self.front_segment[child], self.front_segment[self.parent[child]]], axis=1)
        return {(int(s), int(t)) for s, t in np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)}

    @cached_property
    def edges(self) -> list[Edge]:
        """What devices leave to others, in the order of the children."""
        parent, device, segment = self.parent, self.front_device, self.front_segment
        cut = np.flatnonzero((parent >= 0) & (device != device[parent]))
        return [Edge(int(c), int(parent[c]), int(segment[c]), int(segment[parent[c]])) for c in cut]

    @cached_property
    def parts(self) -> list[list[int]]:
        """Segments that are solved with together."""
        found: list[list[int]] = []
        last: dict[int, list[int]] = {}  # of each device
        waits = {edge.target for edge in self.edges}
        for segment in self.order:
            device = self.device_of[segment]
            if device not in last or segment in waits:
                last[device] = []
                found.append(last[device])
            last[device].append(segment)
        return found

    @cached_property
    def readers(self) -> list[set[int]]:
        """Of every segment, the other devices that need its part of a solution."""
        below = [{device} for device in self.device_of]
        children: dict[int, list[int]] = {}
        for child, segment in self.links:
            children.setdefault(segment, []).append(child)
        for segment in self.order:
            below[segment] = below[segment].union(*(below[child] for child in children.get(segment, ())))
        return [devices - {self.device_of[segment]} for segment, devices in enumerate(below)]

    @property
    def solve_parts(self) -> int:
        return len(self.parts)

    @cached_property
    def solve_schedule(self) -> Any:
        part = np.empty(len(self.device_of), np.int32)
        for number, segments in enumerate(self.parts):
            part[segments] = number
        return _core.make_solve_schedule_in_parts(self._core, part[self.front_segment], len(self.parts))

    def pivot_range(self, segment: int) -> tuple[int, int]:
        """Of its pivots: begin and end in the plan's order."""
        begin, end = self.segment_ptr[segment : segment + 2].tolist()
        return int(self.first[begin]), int(self.first[end - 1] + self.width[end - 1])

    def below_range(self, front: int) -> tuple[int, int]:
        """Of what a front adds to its parent in a solve: first place in the vector arena, and how many."""
        begin, end = self.below_ptr[front : front + 2].tolist()
        return int(begin), int(end - begin)

    def block_entries(self, front: int) -> int:
        """Of a front's contribution block [scalars]."""
        height = int(self.rows[front] - self.width[front])
        return (height + (height % 2 if self.phase[front] == 3 else 0)) * height


class Share:
    """A plan as one of the devices has it."""

    def __init__(self, plan: SharedPlan, device: int):
        self._plan, self._device = plan, device
        self.factor_size, self.block_size = int(plan.factor_sizes[device]), int(plan.block_sizes[device])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plan, name)

    @cached_property
    def own(self) -> np.ndarray:
        """Which fronts are this device's."""
        found: np.ndarray = self._plan.front_device == self._device
        return found

    @cached_property
    def front_records(self) -> np.ndarray:
        """Type FRONT: blocks that come from elsewhere are where they come to."""
        records, plan = self._plan.front_records, self._plan
        children = [edge.child for edge in plan.edges if plan.device_of[edge.target] == self._device]
        if children:
            records = np.array(records, FRONT)
            records["block"][children] = plan.received[children]
        return records

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


class ScheduleShare:
    """The solve schedule as one of the devices has it."""

    def __init__(self, plan: SharedPlan, device: int):
        self._all, self._plan, self._device = plan.solve_schedule, plan, device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._all, name)

    @cached_property
    def large_bytes(self) -> np.ndarray:
        plan = self._plan
        records = np.array(self._all.large_bytes).view(LARGE_SOLVE_FRONT)
        number, tile = np.cumsum(plan.phase == 3) - 1, int(plan.large_tile)
        for edge in plan.edges:
            if plan.phase[edge.child] == 3 and plan.device_of[edge.target] == self._device:
                records["arrivals"][number[edge.parent]] -= -(-plan.below_range(edge.child)[1] // tile)
        found: np.ndarray = records.view(np.uint8)
        return found


def share_plan(plan: Plan, deal: Deal, devices: int, block_bytes: int) -> SharedPlan:
    """The plan with the fronts where `deal` has them, blocks of about `block_bytes` at a time."""
    ranges = segments_of(Fronts(plan), deal, block_bytes)
    begins = sorted(begin for begin, _, _ in ranges)
    number = {begin: k for k, begin in enumerate(begins)}
    order = [number[begin] for begin, _, _ in ranges]
    device_of = [device for _, _, device in sorted(ranges)]
    ptr, turns, owners = (np.array(a, np.int32) for a in ([*begins, plan.nf], order, device_of))
    core = _core.plan_with_segments(plan._core, ptr, turns, owners, devices)
    return SharedPlan(core, plan.limits, deal, order, device_of, devices)


def shares_of(plan: SharedPlan) -> Sequence[Any]:
    return [Share(plan, device) for device in range(plan.devices)]
