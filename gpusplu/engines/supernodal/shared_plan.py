"""A plan with fronts mapped to several devices, within their memories: the part of each device, and the data sent
between devices.

All devices have the same fronts with the same numbers; the differences are where a device stores the block of a child
that another device has, and for how many children a front waits in a solve. The factor of a front that several devices
share (tiles.py) ends on its owner; the others store it in memory that the next such front reuses.

A solve goes by parts: all segments of a device up to one that needs another device's take one launch in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...common.matrix import Pattern
from ...common.view import View
from ...cost.calibration import costs_of, for_core
from ...cuda.devices import usable_bytes
from ...cuda.layout import struct
from ..device.buffers import STATUS
from ..interface import Analysis
from .front_mapping import ALIGN, FrontMapping, Fronts, link_of, map_fronts, segments_of
from .memory import (
    BLOCK_SHARE,
    all_vector_bytes,
    arena_bytes,
    buffer_bytes,
    factor_memory,
    limits_of,
    needed_bytes,
    plan_bytes,
)
from .plan import FRONT, Limits, Plan, make_best_plan, predict
from .tiles import TASK, Rectangle, Tiles, rectangles_of, tiles_of

# ---- The local plan of one device

LARGE_SOLVE_FRONT = struct("shared/solve.hpp", "LargeSolveFront")


def aligned(scalars: int) -> int:
    """Rounded up like parts of arenas."""
    return -(-scalars // ALIGN) * ALIGN


class LocalPlan(View):
    """A plan as seen by one of the devices."""

    def __init__(self, plan: SharedPlan, device: int):
        super().__init__(plan)
        self._plan, self._device = plan, device
        self.factor_size = self._scratch + max((plan.tiles[f].entries for f in self._others), default=0)
        self.block_size = int(plan.block_sizes[device]) + sum(
            aligned(int(plan.block_entries[f])) for f in self._foreign_blocks
        )

    #: Which fronts are this device's.
    own = cached_property(lambda self: self._plan.front_device == self._device)

    @cached_property
    def front_records(self) -> np.ndarray:
        """Type FRONT: foreign blocks are at the place where they arrive, factors of foreign fronts at their temporary
        place."""
        plan = self._plan
        records: np.ndarray = plan.front_records
        edges = [edge.child for edge in plan.edges if plan.device_of[edge.target] == self._device]
        if not (edges or self._others or self._foreign_blocks):
            return records
        records = np.array(records, FRONT)
        records["factor"][self._others] = self._scratch
        for front in [*edges, *self._foreign_blocks]:
            records["block"][front] = self.block_place(front)
        return records

    # ---- fronts that several devices share

    @property
    def _scratch(self) -> int:
        """Offset of the factors of shared fronts that another device has in the end [scalars]."""
        return int(self._plan.factor_sizes[self._device])

    @cached_property
    def _others(self) -> list[int]:
        """Fronts that this device shares and others have in the end."""
        owner, device = self._plan.front_device, self._device
        return [front for front, tiles in self._plan.tiles.items() if device in tiles.group and owner[front] != device]

    @cached_property
    def _foreign_blocks(self) -> dict[int, int]:
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
        """Offset of a front's factor [scalars]."""
        return self._scratch if front in self._others else int(self._plan.factor_offset[front])

    def block_place(self, front: int) -> int:
        """Offset of its contribution block."""
        if front in self._foreign_blocks:
            return self._foreign_blocks[front]
        own = self._plan.front_device[front] == self._device
        return int((self._plan.block_offset if own else self._plan.received)[front])

    @cached_property
    def _stages(self) -> tuple[np.ndarray, dict[int, list[tuple[int, int]]]]:
        """Tasks of large fronts, those of shared fronts by stage; and where this device's tasks of each stage are: the
        first one, and how many."""
        plan = self._plan
        tasks, found = np.array(plan.large_tasks).view(TASK), {}
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
    def large_tasks(self) -> np.ndarray:
        return self._stages[0] if self._plan.tiles else self._plan.large_tasks

    def stage_tasks(self, front: int, stage: int) -> tuple[int, int]:
        """First task and number of tasks of this device in a stage, from -1 on, of a shared front."""
        return self._stages[1][front][stage + 1]

    @cached_property
    def solve_schedule(self) -> Any:
        """The schedule of all devices; a front waits only for children on this device."""
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
        return np.repeat(first, width) + offsets

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
        return scale[perm[self.at]] if self._device and scale.size else scale


