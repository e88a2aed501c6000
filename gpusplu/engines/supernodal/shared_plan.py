"""A plan whose fronts are dealt to several devices: what each of them is told, and what goes from one to another.

All devices have the same fronts with the same numbers; what differs is where a device has the block of a child that is
another's, and for how many children a front waits in a solve. Of a front that several share (tiles.py), the factor is
its own device's in the end; the others have it in memory that the next such front takes, too.

A solve goes by parts: all segments of a device up to one that needs another device's come in one launch each way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from .deal import Deal, segments_of
from .deal_pieces import Fronts
from .plan import Limits, Plan
from .share import Share
from .tiles import Rectangle, Tiles, Transfers, tiles_of


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
            "shared_fronts": len(self.deal.shared),
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
    def tiles(self) -> dict[int, Tiles]:
        """Of the fronts that several devices share, by front."""
        turns = self.deal.shared.items()
        speeds = {f: [s * (k in turn.group) for k, s in enumerate(self.deal.speeds)] for f, turn in turns}
        return {f: tiles_of(self, f, turn.chunk, speeds[f]) for f, turn in turns}

    @cached_property
    def transfers(self) -> dict[int, list[Rectangle]]:
        """Parts of contribution blocks that go to other devices, by front, where it or its parent is shared."""
        shared = np.zeros(self.nf + 1, bool)  # one more: the parent of roots
        shared[list(self.tiles)] = True
        touched = np.flatnonzero((shared[:-1] | shared[self.parent]) & (self.parent >= 0))
        rectangles = Transfers(self, self.front_device, self.tiles)
        return {int(front): rectangles(int(front)) for front in touched}

    @cached_property
    def sent(self) -> dict[int, list[tuple[int, list[Rectangle]]]]:
        """By segment: fronts whose blocks go to other devices behind it, with the parts that do."""
        found: dict[int, list[tuple[int, list[Rectangle]]]] = {}
        whole = {e.child: e for e in self.edges if e.child not in self.transfers}
        for front, e in whole.items():
            rows = 0, int(self.rows[front] - self.width[front])
            part = Rectangle(self.device_of[e.source], self.device_of[e.target], rows, rows)
            found.setdefault(e.source, []).append((front, [part]))
        for front, parts in self.transfers.items():
            found.setdefault(int(self.front_segment[front]), []).append((front, parts))
        return found

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
