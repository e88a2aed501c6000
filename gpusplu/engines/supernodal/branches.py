"""Branches of a plan that are mapped to several devices (front_mapping.py), and the data sent between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...cost.model import Costs
from ...cuda.layout import constant
from .plan import SHARED

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
        found: np.ndarray = _core.range_seconds(self.plan._core, begin, end)[0]
        return found

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