class ScheduleShare(View):
    """The solve schedule as seen by one of the devices."""

    def __init__(self, plan: SharedPlan, device: int):
        super().__init__(plan.solve_schedule)
        self._plan, self._device = plan, device

    @cached_property
    def large(self) -> np.ndarray:
        plan = self._plan
        records = np.array(self._viewed.large).view(LARGE_SOLVE_FRONT)
        number, tile = np.cumsum(plan.is_large) - 1, int(plan.large_tile)
        for edge in plan.edges:
            if plan.is_large[edge.child] and plan.device_of[edge.target] == self._device:
                records["arrivals"][number[edge.parent]] -= -(-plan.below_range(edge.child)[1] // tile)
        return records.view(np.uint8)


class Edge(NamedTuple):
    """A front with its parent on another device: fronts and segments."""

    child: int
    parent: int
    source: int
    target: int


class SharedPlan(Plan):
    """Fronts in segments, each of which belongs to one device.

    Attributes
    ----------
    mapping : FrontMapping
    devices : int
    peer_to_peer : bool
        Whether all devices have peer access to each other.
    order : list of int
        Segments in the order of execution, children before parents.
    device_of : list of int
        Device of every segment.
    """

    def __init__(
        self, core: Any, limits: Limits, mapping: FrontMapping, order: list[int], device_of: list[int], devices: int
    ):
        super().__init__(core, limits)
        self.peer_to_peer = True
        self.mapping, self.order, self.device_of, self.devices = mapping, order, device_of, devices

    @property
    def facts(self) -> dict[str, Any]:
        """For explain()."""
        busy = self.mapping.busy(self.devices)
        return {
            "shares": [seconds / sum(busy) for seconds in busy],
            "shared_fronts": len(self.mapping.shared),
            "traffic_bytes": self.mapping.traffic,
            "peer_to_peer": self.peer_to_peer,
            "seconds_shared": self.mapping.seconds,
            "seconds_on_one": self.mapping.single_seconds,
        }

    #: Segment and device of every front.
    front_segment = cached_property(lambda self: np.repeat(np.arange(len(self.device_of)), np.diff(self.segment_ptr)))
    front_device = cached_property(lambda self: np.array(self.device_of)[self.front_segment])

    @cached_property
    def links(self) -> set[tuple[int, int]]:
        """Segments of children and of their parents, where they differ."""
        child = np.flatnonzero(self.parent >= 0)
        pairs = np.stack([self.front_segment[child], self.front_segment[self.parent[child]]], axis=1)
        return {(int(s), int(t)) for s, t in np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)}

    @cached_property
    def edges(self) -> list[Edge]:
        """Data that devices leave to others, in the order of the children."""
        parent, device, segment = self.parent, self.front_device, self.front_segment
        cut = np.flatnonzero((parent >= 0) & (device != device[parent]))
        return [Edge(int(c), int(parent[c]), int(segment[c]), int(segment[parent[c]])) for c in cut]

    @cached_property
    def tiles(self) -> dict[int, Tiles]:
        """Tiles of the fronts that several devices share, by front."""
        turns = self.mapping.shared.items()
        speeds = {f: [s * (k in turn.group) for k, s in enumerate(self.mapping.speeds)] for f, turn in turns}
        return {f: tiles_of(self, f, turn.chunk, speeds[f]) for f, turn in turns}

    @cached_property
    def transfers(self) -> dict[int, list[Rectangle]]:
        """Parts of contribution blocks that go to other devices, by front, if it or its parent is shared."""
        shared = np.zeros(self.nf + 1, bool)  # one more: the parent of roots
        shared[list(self.tiles)] = True
        touched = np.flatnonzero((shared[:-1] | shared[self.parent]) & (self.parent >= 0))
        known = self, self.front_device, self.tiles
        return {front: rectangles_of(*known, front) for front in touched.tolist()}

    @cached_property
    def sent(self) -> dict[int, list[tuple[int, list[Rectangle]]]]:
        """By segment: fronts with blocks that go to other devices after it, and the parts that do."""
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
        """For every segment, the other devices that need its part of a solution."""
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
        return self._viewed.solve_schedule(part[self.front_segment], len(self.parts))

    def pivot_range(self, segment: int) -> tuple[int, int]:
        """Begin and end of its pivots in the plan's order."""
        begin, end = self.segment_ptr[segment : segment + 2].tolist()
        return int(self.first[begin]), int(self.first[end - 1] + self.width[end - 1])

    def below_range(self, front: int) -> tuple[int, int]:
        """Contribution of a front to its parent in a solve: first place in the vector arena, and length."""
        begin, end = self.below_ptr[front : front + 2].tolist()
        return int(begin), int(end - begin)


def share_plan(plan: Plan, mapping: FrontMapping, devices: int, block_bytes: int) -> SharedPlan:
    """The plan with the fronts mapped by `mapping`, with blocks of about `block_bytes` at a time."""
    ranges = segments_of(Fronts(plan), mapping, block_bytes)
    begins = sorted(begin for begin, _, _ in ranges)
    number = {begin: k for k, begin in enumerate(begins)}
    order = [number[begin] for begin, _, _ in ranges]
    device_of = [device for _, _, device in sorted(ranges)]
    ptr, turns, owners = (np.array(a, np.int32) for a in ([*begins, plan.nf], order, device_of))
    core = plan.with_segments(ptr, turns, owners, devices)
    return SharedPlan(core, plan.limits, mapping, order, device_of, devices)


