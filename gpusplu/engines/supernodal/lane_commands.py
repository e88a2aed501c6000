"""The launches of batches in lockstep: every method only adds commands to a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import EPS
from ...cuda.layout import constant, record
from ...cuda.stream import Buffer, Stream
from ..device.program import address, addresses
from .lanes import SHARED
from .lockstep import ERRORS, FRONTS, LANES, MEASURE, MOVE, REPORT, SOLVE, STEPS, TICKETS, TILES, WARPS, LockstepProgram

THREADS, TEAM_THREADS = constant(SHARED, "LANE_THREADS"), constant(SHARED, "TEAM_THREADS")
TEAM_WARPS, SOLVE_ENTRIES = constant(SHARED, "TEAM_WARPS"), constant(SHARED, "SOLVE_ROWS")
BLOCK_ENTRIES, MEASURED = constant(SHARED, "ENTRIES_PER_BLOCK"), constant(SHARED, "MEASURED_ROWS")
LEAF_ENTRIES, TILE_ENTRIES = (constant(SHARED, name) ** 2 for name in ("LEAF_TILE", "FRONT_TILE"))
STAGED_ITEMS, LINES_AHEAD = constant(SHARED, "STAGED_ITEMS"), constant(SHARED, "LINES_AHEAD")
CONTROL_BYTES, MEASURE_BYTES = constant(SHARED, "LANE_CONTROL_BYTES"), constant(SHARED, "MEASURE_BYTES")
BLOCKS, BLOCKS_WIDE = constant(SHARED, "LANE_BLOCKS"), constant(SHARED, "LANE_BLOCKS_WIDE")


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
        kernel = program.kernel(MOVE, "gather_lanes")
        args = record(
            kernel.arguments,
            **{"from": given},
            source=address(source),
            to=self._memory[to].pointer,
            count=self.count,
            entries=entries,
            size=size,
            stride=stride,
            reports=reports,
            sizes=bool(reports) and program.one_triangle,
        )
        stream.launch(kernel, self._groups * -(-entries // BLOCK_ENTRIES), THREADS, self._tile_bytes(), args)

    def _compare(self, stream: Stream, reports: int) -> None:
        """Compare values in lanes with those that must be their conjugates."""
        pairs, count = self._program.pairs
        if not count:
            return
        kernel = self._program.kernel(MOVE, "compare_lanes")
        args = record(
            kernel.arguments,
            values=self._memory["values"].pointer,
            pairs=address(pairs),
            count=count,
            entries=self.nnz,
            reports=reports,
        )
        stream.launch(kernel, self._groups * -(-count // BLOCK_ENTRIES), THREADS, 0, args)

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
        fields = addresses(program.factor_arrays) | dict(
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
            reports=memory["factoring"].pointer,
            tiny=limits[0],
            singular=limits[1],
            **{name: memory[name].pointer for name in ("values", "factor", "shared", "stacks")},
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
                kernel = program.kernel(file, name)
                grid = program.blocks(count * groups, 1, resident * self._resident) if resident else program.leaf_blocks
                stream.launch(kernel, grid, threads, shared, record(kernel.arguments, **fields))

    @property
    def _resident(self) -> int:
        """Blocks per multiprocessor of kernels with blocks that wait for each other."""
        return BLOCKS_WIDE if self._dtype.itemsize == 16 else BLOCKS

    def add_up(self, stream: Stream, factored: bool, x: int = 0, columns: int = 0) -> None:
        """Accumulate the status of a call that does not wait; x: address of its solutions."""
        kernel, memory = self._program.kernel(MOVE, "accumulate_lanes"), self._memory
        args = record(
            kernel.arguments,
            reports=memory["factoring"].pointer,
            outcomes=memory["outcomes"].pointer,
            accumulated=memory["accumulated"].pointer,
            x=x,
            size=self.n * columns,
            factored=factored,
        )
        stream.launch(kernel, self.count, THREADS, 0, args)

    def copy_systems(self, stream: Stream, systems: Buffer, count: int, to: int) -> None:
        """Copy values of `count` systems, with int32 numbers, each system's contiguous."""
        kernel = self._program.kernel(MOVE, "copy_systems")
        args = record(
            kernel.arguments,
            **{"from": self._memory["values"].pointer},
            systems=systems.pointer,
            to=to,
            entries=self.nnz,
        )
        stream.launch(kernel, count * -(-self.nnz // THREADS), THREADS, 0, args)

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
        kernel = self._program.kernel(MOVE, "scatter_lanes")
        args = record(
            kernel.arguments,
            **{"from": self._memory["x"].pointer},
            other=self._memory["other"].pointer,
            to=x + column * itemsize,
            count=self.count,
            entries=self.n,
            size=self.n * columns,
            stride=columns,
            errors=solving.pointer,
            outcomes=self._memory["outcomes"].pointer,
            first=column == 0,
        )
        stream.launch(kernel, self._groups * -(-self.n // BLOCK_ENTRIES), THREADS, self._tile_bytes(), args)

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
        fields = (
            addresses(program.solve_arrays)
            | addresses(program.direction(upper))
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
                factor=memory["factor"].pointer,
                b=memory["r" if step else "b"].pointer,
                y=memory["y"].pointer,
                sums=memory["sums"].pointer,
                base=memory[base].pointer if step else 0,
                x=memory[into].pointer,
                errors=memory["solving"].pointer,
                active=self._round(step - 1)["active"] if step else 0,
                **{name: words[name] for name in ("tickets", "arrived", "done")},
            )
        )
        warps = program.blocks(len(plan.warp_tasks) * self._groups, WARPS, self._resident)
        fronts = program.blocks(2 * len(plan.block_fronts) * self._groups, 1, self._resident)
        shared = CONTROL_BYTES + WARPS * (1 + LINES_AHEAD) * SOLVE_ENTRIES * LANES * self._dtype.itemsize
        kernel = program.kernel(SOLVE, "solve_lanes")
        stream.launch(kernel, max(warps, fronts), THREADS, shared, record(kernel.arguments, **fields))

    def _measure(self, stream: Stream, trans: int, step: int, refine_all: bool) -> None:
        program, memory, words = self._program, self._memory, self._round(step)
        ptr, ind, source = program.rows_of(trans)
        kernel = program.kernel(MEASURE, "measure_lanes")
        args = record(
            kernel.arguments,
            ptr=address(ptr),
            ind=address(ind),
            source=address(source),
            values=memory["values"].pointer,
            x=memory["other" if step % 2 else "x"].pointer,
            b=memory["b"].pointer,
            r=memory["r"].pointer,
            n=self.n,
            nnz=self.nnz,
            groups=self._groups,
            conjugate=trans != 1 if program.hermitian else trans == 2,
            step=step,
            enough=_core.REFINE_ABOVE * EPS[self._dtype],
            reports=0 if refine_all else memory["factoring"].pointer,
            errors=memory["solving"].pointer,
            done=words["measured"],
            active=self._round(step - 1)["active"] if step else 0,
            active_next=words["active"],
        )
        stream.launch(kernel, self._groups * -(-self.n // MEASURED), THREADS, MEASURE_BYTES * THREADS, args)
