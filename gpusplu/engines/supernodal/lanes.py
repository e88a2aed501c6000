"""Lists of a lockstep plan for the kernels of batches: items of tiles, tiles of fronts above the cut, orders.

The core makes the plan itself (core/plan/lockstep/plan.hpp). Tiles and items: kernels/shared/lanes.hpp and
kernels/lockstep/lanes.cuh. Lists are in the order of the kernels, and sums in that of the plan.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...cuda.layout import constant, struct

SHARED = "shared/lanes.hpp"
FRONT, TASK = struct("shared/lockstep.hpp", "LockstepFront"), struct("shared/lockstep.hpp", "LockstepTask")
TILE = struct(SHARED, "FrontTile")
LEAF_TILE, FRONT_TILE = constant(SHARED, "LEAF_TILE"), constant(SHARED, "FRONT_TILE")
WARPS, PART_COLUMNS = constant(SHARED, "LANE_WARPS"), constant(SHARED, "PART_COLUMNS")
LANES, SOLVE_ROWS = constant(SHARED, "WARP_SIZE"), constant(SHARED, "SOLVE_ROWS")
TEAM_ROWS, WIDE_ROWS, SINGLE_WARP_ROWS = (constant(SHARED, f"{name}_ROWS") for name in ("TEAM", "WIDE", "SINGLE_WARP"))
IS_ENTRY = constant(SHARED, "IS_ENTRY")  # of places of what is not a child's

# Time of a front, for the order of tickets: of a tile, of a tile of pivots, and of the front itself. Only ratios
# matter, and no prediction uses them.
TILE_STEP, PIVOT_STEP, FRONT_STEP = 0.1, 2.0, 3.0


class Items(NamedTuple):
    """Sources of sums: ``ptr`` into ``item`` (source, place) and ``scale`` (None: ones)."""

    ptr: np.ndarray
    item: np.ndarray
    scale: np.ndarray | None


class LanePlan:
    """Lists for the kernels.

    Parameters
    ----------
    core : _core.LockstepPlan
        Warps process its tasks of several fronts, or of one without children.

    Attributes
    ----------
    fronts, leaves, tiles : ndarray
        Of FRONT, TASK and TILE; tiles of large fronts in the order of their tickets.
    order, numbered, above : ndarray of int32
        Fronts above the cut, children first; these and roots that are below; their numbers by front, else -1.
    team_fronts, wide_fronts, warp_tasks, block_fronts : ndarray
        Above the cut: fronts that small and large teams factor; tasks that a warp solves with, the leaves too; fronts
        that a block solves with; in the order of their tickets.
    tile_begin, pending, pending_tasks : ndarray
        By that number: the first of its flags, and the reports it needs from children in a factorization and in a
        solve.
    slot, row_slot : ndarray of int32
        Where a front's tiles begin in the pointers of the items of a factorization and of a solve.
    """

    def __init__(self, core: Any):
        self.core = core
        self.fronts = core.front_bytes.view(FRONT)
        tasks = core.task_bytes.view(TASK)
        self._width, self._rows = (self.fronts[name].astype(np.int64) for name in ("width", "rows"))
        self._height = self._rows - self._width
        several, last = tasks["first"] < tasks["last"], tasks["last"]
        is_leaf = (tasks["children"] == 0) & (several | (self._rows[last] <= FRONT_TILE))
        heaviest = np.argsort(-tasks["work"][is_leaf], kind="stable")
        self.leaves = np.ascontiguousarray(tasks[is_leaf][heaviest])
        self.order = np.ascontiguousarray(last[~is_leaf])
        self.above = np.full(core.nf, -1, np.int32)
        roots = self.leaves["last"][self.fronts["parent"][self.leaves["last"]] < 0]
        self.numbered = np.concatenate([self.order, roots])
        self.above[self.numbered] = np.arange(len(self.numbered), dtype=np.int32)
        self._is_large = self._upwards(self._rows > WIDE_ROWS)
        self._size = np.where(self._is_large, FRONT_TILE, LEAF_TILE)
        self._pivot_tiles, self._below_tiles = -(-self._width // self._size), -(-self._height // self._size)
        self._tiles = self._tile_number(np.arange(core.nf), None, None)
        slots = self._tiles * np.where(self._is_large, WARPS, 1)
        self.slot = np.concatenate([[0], np.cumsum(slots)]).astype(np.int32)
        row_tiles = -(-self._width // SOLVE_ROWS) - (-self._height // SOLVE_ROWS)
        self.row_slot = np.concatenate([[0], np.cumsum(row_tiles)]).astype(np.int32)
        tiles = np.where(self._is_large, self._tiles, 0)[self.order]
        self.tile_begin = (np.cumsum(tiles) - tiles).astype(np.int32)
        self.pending, self.pending_tasks = self._pending()
        self._start = self._starts()
        ordered = self.order[np.argsort(self._start, kind="stable")]
        is_wide = self._upwards(self._rows > TEAM_ROWS)
        self.team_fronts = ordered[~(is_wide | self._is_large)[ordered]]
        self.wide_fronts = ordered[(is_wide & ~self._is_large)[ordered]]
        by_block = self._upwards(self._rows > SINGLE_WARP_ROWS)
        self.block_fronts = ordered[by_block[ordered]]
        by_warp = ordered[~by_block[ordered]]
        self.warp_tasks = np.concatenate([self.leaves, np.zeros(len(by_warp), TASK)])
        self.warp_tasks["first"][len(self.leaves) :] = self.warp_tasks["last"][len(self.leaves) :] = by_warp

    def _upwards(self, some: np.ndarray) -> np.ndarray:
        """Which fronts above the cut are in a set, or above one in it."""
        found = np.zeros(len(some), bool)
        found[self.order] = some[self.order]
        for f in self.order:
            parent = self.fronts["parent"][f]
            if parent >= 0:
                found[parent] |= found[f]
        return found

    def _starts(self) -> np.ndarray:
        """Earliest begin of fronts above the cut, by their numbers; later than their children."""
        start, parent = np.zeros(len(self.order)), self.fronts["parent"]
        takes = FRONT_STEP + PIVOT_STEP * self._pivot_tiles + TILE_STEP * np.where(self._is_large, 1, self._tiles)
        for k, f in enumerate(self.order):
            if parent[f] >= 0:
                above = self.above[parent[f]]
                start[above] = max(start[above], start[k] + takes[f])
        return start

    def _tile_number(self, f: np.ndarray, row: np.ndarray | None, column: np.ndarray | None) -> np.ndarray:
        """``tile_number`` of kernels/shared/lanes.hpp; without row and column the number of all tiles."""
        P, Q = self._pivot_tiles[f], self._below_tiles[f]
        T, kinds, cholesky = P + Q, 1 if self.core.cholesky else 2, self.core.cholesky
        p = P if row is None or column is None else np.minimum(np.minimum(row, column), P)
        before = p + kinds * (p * (T - 1) - p * (p - 1) // 2)
        if row is None or column is None:
            every: np.ndarray = before + (Q * (Q + 1) // 2 if cholesky else Q * Q)
            return every
        r, c = row - P, column - P
        inside = np.where(row >= column, row - p, T - 1 - p + column - p)
        behind = c * Q - c * (c - 1) // 2 + r - c if cholesky else c * Q + r
        number: np.ndarray = before + np.where(p < P, inside, behind)
        return number

    def _pending(self) -> tuple[np.ndarray, np.ndarray]:
        parent, Q = self.fronts["parent"], self._below_tiles
        tops = np.concatenate([self.leaves["last"], self.order])
        blocks = Q[tops] * (Q[tops] + 1) // 2 if self.core.cholesky else Q[tops] ** 2
        reports = np.where(self._is_large[tops], blocks, 1)
        tiles, counts = np.zeros(len(self.numbered), np.uint32), np.zeros(len(self.numbered), np.uint32)
        inner = parent[tops] >= 0
        to = self.above[parent[tops[inner]]]
        np.add.at(tiles, to, reports[inner].astype(np.uint32))
        np.add.at(counts, to, 1)
        return tiles, counts

    # ---- items of a factorization

    def _tile_of(self, f: np.ndarray, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tile, and place in it, of local rows of fronts."""
        S, W = self._size[f], self._width[f]
        behind = local >= W
        inside = np.where(behind, local - W, local)
        return inside // S + np.where(behind, self._pivot_tiles[f], 0), inside % S

    def _slots(self, f: np.ndarray, row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slot and place of entries of fronts."""
        (tr, r), (tc, c) = self._tile_of(f, row), self._tile_of(f, column)
        number, is_large = self._tile_number(f, tr, tc), self._is_large[f]
        slot = self.slot[f] + np.where(is_large, number * WARPS + c // PART_COLUMNS, number)
        return slot, r + self._size[f] * np.where(is_large, c % PART_COLUMNS, c)

    @cached_property
    def items(self) -> Items:
        """Entries of A, then those of the children's blocks in the order of the children."""
        core = self.core
        count = (self.fronts["entry_end"] - self.fronts["entry_begin"]).astype(np.int64)
        f = np.repeat(np.arange(core.nf), count)
        target, R, W, H = core.entry_target.astype(np.int64), self._rows[f], self._width[f], self._height[f]
        upper = target - R * W
        in_lower = upper < 0
        safe = np.maximum(H, 1)
        row = np.where(in_lower, target % R, upper // safe)
        column = np.where(in_lower, target // R, W + upper % safe)
        slot, place = self._slots(f, row, column)
        child_slot, child_place, child_source = self._children_items()
        scale = None
        if core.entry_scale.size:
            scale = np.concatenate([core.entry_scale, np.ones(len(child_slot))])
        return sorted_items(
            np.concatenate([slot, child_slot]),
            np.concatenate([core.entry_source, ~child_source]),
            np.concatenate([place, child_place]),
            scale,
            int(self.slot[-1]),
        )

    def _children_items(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slot, place and source of every entry of a contribution block, by child and column."""
        H, parent = self._height, self.fronts["parent"]
        child = np.flatnonzero((parent >= 0) & (H > 0))
        columns = np.repeat(child, H[child])  # a column of a block each
        j = np.arange(len(columns)) - np.repeat(np.cumsum(H[child]) - H[child], H[child])
        first = j if self.core.cholesky else np.zeros_like(j)
        length = H[columns] - first
        c, j, first = (np.repeat(array, length) for array in (columns, j, first))
        i = np.arange(len(c)) - np.repeat(np.cumsum(length) - length, length) + first
        below, place = self.fronts["below"].astype(np.int64)[c], self.core.place
        slot, at = self._slots(parent[c], place[below + i].astype(np.int64), place[below + j].astype(np.int64))
        return slot, at, self.fronts["block"][c] + i + j * H[c]

    # ---- tiles of large fronts

    @cached_property
    def tiles(self) -> np.ndarray:
        """In ticket order: tiles that can begin earliest first, and none before those it waits for."""
        records, times = [np.zeros(0, TILE)], [np.zeros(0)]
        for f in self.order[self._is_large[self.order]]:
            P, T = int(self._pivot_tiles[f]), int(self._pivot_tiles[f] + self._below_tiles[f])
            row, column = (index.reshape(-1) for index in np.indices((T, T)))
            if self.core.cholesky:
                row, column = row[row >= column], column[row >= column]
            step = np.minimum(np.minimum(row, column), P)
            found = np.zeros(len(row), TILE)
            found["front"], found["row"], found["column"] = f, row, column
            found["number"] = self._tile_number(np.full(len(row), f), row, column)
            records.append(found)
            times.append(self._start[self.above[f]] + PIVOT_STEP * step + (row != column))
        return np.concatenate(records)[np.argsort(np.concatenate(times), kind="stable")]

    # ---- items of a solve

    def solve_items(self, perm: np.ndarray, scales: np.ndarray) -> Items:
        """The right-hand side at the pivots, permuted and scaled, then the children's sums in the order of the
        children."""
        W, H, nf = self._width, self._height, self.core.nf
        f = np.repeat(np.arange(nf), W)
        slot, place = self._row_slots(f, np.arange(self.core.n) - self.fronts["first"][f])
        child = np.repeat(np.arange(nf), H)
        parent = self.fronts["parent"][child]
        child_slot, child_place = self._row_slots(parent, self.core.place.astype(np.int64))
        scale = np.concatenate([scales[perm], np.ones(len(child))]) if scales.size else None
        return sorted_items(
            np.concatenate([slot, child_slot]),
            np.concatenate([perm, ~np.arange(len(child))]),
            np.concatenate([place, child_place]),
            scale,
            int(self.row_slot[-1]),
        )

    def _row_slots(self, f: np.ndarray, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W = self._width[f]
        behind = local >= W
        inside = np.where(behind, local - W, local)
        return self.row_slot[f] + inside // SOLVE_ROWS + np.where(behind, -(-W // SOLVE_ROWS), 0), inside % SOLVE_ROWS

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Positions of the reciprocals of the pivots in the factor, in the plan's order."""
        f = np.repeat(np.arange(self.core.nf), self._width)
        k = np.arange(self.core.n) - self.fronts["first"][f]
        found: np.ndarray = self.fronts["factor"][f] + k * (self._rows[f] + 1)
        return found


def sorted_items(
    slot: np.ndarray, source: np.ndarray, place: np.ndarray, scale: np.ndarray | None, slots: int
) -> Items:
    """Items by slot and place, otherwise in the given order."""
    order = np.lexsort((place, slot))
    ptr = np.zeros(slots + 1 + LANES, np.int32)  # kernels read several at a time
    np.cumsum(np.bincount(slot, minlength=slots), out=ptr[1 : slots + 1])
    ptr[slots + 1 :] = ptr[slots]
    item = np.empty((len(order), 2), np.int32)
    item[:, 0], item[:, 1] = source[order], (place + np.where(source < 0, 0, IS_ENTRY))[order]
    return Items(ptr, item, None if scale is None else scale[order])
