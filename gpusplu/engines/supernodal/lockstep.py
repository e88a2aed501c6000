"""A plan of fronts in lockstep on a device: its arrays for the kernels, the memory of a batch, and its launches.

`LockstepProgram` is what batches of one plan share; every method of `LaneCommands` only adds commands of one batch to a
stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import EPS, Pattern
from ...cost.calibration import costs_of, packed
from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer, Stream
from ..device.program import MatrixPart, counterparts
from .lanes import SHARED, Items, LanePlan

MOVE, MEASURE, DETERMINANTS = "lockstep/lanes.cu", "lockstep/measure.cu", "lockstep/determinants.cu"
FRONTS, TILES, SOLVE = "lockstep/fronts.cu", "lockstep/tiles.cu", "lockstep/solve.cu"
FILES = (MOVE, MEASURE, FRONTS, TILES, SOLVE)
LANES, WARPS = constant(SHARED, "WARP_SIZE"), constant(SHARED, "LANE_WARPS")
STEPS: int = _core.MOST_STEPS  # of refinement
REPORT, ERRORS, OUTCOME, ACCUMULATED = (
    struct(SHARED, name) for name in ("LaneReport", "LaneErrors", "LaneOutcome", "AccumulatedLaneStatus")
)
TICKETS = constant(SHARED, "LANE_TICKETS")  # words of a launch
THREADS, TEAM_THREADS = constant(SHARED, "LANE_THREADS"), constant(SHARED, "TEAM_THREADS")
TEAM_WARPS, SOLVE_ENTRIES = constant(SHARED, "TEAM_WARPS"), constant(SHARED, "SOLVE_ROWS")
BLOCK_ENTRIES, MEASURED = constant(SHARED, "ENTRIES_PER_BLOCK"), constant(SHARED, "MEASURED_ROWS")
LEAF_ENTRIES, TILE_ENTRIES = (constant(SHARED, name) ** 2 for name in ("LEAF_TILE", "FRONT_TILE"))
STAGED_ITEMS, LINES_AHEAD = constant(SHARED, "STAGED_ITEMS"), constant(SHARED, "LINES_AHEAD")
CONTROL_BYTES, MEASURE_BYTES = constant(SHARED, "LANE_CONTROL_BYTES"), constant(SHARED, "MEASURE_BYTES")
BLOCKS, BLOCKS_WIDE = constant(SHARED, "LANE_BLOCKS"), constant(SHARED, "LANE_BLOCKS_WIDE")

LEAST_GRAIN, MOST_GRAIN = 500.0, 2000.0  # work of a subtree that a warp takes
TASKS_A_WARP = 4  # of these for every warp of the device
WARPS_RESIDENT = constant(SHARED, "LANE_BLOCKS") * WARPS  # on a multiprocessor


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
        plan, items = self.plan, self.plan.items
        arrays = {"fronts": plan.fronts, "slot": plan.slot, "leaves": plan.leaves, "tiles": plan.tiles}
        arrays |= {"team_fronts": plan.team_fronts, "wide_fronts": plan.wide_fronts}
        arrays |= {"above": plan.above, "tile_begin": plan.tile_begin, "pending": plan.pending}
        arrays |= {"item_ptr": items.ptr, "item": items.item, "item_scale": items.scale}
        return self.upload_all(arrays)

    @cached_property
    def solve_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        arrays = {"below": self.core.below, "slot": plan.row_slot, "pending": plan.pending_tasks}
        arrays |= {"warp_tasks": plan.warp_tasks, "block_fronts": plan.block_fronts}
        shared = {name: self.factor_arrays[name] for name in ("fronts", "above")}
        return shared | self.upload_all(arrays)

    @cached_property
    def _orders(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Permutation and scales of rows, of columns."""
        core = self.core
        return [(core.row_perm, core.row_scale), (core.col_perm, core.col_scale)]

    def direction(self, transposed: bool) -> dict[str, Buffer | None]:
        """Items of the right-hand side and the order of the solution, for A or its transpose."""
        return self._directions[transposed and not self.one_triangle]

    @cached_property
    def _directions(self) -> list[dict[str, Buffer | None]]:
        found = []
        for into, out in ((0, 1), (1, 0)) if not self.one_triangle else ((0, 1),):
            items: Items = self.plan.solve_items(*self._orders[into])
            arrays = {"item_ptr": items.ptr, "item": items.item, "item_scale": items.scale}
            perm, scale = self._orders[out]
            found.append(self.upload_all(arrays | {"perm_out": perm, "scale_out": scale}))
        return found

    @cached_property
    def diagonal(self) -> Buffer | None:
        return self.upload(self.plan.diagonal)

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
        self.load(*FILES)
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
        sizes["outcomes"], sizes["accumulated"] = (
            groups * LANES * OUTCOME.itemsize,
            groups * LANES * ACCUMULATED.itemsize,
        )
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

    def _gather(
        self, stream: Stream, given: int, to: str, entries: int, size: int, stride: int, source: Any, reports: int
    ) -> None:
        program = self._program
        program.launch(
            stream,
            MOVE,
            "gather_lanes",
            (self._groups * -(-entries // BLOCK_ENTRIES), THREADS, self._tile_bytes()),
            **{"from": given},
            source=source,
            to=self._memory[to],
            count=self.count,
            entries=entries,
            size=size,
            stride=stride,
            reports=reports,
            sizes=bool(reports) and program.one_triangle,
        )

    def _compare(self, stream: Stream, reports: int) -> None:
        """Compare values in lanes with those that must be their conjugates."""
        pairs, count = self._program.pairs
        if not count:
            return
        shape, arrays = (self._groups * -(-count // BLOCK_ENTRIES), THREADS, 0), {"values": self._memory["values"]}
        fields = {"pairs": pairs, "count": count, "entries": self.nnz, "reports": reports}
        self._program.launch(stream, MOVE, "compare_lanes", shape, **arrays, **fields)

    def _tile_bytes(self) -> int:
        return LANES * (LANES + 1) * self._dtype.itemsize

    def take(self, stream: Stream, given: int, size: int, source: Buffer | None) -> None:
        """Copy values into lanes."""
        factoring = self._memory["factoring"]
        stream.clear(factoring.pointer, factoring.nbytes)
        self._gather(stream, given, "values", self.nnz, size, 1, source, factoring.pointer)
        self._compare(stream, factoring.pointer)

    def factor(self, stream: Stream) -> None:
        program, memory, groups = self._program, self._memory, self._groups
        plan, core = program.plan, program.core
        tickets = memory["factoring"].pointer + groups * LANES * REPORT.itemsize
        arrived = tickets + 4 * TICKETS
        limits = (0.0, 0.0) if core.cholesky else _core.small_pivots_of_fronts(self._dtype.char, self.n)
        fields: dict[str, Any] = program.factor_arrays | dict(
            leaf_count=len(plan.leaves),
            team_count=len(plan.team_fronts),
            wide_count=len(plan.wide_fronts),
            tile_count=len(plan.tiles),
            above_count=len(plan.numbered),
            n=self.n,
            groups=groups,
            nnz=self.nnz,
            factor_size=core.factor_size,
            shared_size=core.shared_size,
            task_size=core.task_size,
            tickets=tickets,
            arrived=arrived,
            flags=arrived + 4 * groups * len(plan.numbered),
            reports=memory["factoring"],
            tiny=limits[0],
            singular=limits[1],
            **{name: memory[name] for name in ("values", "factor", "shared", "stacks")},
        )
        lanes = LANES * self._dtype.itemsize
        leaf, tile, staged = LEAF_ENTRIES * lanes, TILE_ENTRIES * lanes, STAGED_ITEMS * lanes
        of_team = leaf + staged  # of each warp
        small, wide, large = (len(some) for some in (plan.team_fronts, plan.wide_fronts, plan.tiles))
        for file, name, count, resident, threads, shared in (
            (FRONTS, "factor_leaves", len(plan.leaves), 0, THREADS, 2 * WARPS * leaf),
            (FRONTS, "factor_fronts", small, 2, TEAM_THREADS, CONTROL_BYTES + leaf + TEAM_WARPS * of_team),
            (FRONTS, "factor_wide_fronts", wide, 1, THREADS, CONTROL_BYTES + leaf + WARPS * of_team),
            (TILES, "factor_tiles", large, 1, THREADS, CONTROL_BYTES + tile),
        ):
            if count:
                grid = program.blocks(count * groups, 1, resident * self._resident) if resident else program.leaf_blocks
                program.launch(stream, file, name, (grid, threads, shared), **fields)

    @property
    def _resident(self) -> int:
        """Blocks per multiprocessor of kernels with blocks that wait for each other."""
        return BLOCKS_WIDE if self._dtype.itemsize == 16 else BLOCKS

    def add_up(self, stream: Stream, factored: bool, x: int = 0, columns: int = 0) -> None:
        """Accumulate the status of a call that does not wait; x: address of its solutions."""
        memory, fields = self._memory, {"x": x, "size": self.n * columns, "factored": factored}
        arrays = {name: memory[name] for name in ("outcomes", "accumulated")} | {"reports": memory["factoring"]}
        self._program.launch(stream, MOVE, "accumulate_lanes", (self.count, THREADS, 0), **arrays, **fields)

    def copy_systems(self, stream: Stream, systems: Buffer, count: int, to: int) -> None:
        """Copy values of `count` systems, with int32 numbers, each system's contiguous."""
        shape = count * -(-self.nnz // THREADS), THREADS, 0
        fields = {"from": self._memory["values"], "systems": systems, "to": to, "entries": self.nnz}
        self._program.launch(stream, MOVE, "copy_systems", shape, **fields)

    def solve_column(
        self, stream: Stream, b: int, x: int, column: int, columns: int, trans: int, refine_all: bool = True
    ) -> None:
        """Solve for one right-hand side of every system, with the necessary steps of refinement; without `refine_all`
        no steps for systems with replaced pivots."""
        solving, itemsize = self._memory["solving"], self._dtype.itemsize
        stream.clear(solving.pointer, solving.nbytes)
        self._gather(stream, b + column * itemsize, "b", self.n, self.n * columns, columns, None, 0)
        for step in range(1 + STEPS):
            self._substitute(stream, trans, step)
            self._measure(stream, trans, step, refine_all)
        self._program.launch(
            stream,
            MOVE,
            "scatter_lanes",
            (self._groups * -(-self.n // BLOCK_ENTRIES), THREADS, self._tile_bytes()),
            **{"from": self._memory["x"]},
            other=self._memory["other"],
            to=x + column * itemsize,
            count=self.count,
            entries=self.n,
            size=self.n * columns,
            stride=columns,
            errors=solving,
            outcomes=self._memory["outcomes"],
            first=column == 0,
        )

    def _round(self, step: int) -> dict[str, int]:
        """Counters of one round of a solve."""
        groups, above = self._groups, len(self._program.plan.numbered)
        tickets = self._memory["solving"].pointer + groups * LANES * ERRORS.itemsize
        tickets += 4 * step * (TICKETS + 1 + groups * (2 + 2 * above))
        names = ("tickets", "measured", "active", "arrived", "done")
        places = np.cumsum([0, TICKETS, groups, groups + 1, groups * above]) * 4 + tickets
        return dict(zip(names, places.tolist(), strict=True))

    def _substitute(self, stream: Stream, trans: int, step: int) -> None:
        """x = op(A)^-1 b or, in a step of refinement, the other x = x + op(A)^-1 r for systems that need it."""
        program, memory, words = self._program, self._memory, self._round(step)
        plan, core, cholesky = program.plan, program.core, program.one_triangle
        upper = bool(trans) and not cholesky
        conjugate = trans == 1 if cholesky else trans == 2
        into, base = ("x", "other") if step % 2 == 0 else ("other", "x")
        fields: dict[str, Any] = (
            program.solve_arrays
            | program.direction(upper)
            | dict(
                warp_count=len(plan.warp_tasks),
                block_count=len(plan.block_fronts),
                above_count=len(plan.numbered),
                n=self.n,
                groups=self._groups,
                sums_size=len(core.below),
                upper_forward=upper,
                scaled_forward=upper or cholesky,
                upper_backward=not upper and not cholesky,
                scaled_backward=not upper or cholesky,
                conjugate_forward=conjugate,
                conjugate_backward=conjugate != cholesky,
                factor_size=core.factor_size,
                factor=memory["factor"],
                b=memory["r" if step else "b"],
                y=memory["y"],
                sums=memory["sums"],
                base=memory[base] if step else None,
                x=memory[into],
                errors=memory["solving"],
                active=self._round(step - 1)["active"] if step else 0,
                **{name: words[name] for name in ("tickets", "arrived", "done")},
            )
        )
        warps = program.blocks(len(plan.warp_tasks) * self._groups, WARPS, self._resident)
        fronts = program.blocks(2 * len(plan.block_fronts) * self._groups, 1, self._resident)
        shared = CONTROL_BYTES + WARPS * (1 + LINES_AHEAD) * SOLVE_ENTRIES * LANES * self._dtype.itemsize
        program.launch(stream, SOLVE, "solve_lanes", (max(warps, fronts), THREADS, shared), **fields)

    def _measure(self, stream: Stream, trans: int, step: int, refine_all: bool) -> None:
        program, memory, words = self._program, self._memory, self._round(step)
        ptr, ind, source = program.rows_of(trans)
        program.launch(
            stream,
            MEASURE,
            "measure_lanes",
            (self._groups * -(-self.n // MEASURED), THREADS, MEASURE_BYTES * THREADS),
            ptr=ptr,
            ind=ind,
            source=source,
            values=memory["values"],
            x=memory["other" if step % 2 else "x"],
            b=memory["b"],
            r=memory["r"],
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
