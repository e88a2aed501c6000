"""A plan of fronts in lockstep on a device: its arrays for the kernels, and the memory of a batch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.calibration import costs_of, packed
from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer
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
