"""Mapping of fronts to several devices: branches of the tree by predicted seconds, and the fronts above them one by
one, or several devices for each.

A branch is a run of sibling subtrees, a range of the postorder; nothing is cut below a front that is not large. The
search begins with the trees of the forest, and in each step cuts the branch that takes longest: into its subtrees, or,
if it is one subtree, into the front at its root, which becomes a branch of its own, and the subtrees below it. Every
state is scheduled on the devices, the branches with the longest path to the root first, each to the device that
finishes it first (HEFT, Topcuoglu et al. 2002), and the best schedule is kept. It counts the seconds that the plan
predicts for ranges of fronts, the devices' speeds, copies of contribution blocks between devices, and their memory.

Several devices may share large fronts that are branches of their own, tile by tile (tiles.py): those with fewer than a
certain number of such fronts above them, which the search chooses too. As many devices as are fastest share a front, or
at most half as many as share the front above. The shared fronts are those that could begin first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...cost.calibration import costs_of
from ...cost.model import Costs
from ...cuda.layout import constant
from .plan import SHARED
from .tiles import Shared, best_shared

ALIGN = constant(SHARED, "ARENA_ALIGN")  # scalars that every front's part of an arena is rounded up to a multiple of


class Branch(NamedTuple):
    """Fronts begin .. end - 1, which one device factors at a time.

    Attributes
    ----------
    seconds : float
        Predicted for the device that the plan is for [s].
    roots : tuple of int
        Fronts with parents elsewhere, or without parents.
    """

    begin: int
    end: int
    seconds: float
    roots: tuple[int, ...]


class Link(NamedTuple):
    """Link of two devices: bytes per second, latency of a copy, and seconds of the launches for a stage of a front."""

    rate: float
    seconds: float
    launch: float

    def copy(self, nbytes: float) -> float:
        return self.seconds + nbytes / self.rate


def link_of(costs: Costs, peers: bool) -> Link:
    """Link of devices with peer access, or through the host."""
    known = costs["supernodal.link"]
    return Link(1 / known["byte" if peers else "byte_by_host"], known["copy"], known["launch"])


class Fronts:
    """Properties of a plan that the search needs."""

    def __init__(self, plan: Any):
        self.plan, self.parent, self.is_large = plan, np.asarray(plan.parent), plan.is_large
        itemsize = np.dtype(plan.scalar).itemsize
        self.block_bytes = -(-plan.block_entries // ALIGN) * ALIGN * itemsize
        self.factor_sum = np.concatenate([[0], np.cumsum(plan.factor_entries * itemsize)])

    def children(self, front: int) -> list[int]:
        first, end = self.plan.child_ptr[front : front + 2]
        return sorted(map(int, self.plan.child[first:end]))

    def can_share(self, branch: Branch) -> bool:
        return branch.end - branch.begin == 1 and bool(self.is_large[branch.begin])

    def seconds(self, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
        """Predicted seconds of a factorization of each range."""
        begin, end = (np.array(side, np.int32) for side in zip(*ranges, strict=True))
        return self.plan.range_seconds(begin, end)

    def branches(self, groups: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[Branch]:
        """Branches of ranges and their roots."""
        if not groups:
            return []
        found = self.seconds([group[:2] for group in groups])
        return [Branch(begin, end, float(s), roots) for (begin, end, roots), s in zip(groups, found, strict=True)]

    def trees(self) -> list[Branch]:
        """The forest as one branch."""
        roots = np.flatnonzero(self.parent < 0)
        return self.branches([(0, len(self.parent), tuple(map(int, roots)))])

    def can_cut(self, branch: Branch) -> bool:
        if len(branch.roots) > 1:
            return True
        return branch.end - branch.begin > 1 and bool(self.is_large[branch.roots[0]])

    def cut(self, branch: Branch, grain: float) -> list[Branch]:
        """Smaller branches; of many small subtrees, runs of about `grain` seconds."""
        begin, root = branch.begin, branch.roots[-1]
        has_one_root = len(branch.roots) == 1
        roots = self.children(root) if has_one_root else list(branch.roots)
        starts = [begin, *(root + 1 for root in roots[:-1])]
        subtrees = self.branches([(s, r + 1, (r,)) for s, r in zip(starts, roots, strict=True)])
        found = self.branches([(root, root + 1, (root,))]) if has_one_root else []
        run: list[Branch] = []
        for subtree in subtrees:
            if run and sum(s.seconds for s in run) + subtree.seconds > grain:
                found.append(self._joined(run))
                run = []
            run.append(subtree)
        found.append(self._joined(run))
        if not has_one_root and len(found) == 1:  # all of it is less than the grain: halves
            middle = len(subtrees) // 2
            found = [self._joined(subtrees[:middle]), self._joined(subtrees[middle:])]
        return found

    def _joined(self, run: list[Branch]) -> Branch:
        if len(run) == 1:
            return run[0]
        return self.branches([(run[0].begin, run[-1].end, tuple(s.roots[0] for s in run))])[0]


def place_of(begins: list[int], front: int) -> int:
    """Index of the branch that has a front, given the begins of all; -1 for none."""
    return int(np.searchsorted(begins, front, side="right")) - 1 if front >= 0 else -1


def sent(fronts: Fronts, branch: Branch, above: Branch) -> int:
    """Data that a branch sends to another one [bytes]."""
    return sum(int(fronts.block_bytes[r]) for r in branch.roots if above.begin <= fronts.parent[r] < above.end)


PATIENCE = 8, 2  # cuts without a better schedule before the search ends: a constant, and more for each device
MOST_CUTS = 400
GRAINS = 32  # runs of small subtrees have this part of the work of a device
MOST_SHARED = 12  # shared fronts one above the other
GAIN = 0.9  # maximum of a shared front's seconds, relative to those on one device


class Turn(NamedTuple):
    """When and where a branch runs. For a front that several devices share, with the factor on `device` in the end:
    these devices, and the tile columns of a stage."""

    branch: Branch
    device: int
    start: float
    end: float
    group: tuple[int, ...] = ()
    chunk: int = 0

    @property
    def devices(self) -> tuple[int, ...]:
        """Devices that work on it."""
        return self.group or (self.device,)


@dataclass(frozen=True)
class FrontMapping:
    """Which device factors which branch, in the order of `turns`.

    Attributes
    ----------
    turns : tuple of Turn
        A branch comes after those that hold children of its fronts.
    seconds, single_seconds : float
        Of a factorization, predicted, and of one on the first device [s].
    traffic : int
        Contribution blocks, and rows of shared fronts, sent between devices, about [bytes].
    speeds : tuple of float
        Of the devices.
    """

    turns: tuple[Turn, ...]
    seconds: float
    single_seconds: float
    traffic: int
    speeds: tuple[float, ...]

    def busy(self, devices: int) -> list[float]:
        """Seconds that each device works."""
        return [sum(t.end - t.start for t in self.turns if k in t.devices) for k in range(devices)]

    @property
    def shared(self) -> dict[int, Turn]:
        """Fronts that several devices share."""
        return {turn.branch.begin: turn for turn in self.turns if turn.group}


def map_fronts(
    plan: Any,
    speeds: Sequence[float],
    memory: Sequence[int] | None = None,
    link: Link | None = None,
    share: bool = True,
    values: int = 0,
) -> FrontMapping:
    """The best schedule that the search finds.

    Parameters
    ----------
    plan : Plan
        That does not stream.
    speeds : sequence of float
        Of the devices; 1 for the one that the plan is for.
    memory : sequence of int, optional
        Bytes for factors and blocks that come from other devices, of each device.
    link : Link, optional
        Default: that of devices with peer access.
    share : bool
        Large fronts may be shared by several devices.
    values : int
        Bytes that all devices but the first wait for before they begin.
    """
    fronts, link = Fronts(plan), link or link_of(costs_of(), peers=True)
    branches = fronts.trees()
    grain = branches[0].seconds / (GRAINS * len(speeds))
    schedules = Schedules(fronts, speeds, memory, link, values)
    sharing, most = 0, MOST_SHARED if share and len(speeds) > 1 else 0
    best, waiting = schedules.find(branches, 0), 0
    for _ in range(MOST_CUTS if len(speeds) > 1 else 0):
        longest = max((p for p in branches if fronts.can_cut(p)), key=lambda p: (p.seconds, -p.begin), default=None)
        if longest is None or waiting > PATIENCE[0] + PATIENCE[1] * len(speeds):
            break
        branches.remove(longest)
        branches += fronts.cut(longest, grain)
        levels = range(max(sharing - 1, 0), min(sharing + 1, most) + 1)
        all_found = [(schedules.find(branches, level, halve), level) for level in levels for halve in (False, True)]
        found = [(one, level) for one, level in all_found if one is not None]
        waiting += 1
        if found:
            nearest, sharing = min(found, key=lambda each: (each[0].seconds, each[1]))
            if best is None or nearest.seconds < best.seconds:
                best, waiting = nearest, 0
    if best is None:  # nothing fits: the closest schedule shows how much is missing
        best = Schedules(fronts, speeds, None, link, values).find(branches, 0)
    assert best is not None
    return best


class Schedules:
    """Schedules of branches on devices; parameters as in `map_fronts`."""

    def __init__(
        self, fronts: Fronts, speeds: Sequence[float], memory: Sequence[int] | None, link: Link, values: int = 0
    ):
        self.fronts, self.speeds, self.memory, self.link = fronts, list(speeds), memory, link
        self.single = fronts.trees()[0].seconds / speeds[0]  # seconds on the first device
        self.begin = [0.0] + [link.copy(values) if values else 0.0] * (len(self.speeds) - 1)
        self._shared: dict[tuple[int, tuple[float, ...]], Shared] = {}

    def shared(self, branch: Branch, speeds: Sequence[float]) -> Shared:
        """The fastest way for devices with these speeds to share a front."""
        key = branch.begin, tuple(speeds)
        if key not in self._shared:
            self._shared[key] = best_shared(self.fronts.plan, branch.begin, branch.seconds, speeds, self.link)
        return self._shared[key]

    def _best_count(self, branch: Branch, most: int) -> tuple[int, float]:
        """How many devices should share a front, among `most` and its repeated halves; and the seconds."""
        fastest = sorted(self.speeds, reverse=True)
        counts = [most >> k for k in range(most.bit_length() - 1)]
        found = [(self.shared(branch, fastest[:count]).seconds, count) for count in counts]
        seconds, count = min(found, default=(branch.seconds, 1))
        return (count, seconds) if seconds < GAIN * branch.seconds / fastest[0] else (1, branch.seconds)

    def find(self, branches: list[Branch], sharing: int, halve: bool = False) -> FrontMapping | None:
        """The HEFT schedule in which large fronts with fewer than `sharing` such fronts above them are shared if that
        is faster, with `halve` by half as many devices for each of these; None if memory does not suffice."""
        fronts, order = self.fronts, sorted(branches)
        begins = [branch.begin for branch in order]
        above = [sorted({place_of(begins, int(fronts.parent[r])) for r in p.roots} - {-1}) for p in order]
        below: list[list[int]] = [[] for _ in order]
        seconds, level = [branch.seconds for branch in order], [0] * len(order)
        counts = [1] * len(order)
        longest = [0.0] * len(order)  # paths to the root
        for k in reversed(range(len(order))):
            level[k] = max((level[up] for up in above[k]), default=0)
            if fronts.can_share(order[k]):
                if level[k] < sharing:
                    counts[k], seconds[k] = self._best_count(order[k], len(self.speeds) >> level[k] * halve)
                level[k] += 1
            longest[k] = seconds[k] + max((longest[up] for up in above[k]), default=0.0)
            for up in above[k]:
                below[up].append(k)
        state = State(self)
        # A branch is after those below it in `order`, and its path is shorter; for equal paths the former comes first.
        for k in sorted(range(len(order)), key=lambda k: (-longest[k], k)):
            if not state.place(k, order[k], [state.turns[b] for b in below[k]], counts[k]):
                return None
        turns = sorted(state.turns.values(), key=lambda t: (t.start, t.end, t.branch.begin))
        return FrontMapping(tuple(turns), max(state.free), self.single, int(state.traffic), tuple(self.speeds))


class State:
    """State of the devices while branches are assigned to them.

    Attributes
    ----------
    turns : dict of int to Turn
        By branch.
    free : list of float
        Time from which each device is free.
    traffic : float
    """

    def __init__(self, schedules: Schedules):
        self._schedules, self._fronts = schedules, schedules.fronts
        self._speeds, self._link = schedules.speeds, schedules.link
        self._left = None if schedules.memory is None else list(schedules.memory)
        self._scratch = [0] * len(self._speeds)  # for factors of fronts that another device has in the end
        self.turns: dict[int, Turn] = {}
        self.free, self.traffic = list(schedules.begin), 0.0

    def place(self, k: int, branch: Branch, below: list[Turn], count: int) -> bool:
        """Assign it to `count` devices, or to the one that finishes it first; False if none has the memory."""
        return (count > 1 and self._share(k, branch, below, count)) or self._give(k, branch, below)

    def _give(self, k: int, branch: Branch, below: list[Turn]) -> bool:
        choices = []
        for device, speed in enumerate(self._speeds):
            start = self._start(branch, below, (device,), device)
            if self._left is None or self._left[device] >= self._wanted(branch):
                choices.append((start + branch.seconds / speed, device, start))
        if not choices:
            return False
        end, device, start = min(choices)
        self.turns[k] = Turn(branch, device, start, end)
        self.free[device] = end
        self.traffic += sum(self._transfer(turn, branch, (device,))[1] for turn in below)
        if self._left is not None:
            self._left[device] -= self._wanted(branch)
        return True

    def _share(self, k: int, branch: Branch, below: list[Turn], count: int) -> bool:
        everybody = tuple(range(len(self._speeds)))
        starts = sorted((self._start(branch, below, everybody, device), device) for device in everybody)
        group = tuple(sorted(device for _, device in starts[:count]))
        owner = group[0]
        if self._left is not None:
            taken = {owner: self._taken(branch, below, group, owner) for owner in group}
            homes = [h for h in group if all(t <= left for t, left in zip(taken[h], self._left, strict=True))]
            if not homes:
                return False
            owner = homes[0]
            self._left = [left - t for t, left in zip(taken[owner], self._left, strict=True)]
            wanted = [self._wanted(branch) * (d in group and d != owner) for d in everybody]
            self._scratch = [max(both) for both in zip(self._scratch, wanted, strict=True)]
        split = self._schedules.shared(branch, [self._speeds[device] for device in group])
        start = max(self._start(branch, below, group, device) for device in group)
        self.turns[k] = Turn(branch, owner, start, start + split.seconds, group, split.chunk)
        for device in group:
            self.free[device] = start + split.seconds
        self.traffic += split.sent + sum(self._transfer(turn, branch, group)[1] for turn in below)
        return True

    def _start(self, branch: Branch, below: list[Turn], group: tuple[int, ...], device: int) -> float:
        """When a device of the group can begin with a branch."""
        return max([self.free[device], *(turn.end + self._transfer(turn, branch, group)[0] for turn in below)])

    def _wanted(self, branch: Branch) -> int:
        return int(self._fronts.factor_sum[branch.end] - self._fronts.factor_sum[branch.begin])

    def _taken(self, branch: Branch, below: list[Turn], group: tuple[int, ...], owner: int) -> list[int]:
        """Memory of every device for a front of a group: its factor, and blocks that would otherwise not be there."""
        factor, found = self._wanted(branch), [0] * len(self._speeds)
        for device in group:
            blocks = sum(sent(self._fronts, turn.branch, branch) for turn in below if turn.devices != (device,))
            found[device] = blocks + (factor if device == owner else max(0, factor - self._scratch[device]))
        return found

    def _transfer(self, turn: Turn, branch: Branch, group: tuple[int, ...]) -> tuple[float, float]:
        """Seconds and bytes of the data that a branch sends to another one, from these devices."""
        nbytes, sources = float(sent(self._fronts, turn.branch, branch)), turn.devices
        if len(sources) > 1 or len(group) > 1:
            nbytes *= 0.5 if self._fronts.plan.one_triangle else 1.0
        nbytes *= 1 - len(set(sources) & set(group)) / (len(sources) * len(group))
        return (self._link.copy(nbytes / min(len(sources), len(group))) if nbytes else 0.0), nbytes


def segments_of(fronts: Fronts, mapping: FrontMapping, block_bytes: int) -> list[tuple[int, int, int]]:
    """Begin, end and device of ranges in the order of execution, each with about that many bytes of blocks."""
    found = []
    for turn in mapping.turns:
        begin, end = turn.branch.begin, turn.branch.end
        above = fronts.parent[begin:end]
        ends = begin + 1 + np.flatnonzero((above < 0) | (above >= end) | fronts.is_large[above])
        sums = np.cumsum(fronts.block_bytes[begin:end])
        cuts, filled = [begin], 0
        for cut, following in pairwise([begin, *map(int, ends)]):
            if cut > cuts[-1] and sums[following - begin - 1] - filled > block_bytes:
                cuts.append(cut)
                filled = int(sums[cut - begin - 1])
        found += [(b, e, turn.device) for b, e in pairwise([*cuts, end])]
    return found