def shares_of(plan: SharedPlan) -> Sequence[Any]:
    return [LocalPlan(plan, device) for device in range(plan.devices)]


# ---- Plans within the memories of the devices

MOST_HALVINGS = 8  # of the memory for contribution blocks that a device has at a time


def plan_shared(
    cores: list[Any], pattern: Pattern, dtype: Any, devices: Sequence[Any], device_memory: int | None
) -> Analysis:
    """The best analysis and its fronts as `plan_within` returns them if they fit, mapped to the devices.

    If they do not fit, the plan is the closest one.
    """
    limits = common_limits(devices, device_memory)
    core, plan, seconds = make_best_plan(cores, pattern, dtype, limits)
    compared = tuple((one.ordering, took) for one, took in zip(cores, seconds, strict=True)) if len(cores) > 1 else ()
    usable = [usable_bytes(device, device_memory) for device in devices]
    overhead = needed_bytes(plan, pattern) - arena_bytes(plan)
    available = [max(0, int((1 - BLOCK_SHARE) * (free - overhead))) for free in usable]
    peers = reach_each_other(devices)
    link = link_of(costs_of(devices[0].name), peers)
    speeds = speeds_of(devices, core, dtype, limits)
    values = pattern.nnz * np.dtype(dtype).itemsize
    mapping = map_fronts(plan, speeds, available, link, values=values)
    shared = shared_within(plan, mapping, pattern, usable)
    if mapping.shared and not fits(shared, pattern, usable):  # a front that all devices share takes memory of all
        shared = shared_within(
            plan, map_fronts(plan, speeds, available, link, share=False, values=values), pattern, usable
        )
    shared.peer_to_peer = peers
    return Analysis(core, shared, compared)


def shared_within(plan: Plan, mapping: FrontMapping, pattern: Pattern, usable: list[int]) -> SharedPlan:
    """The plan with its fronts as mapped, with as much memory for blocks as there is, or the least."""
    block_bytes = int(BLOCK_SHARE * min(usable))
    shared = share_plan(plan, mapping, len(usable), block_bytes)
    for _ in range(MOST_HALVINGS):
        if fits(shared, pattern, usable):
            break
        block_bytes //= 2
        smaller = share_plan(plan, mapping, len(usable), block_bytes)
        if max(smaller.block_sizes) >= 0.95 * max(shared.block_sizes):
            break
        shared = smaller
    return shared


def fits(plan: SharedPlan, pattern: Pattern, usable: list[int]) -> bool:
    """Whether each device has the memory that it needs."""
    needed = needed_of_each(plan, pattern)
    return all(wanted <= free for wanted, free in zip(needed, usable, strict=True))


def common_limits(devices: Sequence[Any], device_memory: int | None) -> Limits:
    """Limits of the first device, with an amount of shared memory that all devices have."""
    shared = min(device.shared_memory_bytes for device in devices)
    return replace(limits_of(devices[0], device_memory), shared_memory_bytes=shared, block_bytes=0)


def speeds_of(devices: Sequence[Any], core: Any, dtype: Any, limits: Limits) -> list[float]:
    """Predicted speeds for this analysis, relative to the first device."""

    def seconds(device: Any) -> float:
        known = {"multiprocessors": device.multiprocessors, "arch": device.arch, "costs": for_core(device.name)}
        return predict(core, dtype, replace(limits, **known))[0]

    kinds = [(device.name, device.multiprocessors) for device in devices]
    found = {kind: seconds(device) for kind, device in zip(kinds, devices, strict=True)}
    return [found[kinds[0]] / found[kind] for kind in kinds]


def reach_each_other(devices: Sequence[Any]) -> bool:
    """Whether all devices have peer access, so that no copy goes through the host."""
    return all(one.reaches(other) for one in devices for other in devices)


def needed_of_each(plan: SharedPlan, pattern: Pattern) -> list[int]:
    """Memory of each device for a factor and one right-hand side at a time [bytes]."""
    itemsize, shares = np.dtype(plan.scalar).itemsize, shares_of(plan)
    staged = sum(share.ld for share in shares[1:]) * itemsize
    found = [needed_bytes(shares[0], pattern) + staged]
    for share in shares[1:]:
        memory = factor_memory(share)
        sizes = [*memory.empty.values(), *memory.zeros.values(), pattern.nnz * itemsize, STATUS.itemsize]
        own = buffer_bytes([*sizes, *2 * [share.ld * itemsize]])  # with rows of b and x
        found.append(own + plan_bytes(share) + all_vector_bytes(share, 1))
    return found
