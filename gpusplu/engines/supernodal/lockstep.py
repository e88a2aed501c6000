"""A plan of fronts in lockstep on a device: its arrays for the kernels, the memory of a batch, and its launches.

`LanePlan` has the lists that the kernels need besides the core's plan (core/plan/lockstep/plan.hpp): items of tiles,
tiles of fronts above the cut, orders. Tiles and items: kernels/shared/lanes.hpp and kernels/lockstep/lanes.cuh. Lists
are in the order of the kernels, and sums in that of the plan. `LockstepProgram` is what batches of one plan share;
`LaneCommands` has the commands of one batch. Its launches are prepared on first use and repeated: only addresses and
strides of the caller's arrays differ between calls, and making the records of 10 kernels takes longer than launching.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...common.matrix import EPS, Pattern
from ...common.memo import Memo
from ...cost.calibration import costs_of, packed
from ...cuda.layout import constant, fill, struct
from ...cuda.stream import Buffer, Stream
from ..device.program import Launch, MatrixPart, counterparts, launch_all

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
    """Sources of sums: ``item_ptr`` into ``item`` (source, place) and ``item_scale`` (None: ones)."""

    item_ptr: np.ndarray
    item: np.ndarray
    item_scale: np.ndarray | None


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
        self.fronts = core.fronts.view(FRONT)
        tasks = core.tasks.view(TASK)
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
            return before + (Q * (Q + 1) // 2 if cholesky else Q * Q)
        r, c = row - P, column - P
        inside = np.where(row >= column, row - p, T - 1 - p + column - p)
        behind = c * Q - c * (c - 1) // 2 + r - c if cholesky else c * Q + r
        return before + np.where(p < P, inside, behind)

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
        return self.fronts["factor"][f] + k * (self._rows[f] + 1)


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


MOVE, MEASURE, DETERMINANTS = "lockstep/lanes.cu", "lockstep/measure.cu", "lockstep/determinants.cu"
FRONTS, TILES, SOLVE = "lockstep/fronts.cu", "lockstep/tiles.cu", "lockstep/solve.cu"
FILES = (MOVE, MEASURE, FRONTS, TILES, SOLVE)
STEPS: int = _core.MOST_STEPS  # of refinement
REPORT, ERRORS, OUTCOME, ACCUMULATED = (
    struct(SHARED, name) for name in ("LaneReport", "LaneErrors", "LaneOutcome", "AccumulatedLaneStatus")
)
TICKETS = constant(SHARED, "LANE_TICKETS")  # words of a launch
THREADS, TEAM_THREADS = constant(SHARED, "LANE_THREADS"), constant(SHARED, "TEAM_THREADS")
TEAM_WARPS = constant(SHARED, "TEAM_WARPS")
BLOCK_ENTRIES, MEASURED = constant(SHARED, "ENTRIES_PER_BLOCK"), constant(SHARED, "MEASURED_ROWS")
LEAF_ENTRIES, TILE_ENTRIES = LEAF_TILE**2, FRONT_TILE**2
STAGED_ITEMS, LINES_AHEAD = constant(SHARED, "STAGED_ITEMS"), constant(SHARED, "LINES_AHEAD")
CONTROL_BYTES, MEASURE_BYTES = constant(SHARED, "LANE_CONTROL_BYTES"), constant(SHARED, "MEASURE_BYTES")
BLOCKS, BLOCKS_WIDE = constant(SHARED, "LANE_BLOCKS"), constant(SHARED, "LANE_BLOCKS_WIDE")

LEAST_GRAIN, MOST_GRAIN = 500.0, 2000.0  # work of a subtree that a warp takes
TASKS_A_WARP = 4  # of these for every warp of the device
WARPS_RESIDENT = BLOCKS * WARPS  # on a multiprocessor


def for_lanes() -> _core.Costs:
    """Constants of plans of systems in lockstep on a device, where fronts merge by different constants."""
    costs = costs_of()
    return packed({**costs, "lockstep.merging": costs["supernodal.lockstep"]})


class LockstepProgram(MatrixPart):
    """A plan for a number of groups of systems on a device, and its kernels.

    Parameters
    ----------
    device : cuda.devices.Device
    symbolic : _core.Symbolic
        With scales for `dtype`.
    pattern : Pattern
    dtype : dtype
    groups : int

    Raises
    ------
    ValueError
        There is no plan: a front is too large.
    """

    def __init__(self, device: Any, symbolic: Any, pattern: Pattern, dtype: np.dtype, groups: int):
        super().__init__(device, dtype, symbolic.cholesky)
        self.pattern, self.groups, self.n = pattern, groups, pattern.n
        self.plan = LanePlan(self._planned(symbolic, groups))
        self.core = self.plan.core

    def _planned(self, symbolic: Any, groups: int) -> Any:
        """The plan, with subtrees sized so that every warp gets some; the size changes no bit of a result."""
        ptr, ind, costs = self.pattern.ptr, self.pattern.ind, for_lanes()
        plan = _core.make_lockstep_plan(symbolic, ptr, ind, costs)
        tasks = TASKS_A_WARP * WARPS_RESIDENT * self.device.multiprocessors / groups
        grain = min(MOST_GRAIN, max(LEAST_GRAIN, plan.work / tasks))
        return _core.make_lockstep_plan(symbolic, ptr, ind, costs, grain=grain)

    @cached_property
    def leaf_blocks(self) -> int:
        """Blocks of the launch that factors subtrees; each warp has a stack of its own."""
        return self.blocks(len(self.plan.leaves) * self.groups, WARPS, WARPS_RESIDENT // WARPS)

    @cached_property
    def factor_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        arrays = {"fronts": plan.fronts, "slot": plan.slot, "leaves": plan.leaves, "tiles": plan.tiles}
        arrays |= {"team_fronts": plan.team_fronts, "wide_fronts": plan.wide_fronts}
        arrays |= {"above": plan.above, "tile_begin": plan.tile_begin, "pending": plan.pending}
        return self.upload_all(arrays | plan.items._asdict())

    @cached_property
    def solve_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        arrays = {"below": self.core.below, "slot": plan.row_slot, "pending": plan.pending_tasks}
        arrays |= {"warp_tasks": plan.warp_tasks, "block_fronts": plan.block_fronts}
        shared = {name: self.factor_arrays[name] for name in ("fronts", "above")}
        return shared | self.upload_all(arrays)

    def direction(self, transposed: bool) -> dict[str, Buffer | None]:
        """Items of the right-hand side and the order of the solution, for A or its transpose."""
        return self._directions[transposed and not self.one_triangle]

    @cached_property
    def _directions(self) -> list[dict[str, Buffer | None]]:
        core, found = self.core, []
        orders = (core.row_perm, core.row_scale), (core.col_perm, core.col_scale)
        for into, (perm, scale) in (orders,) if self.one_triangle else (orders, orders[::-1]):
            arrays = self.plan.solve_items(*into)._asdict()
            found.append(self.upload_all(arrays | {"perm_out": perm, "scale_out": scale}))
        return found

    diagonal = cached_property(lambda self: self.upload(self.plan.diagonal))

    @cached_property
    def pairs(self) -> tuple[Buffer | None, int]:
        """Pairs of entries that must be conjugates, and the number of pairs."""
        if not self.one_triangle:
            return None, 0
        pairs = self.pattern.pairs(True, self.dtype)
        both = np.stack([pairs.first.astype(np.int32), counterparts(pairs)], axis=1)
        return self.upload(both), len(both)

    def prepare(self) -> None:
        """Compile, upload and load everything that refactorizations and solves need."""
        self.device.prepare(FILES, self.dtype.char, self.kind)
        for file in FILES:
            self.device.load(file, self.dtype.char, self.kind)
        self.factor_arrays, self.solve_arrays, self._directions, self._columns, self._rows, self.pairs  # noqa: B018

    def sizes(self, groups: int) -> dict[str, int]:
        """Bytes of the arrays of a batch of `groups` groups."""
        core, entry = self.core, LANES * self.dtype.itemsize
        above, tiles = len(self.plan.numbered), len(self.plan.tiles)
        lanes = dict.fromkeys(("b", "x", "other", "r", "y"), self.n)
        lanes |= {"values": self.pattern.nnz, "factor": core.factor_size, "shared": core.shared_size}
        lanes["sums"] = len(core.below)
        sizes = {name: count * groups * entry for name, count in lanes.items()}
        sizes["stacks"] = self.leaf_blocks * WARPS * core.task_size * entry
        sizes["factoring"] = groups * LANES * REPORT.itemsize + 4 * (TICKETS + groups * (above + tiles))
        sizes["solving"] = groups * LANES * ERRORS.itemsize + 4 * (1 + STEPS) * (TICKETS + 1 + groups * (2 + 2 * above))
        sizes["outcomes"] = groups * LANES * OUTCOME.itemsize
        sizes["accumulated"] = groups * LANES * ACCUMULATED.itemsize
        return sizes


class LaneCommands:
    """Commands for the systems of one batch.

    Parameters
    ----------
    program : LockstepProgram
    memory : mapping of Buffer
        Of the program's `sizes`.
    count : int
        Systems.
    """

    def __init__(self, program: LockstepProgram, memory: Mapping[str, Buffer], count: int):
        self.count, self.n, self.nnz = count, program.n, program.pattern.nnz
        self._program, self._memory = program, memory
        self._dtype, self._groups = program.dtype, -(-count // LANES)
        # Blocks per multiprocessor of kernels with blocks that wait for each other.
        self._resident = BLOCKS_WIDE if self._dtype.itemsize == 16 else BLOCKS
        self._solving = Memo()  # launches of solves

    @cached_property
    def _taking(self) -> list[Launch]:
        """Launches of `take`."""
        program, factoring = self._program, self._memory["factoring"]
        launches = [self._gather("values", self.nnz, factoring.pointer)]
        pairs, count = program.pairs
        if count:  # values that must be conjugates of others
            shape = self._groups * -(-count // BLOCK_ENTRIES), THREADS, 0
            fields = {"pairs": pairs, "count": count, "entries": self.nnz, "reports": factoring}
            launches.append(program.prepared(MOVE, "compare_lanes", shape, [self._memory], **fields))
        return launches

    def _gather(self, to: str, entries: int, reports: int) -> Launch:
        """Copy an array of the caller's, to be filled in, into lanes."""
        fields = {"from": None, "source": None, "to": self._memory[to], "count": self.count, "entries": entries}
        fields |= {"size": 0, "stride": 1, "reports": reports, "sizes": bool(reports) and self._program.one_triangle}
        return self._program.prepared(MOVE, "gather_lanes", self._moving(entries), **fields)

    def _moving(self, entries: int) -> tuple[int, int, int]:
        """Shape of launches that copy that many entries of every system."""
        tile_bytes = LANES * (LANES + 1) * self._dtype.itemsize
        return self._groups * -(-entries // BLOCK_ENTRIES), THREADS, tile_bytes

    def take(self, stream: Stream, given: int, size: int, source: Buffer | None) -> None:
        """Copy values into lanes."""
        factoring = self._memory["factoring"]
        stream.clear(factoring.pointer, factoring.nbytes)
        fill(self._taking[0].arguments, {"from": given, "size": size, "source": source})
        launch_all(stream, self._taking)

    def factor(self, stream: Stream) -> None:
        launch_all(stream, self._factoring)

    @cached_property
    def _factoring(self) -> list[Launch]:
        """Launches of `factor`."""
        program, memory, groups = self._program, self._memory, self._groups
        plan, core = program.plan, program.core
        tickets = memory["factoring"].pointer + groups * LANES * REPORT.itemsize
        arrived = tickets + 4 * TICKETS
        limits = (0.0, 0.0) if core.cholesky else _core.small_pivots_of_fronts(self._dtype.char, self.n)
        fields: dict[str, Any] = {
            "leaf_count": len(plan.leaves),
            "team_count": len(plan.team_fronts),
            "wide_count": len(plan.wide_fronts),
            "tile_count": len(plan.tiles),
            "above_count": len(plan.numbered),
            "n": self.n,
            "groups": groups,
            "nnz": self.nnz,
            "factor_size": core.factor_size,
            "shared_size": core.shared_size,
            "task_size": core.task_size,
            "tickets": tickets,
            "arrived": arrived,
            "flags": arrived + 4 * groups * len(plan.numbered),
            "reports": memory["factoring"],
            "tiny": limits[0],
            "singular": limits[1],
        }
        lanes = LANES * self._dtype.itemsize
        leaf, tile, staged = LEAF_ENTRIES * lanes, TILE_ENTRIES * lanes, STAGED_ITEMS * lanes
        of_team, known = leaf + staged, (program.factor_arrays, memory)  # of each warp
        small, wide, large = (len(some) for some in (plan.team_fronts, plan.wide_fronts, plan.tiles))
        launches = []
        for file, name, count, resident, threads, shared in (
            (FRONTS, "factor_leaves", len(plan.leaves), 0, THREADS, 2 * WARPS * leaf),
            (FRONTS, "factor_fronts", small, 2, TEAM_THREADS, CONTROL_BYTES + leaf + TEAM_WARPS * of_team),
            (FRONTS, "factor_wide_fronts", wide, 1, THREADS, CONTROL_BYTES + leaf + WARPS * of_team),
            (TILES, "factor_tiles", large, 1, THREADS, CONTROL_BYTES + tile),
        ):
            if count:
                grid = program.blocks(count * groups, 1, resident * self._resident) if resident else program.leaf_blocks
                launches.append(program.prepared(file, name, (grid, threads, shared), known, **fields))
        return launches

    def add_up(self, stream: Stream, factored: bool, x: int = 0, columns: int = 0) -> None:
        """Accumulate the status of a deferred call; x: address of its solutions."""
        memory, fields = self._memory, {"x": x, "size": self.n * columns, "factored": factored}
        shape = self.count, THREADS, 0
        self._program.launch(stream, MOVE, "accumulate_lanes", shape, [memory], **fields, reports=memory["factoring"])

    def copy_systems(self, stream: Stream, systems: Buffer, count: int, to: int) -> None:
        """Copy values of `count` systems, with int32 numbers, each system's contiguous."""
        shape = count * -(-self.nnz // THREADS), THREADS, 0
        fields = {"from": self._memory["values"], "systems": systems, "to": to, "entries": self.nnz}
        self._program.launch(stream, MOVE, "copy_systems", shape, **fields)

    def solve(self, stream: Stream, b: int, x: int, columns: int, trans: int, refine_all: bool = True) -> None:
        """Solve for the right-hand sides of every system, one column after the other, with the necessary steps of
        refinement; without `refine_all` no steps for systems with replaced pivots."""
        solving, itemsize = self._memory["solving"], self._dtype.itemsize
        launches = self._solving((trans, refine_all), lambda: self._solve(trans, refine_all))
        caller = {"size": self.n * columns, "stride": columns}
        for column in range(columns):
            stream.clear(solving.pointer, solving.nbytes)
            fill(launches[0].arguments, {"from": b + column * itemsize, **caller})
            fill(launches[-1].arguments, {"to": x + column * itemsize, "first": column == 0, **caller})
            launch_all(stream, launches)

    def _solve(self, trans: int, refine_all: bool) -> list[Launch]:
        """Launches for one column; the caller's arrays, of the first and the last one, are to be filled in."""
        launches, memory = [self._gather("b", self.n, 0)], self._memory
        for step in range(1 + STEPS):
            launches += [self._substitute(trans, step), self._measure(trans, step, refine_all)]
        fields = {"to": None, "count": self.count, "entries": self.n, "size": 0, "stride": 1, "first": True}
        known = {"from": memory["x"], "errors": memory["solving"]}, memory
        return [*launches, self._program.prepared(MOVE, "scatter_lanes", self._moving(self.n), known, **fields)]

    def _round(self, step: int) -> dict[str, int]:
        """Counters of one round of a solve."""
        groups, above = self._groups, len(self._program.plan.numbered)
        tickets = self._memory["solving"].pointer + groups * LANES * ERRORS.itemsize
        tickets += 4 * step * (TICKETS + 1 + groups * (2 + 2 * above))
        names = ("tickets", "measured", "active", "arrived", "done")
        places = np.cumsum([0, TICKETS, groups, groups + 1, groups * above]) * 4 + tickets
        return dict(zip(names, places.tolist(), strict=True))

    def _substitute(self, trans: int, step: int) -> Launch:
        """x = op(A)^-1 b or, in a step of refinement, the other x = x + op(A)^-1 r for systems that need it."""
        program, memory, words = self._program, self._memory, self._round(step)
        plan, core, cholesky = program.plan, program.core, program.one_triangle
        upper = bool(trans) and not cholesky
        conjugate = trans == 1 if cholesky else trans == 2
        into, base = ("x", "other") if step % 2 == 0 else ("other", "x")
        fields: dict[str, Any] = {
            "warp_count": len(plan.warp_tasks),
            "block_count": len(plan.block_fronts),
            "above_count": len(plan.numbered),
            "n": self.n,
            "groups": self._groups,
            "sums_size": len(core.below),
            "forward": (upper, upper or cholesky, conjugate),
            "backward": (not upper and not cholesky, not upper or cholesky, conjugate != cholesky),
            "factor_size": core.factor_size,
            "b": memory["r" if step else "b"],
            "base": memory[base] if step else None,
            "x": memory[into],
            "errors": memory["solving"],
            "active": self._round(step - 1)["active"] if step else 0,
        }
        warps = program.blocks(len(plan.warp_tasks) * self._groups, WARPS, self._resident)
        fronts = program.blocks(2 * len(plan.block_fronts) * self._groups, 1, self._resident)
        shared = CONTROL_BYTES + WARPS * (1 + LINES_AHEAD) * SOLVE_ROWS * LANES * self._dtype.itemsize
        known = program.solve_arrays, program.direction(upper), words, memory
        return program.prepared(SOLVE, "solve_lanes", (max(warps, fronts), THREADS, shared), known, **fields)

    def _measure(self, trans: int, step: int, refine_all: bool) -> Launch:
        program, memory, words = self._program, self._memory, self._round(step)
        ptr, ind, source = program.rows_of(trans)
        return program.prepared(
            MEASURE,
            "measure_lanes",
            (self._groups * -(-self.n // MEASURED), THREADS, MEASURE_BYTES * THREADS),
            [memory],
            ptr=ptr,
            ind=ind,
            source=source,
            x=memory["other" if step % 2 else "x"],
            n=self.n,
            nnz=self.nnz,
            groups=self._groups,
            conjugate=trans != 1 if program.hermitian else trans == 2,
            step=step,
            enough=_core.REFINE_ABOVE * EPS[self._dtype],
            reports=None if refine_all else memory["factoring"],
            errors=memory["solving"],
            done=words["measured"],
            active=self._round(step - 1)["active"] if step else 0,
            active_next=words["active"],
        )
