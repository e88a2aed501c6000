"""Fronts dealt to several devices: branches of the tree by predicted seconds, and the fronts above them one by one.

A branch is a run of sibling subtrees, a range of the postorder; below a front that is not large nothing is cut. The
search begins with the trees of the forest, and in each step cuts the branch that takes longest: into its subtrees, or,
if it is one, into the front at its root, which from then on is a piece of work of its own, and the subtrees below it.
Every state is scheduled on the devices, the pieces with the longest way to the root first, each to the device that is
done with it first (HEFT, Topcuoglu et al. 2002), and the best schedule is kept. It counts the seconds that the plan
predicts for ranges of fronts, the devices' speeds, copies of contribution blocks between devices, and their memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ... import _core

PATIENCE = 8, 2  # cuts without a better schedule before the search ends: so many, and more for each device
MOST_CUTS = 400
ALIGN = 4  # scalars that every front's part of an arena is rounded up to (kernels/shared/fronts.hpp)
# Bytes a second between devices, and seconds of a copy besides: NVLink's, and by way of the host; not measured.
PEER_RATE, HOST_RATE, COPY_SECONDS = 150e9, 20e9, 10e-6


class Piece(NamedTuple):
    """Fronts begin .. end - 1, which one device factors at a time.

    Attributes
    ----------
    seconds : float
        Predicted for the device that the plan is for [s].
    roots : tuple of int
        Fronts whose parents are elsewhere, or that have none.
    """

    begin: int
    end: int
    seconds: float
    roots: tuple[int, ...]


class Turn(NamedTuple):
    """When a piece runs, where."""

    piece: Piece
    device: int
    start: float
    end: float


@dataclass(frozen=True)
class Deal:
    """Which device factors what, in the order of `turns`.

    Attributes
    ----------
    turns : tuple of Turn
        A piece comes behind those that hold children of its fronts.
    seconds, alone : float
        Of a factorization, predicted, and of one on the first device [s].
    traffic : int
        Contribution blocks that go from device to device [bytes].
    """

    turns: tuple[Turn, ...]
    seconds: float
    alone: float
    traffic: int

    def busy(self, devices: int) -> list[float]:
        """Seconds that each device works."""
        return [sum(t.end - t.start for t in self.turns if t.device == k) for k in range(devices)]


class Link(NamedTuple):
    """Between any two devices: bytes a second, and seconds of a copy besides."""

    rate: float = PEER_RATE
    seconds: float = COPY_SECONDS

    def copy(self, nbytes: float) -> float:
        return self.seconds + nbytes / self.rate


class Fronts:
    """What the search has to know of a plan."""

    def __init__(self, plan: Any):
        self.plan, self.parent, self.phase = plan, np.asarray(plan.parent), np.asarray(plan.phase)
        itemsize = np.dtype(plan.scalar).itemsize
        height = (plan.rows - plan.width).astype(np.int64)
        even = np.where(self.phase == 3, (height + 1) // 2 * 2, height)
        self.block_bytes = -(-even * height // ALIGN) * ALIGN * itemsize
        width, panels = plan.width.astype(np.int64), 1 if plan.one_triangle else 2
        self.factor_sum = np.concatenate([[0], np.cumsum(width * (width + height * panels) * itemsize)])

    def children(self, front: int) -> list[int]:
        first, end = self.plan.child_ptr[front : front + 2]
        return sorted(map(int, self.plan.child[first:end]))

    def seconds(self, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
        """Predicted for a factorization of each."""
        begin, end = (np.array(side, np.int32) for side in zip(*ranges, strict=True))
        found: np.ndarray = _core.range_seconds(self.plan._core, begin, end)[0]
        return found

    def pieces(self, groups: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[Piece]:
        """Of ranges and their roots."""
        if not groups:
            return []
        found = self.seconds([group[:2] for group in groups])
        return [Piece(begin, end, float(s), roots) for (begin, end, roots), s in zip(groups, found, strict=True)]

    def trees(self) -> list[Piece]:
        """The forest as one piece."""
        roots = np.flatnonzero(self.parent < 0)
        return self.pieces([(0, len(self.parent), tuple(map(int, roots)))])

    def can_cut(self, piece: Piece) -> bool:
        if len(piece.roots) > 1:
            return True
        return piece.end - piece.begin > 1 and bool(self.phase[piece.roots[0]] == 3)

    def cut(self, piece: Piece, grain: float) -> list[Piece]:
        """Smaller pieces; of many small subtrees, runs of about `grain` seconds."""
        begin, root = piece.begin, piece.roots[-1]
        alone = len(piece.roots) == 1
        roots = self.children(root) if alone else list(piece.roots)
        starts = [begin, *(root + 1 for root in roots[:-1])]
        subtrees = self.pieces([(s, r + 1, (r,)) for s, r in zip(starts, roots, strict=True)])
        found = self.pieces([(root, root + 1, (root,))]) if alone else []
        run: list[Piece] = []
        for subtree in subtrees:
            if run and sum(s.seconds for s in run) + subtree.seconds > grain:
                found.append(self._joined(run))
                run = []
            run.append(subtree)
        found.append(self._joined(run))
        if not alone and len(found) == 1:  # all of it is less than the grain: halves
            middle = len(subtrees) // 2
            found = [self._joined(subtrees[:middle]), self._joined(subtrees[middle:])]
        return found

    def _joined(self, run: list[Piece]) -> Piece:
        if len(run) == 1:
            return run[0]
        return self.pieces([(run[0].begin, run[-1].end, tuple(s.roots[0] for s in run))])[0]


def deal(
    plan: Any, speeds: Sequence[float], memory: Sequence[int] | None = None, link: Link | None = None, grains: int = 32
) -> Deal:
    """The best schedule that the search finds.

    Parameters
    ----------
    plan : Plan
        That does not stream.
    speeds : sequence of float
        Of the devices; 1 for the one that the plan is for.
    memory : sequence of int, optional
        Bytes for factors and blocks that come from elsewhere, of each device.
    link : Link
    grains : int
        Runs of small subtrees are that part of the work of a device.
    """
    fronts, link = Fronts(plan), link or Link()
    pieces = fronts.trees()
    alone = pieces[0].seconds
    grain = alone / (grains * len(speeds))
    best, waiting = schedule(fronts, pieces, speeds, memory, link), 0
    for _ in range(MOST_CUTS if len(speeds) > 1 else 0):
        longest = max((p for p in pieces if fronts.can_cut(p)), key=lambda p: (p.seconds, -p.begin), default=None)
        if longest is None or waiting > PATIENCE[0] + PATIENCE[1] * len(speeds):
            break
        pieces.remove(longest)
        pieces += fronts.cut(longest, grain)
        found = schedule(fronts, pieces, speeds, memory, link)
        better = found is not None and (best is None or found[0] < best[0])
        best, waiting = (found, 0) if better else (best, waiting + 1)
    if best is None:  # nothing fits: what comes nearest says how much is missing
        best = schedule(fronts, pieces, speeds, None, link)
    assert best is not None
    seconds, turns, traffic = best
    return Deal(tuple(turns), seconds, alone / speeds[0], traffic)


def schedule(
    fronts: Fronts, pieces: list[Piece], speeds: Sequence[float], memory: Sequence[int] | None, link: Link
) -> tuple[float, list[Turn], int] | None:
    """Seconds, turns and bytes that go from device to device; None where memory does not suffice."""
    order = sorted(pieces)
    begins = [piece.begin for piece in order]
    above = [sorted({place_of(begins, int(fronts.parent[r])) for r in p.roots} - {-1}) for p in order]
    below: list[list[int]] = [[] for _ in order]
    way = [piece.seconds for piece in order]
    for k in reversed(range(len(order))):
        way[k] += max((way[up] for up in above[k]), default=0.0)
        for up in above[k]:
            below[up].append(k)
    free = [0.0] * len(speeds)
    left = None if memory is None else list(memory)
    turns: dict[int, Turn] = {}
    traffic = 0
    # A piece is behind those below it in `order`, and its way is shorter; of equal ways the former comes first.
    for k in sorted(range(len(order)), key=lambda k: (-way[k], k)):
        piece, choices = order[k], []
        wanted = int(fronts.factor_sum[piece.end] - fronts.factor_sum[piece.begin])
        for device, speed in enumerate(speeds):
            arrivals = [
                turns[b].end + (link.copy(sent(fronts, order[b], piece)) if turns[b].device != device else 0.0)
                for b in below[k]
            ]
            start = max([free[device], *arrivals])
            if left is None or left[device] >= wanted:
                choices.append((start + piece.seconds / speed, device, start))
        if not choices:
            return None
        end, device, start = min(choices)
        turns[k] = Turn(piece, device, start, end)
        free[device] = end
        traffic += sum(sent(fronts, order[b], piece) for b in below[k] if turns[b].device != device)
        if left is not None:
            left[device] -= wanted
    return max(free), sorted(turns.values(), key=lambda t: (t.start, t.end, t.piece.begin)), traffic


def place_of(begins: list[int], front: int) -> int:
    """Of the piece that has a front, among those that begin there; -1 for none."""
    return int(np.searchsorted(begins, front, side="right")) - 1 if front >= 0 else -1


def sent(fronts: Fronts, piece: Piece, above: Piece) -> int:
    """What a piece leaves to another one [bytes]."""
    return sum(int(fronts.block_bytes[r]) for r in piece.roots if above.begin <= fronts.parent[r] < above.end)


def segments_of(fronts: Fronts, deal: Deal, block_bytes: int) -> list[tuple[int, int, int]]:
    """Begin, end and device of ranges in the order in which they run, each with about that many bytes of blocks."""
    found = []
    for turn in deal.turns:
        begin, end = turn.piece.begin, turn.piece.end
        above = fronts.parent[begin:end]
        ends = begin + 1 + np.flatnonzero((above < 0) | (above >= end) | (fronts.phase[above] == 3))
        sums = np.cumsum(fronts.block_bytes[begin:end])
        cuts, filled = [begin], 0
        for here, there in pairwise([begin, *map(int, ends)]):
            if here > cuts[-1] and sums[there - begin - 1] - filled > block_bytes:
                cuts.append(here)
                filled = int(sums[here - begin - 1])
        found += [(b, e, turn.device) for b, e in pairwise([*cuts, end])]
    return found
