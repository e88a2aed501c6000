"""Many systems of one pattern in lockstep on a device: a lane of a warp each (docs/engines/supernodal.md)."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...cost.calibration import for_core
from ...cuda.devices import usable_bytes
from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError
from ...matrix import EPS, Pattern
from ..device.part import Part, address, addresses
from .lanes import SHARED, Items, LanePlan

if TYPE_CHECKING:
    from ...problem import Problem
    from ..interface import Analysis

MOVE, MEASURE, DETERMINANTS = "lockstep/lanes.cu", "lockstep/measure.cu", "lockstep/determinants.cu"
FRONTS, TILES, SOLVE = "lockstep/fronts.cu", "lockstep/tiles.cu", "lockstep/solve.cu"
FILES = (MOVE, MEASURE, FRONTS, TILES, SOLVE)
LANES, THREADS, WARPS = (constant(SHARED, name) for name in ("LANES", "LANE_THREADS", "LANE_WARPS"))
TEAM_THREADS, TEAM_WARPS = constant(SHARED, "TEAM_THREADS"), constant(SHARED, "TEAM_WARPS")
MOVED, MEASURED = constant(SHARED, "MOVED_ENTRIES"), constant(SHARED, "MEASURED_ROWS")
STEPS = constant(SHARED, "REFINEMENTS")
LEAF_ENTRIES, TILE_ENTRIES = (constant(SHARED, name) ** 2 for name in ("LEAF_TILE", "FRONT_TILE"))
SOLVE_ENTRIES = constant(SHARED, "SOLVE_ROWS")
REPORT, ERRORS, OUTCOME = (struct(SHARED, name) for name in ("LaneReport", "LaneErrors", "LaneOutcome"))
CONTROL_BYTES = 16  # of a block, besides tiles
TICKETS = 4  # words of a launch

REFINE_ABOVE = 8  # units of the precision: the error that needs no step of refinement (core/certify/ladder.cpp)
LEAST_GRAIN, MOST_GRAIN = 500.0, 2000.0  # work of a subtree that a warp takes
TASKS_A_WARP = 4  # of these for every warp of the device
WARPS_RESIDENT = 16  # on a multiprocessor

#: What `report` says of every system.
REPORTED = np.dtype(
    [
        ("multiplier", "f8"),
        ("growth", "f8"),
        ("n_perturbed", "i4"),
        ("n_tiny", "i4"),
        ("failed", "i4"),
        ("not_finite", "?"),
    ]
)


class LockstepProgram(Part):
    """A plan for so many groups of systems on a device, and its kernels.

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
        """The plan with subtrees of such a size that every warp gets some; no bit of a result depends on it."""
        ptr, ind, costs = self.pattern.ptr, self.pattern.ind, for_core()
        plan = _core.make_lockstep_plan(symbolic, ptr, ind, costs)
        tasks = TASKS_A_WARP * WARPS_RESIDENT * self.device.multiprocessors / groups
        grain = min(MOST_GRAIN, max(LEAST_GRAIN, plan.work / tasks))
        return _core.make_lockstep_plan(symbolic, ptr, ind, costs, grain=grain)

    @cached_property
    def leaf_blocks(self) -> int:
        """Of the launch that factors subtrees, each warp with a stack of its own."""
        return self.blocks(len(self.plan.leaves) * self.groups, WARPS, WARPS_RESIDENT // WARPS)

    @cached_property
    def factor_arrays(self) -> dict[str, Buffer | None]:
        plan, items = self.plan, self.plan.items
        arrays = {"fronts": plan.fronts, "slot": plan.slot, "leaves": plan.leaves, "tiles": plan.tiles}
        arrays |= {"team_fronts": plan.team_fronts}
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

    def way(self, transposed: bool) -> dict[str, Buffer | None]:
        """Items of the right-hand side and the order of the solution, for A or its transpose."""
        return self._ways[transposed and not self.cholesky]

    @cached_property
    def _ways(self) -> list[dict[str, Buffer | None]]:
        found = []
        for into, out in ((0, 1), (1, 0)) if not self.cholesky else ((0, 1),):
            items: Items = self.plan.solve_items(*self._orders[into])
            arrays = {"item_ptr": items.ptr, "item": items.item, "item_scale": items.scale}
            perm, scale = self._orders[out]
            found.append(self.upload_all(arrays | {"perm_out": perm, "scale_out": scale}))
        return found

    @cached_property
    def diagonal(self) -> Buffer | None:
        return self.upload(self.plan.diagonal)

    def rows_of(self, trans: int) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """The rows of op(A) or, for Hermitian A, what they are the conjugates of."""
        return self._columns if trans or self.cholesky else self._rows

    @cached_property
    def _columns(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        return self.upload(self.pattern.ptr), self.upload(self.pattern.ind), None

    @cached_property
    def _rows(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        n, nnz = self.pattern.n, self.pattern.nnz
        rows = sp.csc_array((np.arange(nnz, dtype=np.int32), self.pattern.ind, self.pattern.ptr), shape=(n, n)).tocsr()
        arrays = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        ptr, ind, source = map(self.upload, arrays)
        return ptr, ind, source

    def prepare(self) -> None:
        """Compile, upload and load all that refactorizations and solves need."""
        self.device.prepare(FILES, self.dtype.char, self.cholesky)
        self.load(*FILES)
        self.factor_arrays, self.solve_arrays, self._ways, self._columns, self._rows  # noqa: B018

    def sizes(self, groups: int) -> dict[str, int]:
        """Bytes of what a batch of so many groups keeps."""
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
        return sizes


class LockstepBatch:
    """Factors of `count` systems on a device; the interface of engines' batches.

    Commands go to the caller's stream, and nothing waits but `report`, `errors`, `steps`, `slogdet`, `values`, and
    calls with arrays of the host.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    def __init__(self, program: LockstepProgram, count: int, limit: int | None = None):
        self.count, self.n, self.nnz = count, program.n, program.pattern.nnz
        self._program, self._device = program, program.device
        self._dtype, self._groups = program.dtype, -(-count // LANES)
        self._lock, self._stream, self._event = RLock(), None, None
        device = self._device
        with device:
            program.prepare()
            sizes, usable = program.sizes(self._groups), usable_bytes(device, limit)
            self.nbytes = sum(sizes.values())
            if self.nbytes > usable:
                raise DeviceMemoryError(self.nbytes, usable)
            self._memory = {name: device.empty(size) for name, size in sizes.items()}
            self._sources: tuple[Any, Buffer | None] = (None, None)
            device.own_stream().synchronize()

    # ---- what the facade calls

    def refactor(self, values: Any, source: np.ndarray | None = None) -> None:
        """Factor canonical values, shape (count, nnz), or with `source` the caller's, (count, size)."""
        with self._device, self._lock:
            stream = self._begin()
            pointer, held = self._on_device(stream, values)
            self._take(stream, pointer, values.shape[1], self._source(source))
            self._factor(stream)
            self._leave(stream, held)

    def solve(self, b: Any, trans: int = 0) -> Any:
        """Solve op(A) X = B, measured and refined; b and the result are (count, n) or (count, n, k), C-contiguous."""
        with self._device, self._lock:
            stream = self._begin()
            columns = 1 if b.ndim == 2 else b.shape[2]
            on_host = type(b) is not self._device.array_class
            x = self._device.array(b.shape[::-1], self._dtype).T
            given, held = self._on_device(stream, b)
            for k in range(columns):
                self._solve_column(stream, given, self._device.pointer(x), k, columns, trans)
            self._leave(stream, held)
            if not on_host:
                return x
            stream.synchronize()
            return np.ascontiguousarray(x.get())

    def report(self) -> np.ndarray:
        """Of every system, type REPORTED; waits."""
        given = self._read("factoring", REPORT, self.count)
        found = np.zeros(self.count, REPORTED)
        largest, upper = (real_of(given[name], self._dtype) for name in ("entry", "upper"))
        found["multiplier"] = real_of(given["multiplier"], self._dtype)
        found["growth"] = np.where(largest > 0, upper / np.where(largest > 0, largest, 1), 0)
        found["n_perturbed"], found["n_tiny"] = given["n_perturbed"], given["n_tiny"]
        position = self.n - given["failed"]
        perm = self._program.core.col_perm
        found["failed"] = np.where(given["failed"] > 0, perm[np.minimum(position, self.n - 1)], -1)
        found["not_finite"] = given["not_finite"] > 0
        return found

    def errors(self) -> np.ndarray:
        """Normwise backward errors of the last solve, shape (count,); waits."""
        errors: np.ndarray = self._read("outcomes", OUTCOME, self.count)["error"]
        return errors

    @property
    def steps(self) -> np.ndarray:
        """Of refinement in the last solve, shape (count,); waits."""
        steps: np.ndarray = self._read("outcomes", OUTCOME, self.count)["steps"]
        return steps

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign and logarithm of the modulus of every determinant; waits."""
        program, device, systems = self._program, self._device, self._groups * LANES
        wide = np.dtype("D" if self._dtype.kind == "c" else "d")
        with device, self._lock:
            program.load(DETERMINANTS)
            diagonal, out = program.diagonal, device.empty(systems * (8 + wide.itemsize))
            device.own_stream().synchronize()
            stream = self._begin()
            kernel = program.kernel(DETERMINANTS, "lane_determinants")
            args = record(
                kernel.arguments,
                factor=self._memory["factor"].pointer,
                diagonal=address(diagonal),
                factor_size=program.core.factor_size,
                n=self.n,
                logs=out.pointer,
                signs=out.pointer + 8 * systems,
            )
            stream.launch(kernel, self._groups, THREADS, 2 * THREADS * wide.itemsize, args)
            self._leave(stream)
        raw = self._read_buffer(out, systems * (8 + wide.itemsize))
        logs, signs = raw[: 8 * systems].view("d"), raw[8 * systems :].view(wide)
        sign, shift = outer_determinant(program.core)
        return sign * signs[: self.count].astype(self._dtype), logs[: self.count] + shift

    def values(self, system: int) -> np.ndarray:
        """Canonical values of one system that were factored last, on the host; waits."""
        group, lane = divmod(system, LANES)
        whole = self.nnz * LANES * self._dtype.itemsize
        found = self._read_buffer(self._memory["values"], whole, group * whole).view(self._dtype)
        return np.ascontiguousarray(found[lane::LANES])

    # ---- commands

    def _begin(self) -> Stream:
        """The caller's stream, behind everything that was asked before."""
        stream: Stream = self._device.caller_stream()
        if self._event is not None and stream != self._stream:
            stream.wait(self._event)
        self._stream = stream
        return stream

    def _leave(self, stream: Stream, held: Buffer | None = None) -> None:
        """The host goes on without waiting; `_begin` on another stream will. `held`: read until then."""
        if held is not None:
            stream.synchronize()
        self._event = stream.record()

    def _on_device(self, stream: Stream, array: Any) -> tuple[int, Buffer | None]:
        """Where a C-contiguous array is on the device, and the copy of one on the host."""
        if type(array) is self._device.array_class:
            return self._device.pointer(array), None
        copy: Buffer = self._device.upload(array)
        return copy.pointer, copy

    def _source(self, source: np.ndarray | None) -> Buffer | None:
        if source is None:
            return None
        if self._sources[0] is not source:
            self._sources = source, self._device.upload(np.ascontiguousarray(source, np.int64))
        return self._sources[1]

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
        )
        stream.launch(kernel, self._groups * -(-entries // MOVED), THREADS, self._tile_bytes(), args)

    def _tile_bytes(self) -> int:
        return LANES * (LANES + 1) * self._dtype.itemsize

    def _take(self, stream: Stream, given: int, size: int, source: Buffer | None) -> None:
        """Values into lanes."""
        factoring = self._memory["factoring"]
        stream.clear(factoring.pointer, factoring.nbytes)
        self._gather(stream, given, "values", self.nnz, size, 1, source, factoring.pointer)

    def _factor(self, stream: Stream) -> None:
        program, memory, groups = self._program, self._memory, self._groups
        plan, core = program.plan, program.core
        tickets = memory["factoring"].pointer + groups * LANES * REPORT.itemsize
        arrived = tickets + 4 * TICKETS
        limits = (0.0, 0.0) if core.cholesky else _core.small_pivots_of_fronts(self._dtype.char, self.n)
        fields = addresses(program.factor_arrays) | dict(
            leaf_count=len(plan.leaves),
            team_count=len(plan.team_fronts),
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
        leaf, tile = (entries * LANES * self._dtype.itemsize for entries in (LEAF_ENTRIES, TILE_ENTRIES))
        resident, work = self._resident, program.blocks
        for file, name, count, grid, threads, shared in (
            (FRONTS, "factor_leaves", len(plan.leaves), program.leaf_blocks, THREADS, 2 * WARPS * leaf),
            (
                *(FRONTS, "factor_fronts", len(plan.team_fronts)),
                *(work(len(plan.team_fronts) * groups, 1, 2 * resident), TEAM_THREADS),
                CONTROL_BYTES + (1 + TEAM_WARPS) * leaf,
            ),
            (
                *(TILES, "factor_tiles", len(plan.tiles), work(len(plan.tiles) * groups, 1, resident), THREADS),
                tile + CONTROL_BYTES,
            ),
        ):
            if count:
                kernel = program.kernel(file, name)
                stream.launch(kernel, grid, threads, shared, record(kernel.arguments, **fields))

    @property
    def _resident(self) -> int:
        """Blocks that a multiprocessor holds of those that wait for each other."""
        return 1 if self._dtype.itemsize == 16 else 2

    def _solve_column(self, stream: Stream, b: int, x: int, column: int, columns: int, trans: int) -> None:
        """One right-hand side of every system, with the steps of refinement that some need."""
        solving, itemsize = self._memory["solving"], self._dtype.itemsize
        stream.clear(solving.pointer, solving.nbytes)
        self._gather(stream, b + column * itemsize, "b", self.n, self.n * columns, columns, None, 0)
        for step in range(1 + STEPS):
            self._substitute(stream, trans, step)
            self._measure(stream, trans, step)
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
        stream.launch(kernel, self._groups * -(-self.n // MOVED), THREADS, self._tile_bytes(), args)

    def _round(self, step: int) -> dict[str, int]:
        """Words that one round of a solve counts with."""
        groups, above = self._groups, len(self._program.plan.numbered)
        tickets = self._memory["solving"].pointer + groups * LANES * ERRORS.itemsize
        tickets += 4 * step * (TICKETS + 1 + groups * (2 + 2 * above))
        names = ("tickets", "measured", "active", "arrived", "done")
        places = np.cumsum([0, TICKETS, groups, groups + 1, groups * above]) * 4 + tickets
        return dict(zip(names, places.tolist(), strict=True))

    def _substitute(self, stream: Stream, trans: int, step: int) -> None:
        """x = op(A)^-1 b or, in a step of refinement, the other x = x + op(A)^-1 r for systems that need it."""
        program, memory, words = self._program, self._memory, self._round(step)
        plan, core, cholesky = program.plan, program.core, bool(program.cholesky)
        upper = bool(trans) and not cholesky
        conjugate = trans == 1 if cholesky else trans == 2
        into, base = ("x", "other") if step % 2 == 0 else ("other", "x")
        fields = (
            addresses(program.solve_arrays)
            | addresses(program.way(upper))
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
        shared = CONTROL_BYTES + WARPS * SOLVE_ENTRIES * LANES * self._dtype.itemsize
        kernel = program.kernel(SOLVE, "solve_lanes")
        stream.launch(kernel, max(warps, fronts), THREADS, shared, record(kernel.arguments, **fields))

    def _measure(self, stream: Stream, trans: int, step: int) -> None:
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
            conjugate=trans != 1 if program.cholesky else trans == 2,
            step=step,
            enough=REFINE_ABOVE * EPS[self._dtype],
            errors=memory["solving"].pointer,
            done=words["measured"],
            active=self._round(step - 1)["active"] if step else 0,
            active_next=words["active"],
        )
        stream.launch(kernel, self._groups * -(-self.n // MEASURED), THREADS, 32 * THREADS, args)

    # ---- what is read

    def _read(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        return self._read_buffer(self._memory[name], count * dtype.itemsize).view(dtype)

    def _read_buffer(self, buffer: Buffer, nbytes: int, offset: int = 0) -> np.ndarray:
        """Bytes of a buffer, after all that was asked for."""
        with self._device, self._lock:
            stream, found = self._begin(), np.empty(nbytes, np.uint8)
            stream.copy(found.ctypes.data, buffer.pointer + offset, nbytes)
            stream.synchronize()
        return found


def real_of(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers whose leading bits these are (kernels/common/pivots.cuh)."""
    if dtype.char in "fF":
        return bits.view(np.float32).astype(float)
    return (bits.astype(np.uint64) << np.uint64(32)).view(float)


def outer_determinant(core: Any) -> tuple[float, float]:
    """Sign and logarithm of what permutations and scales make of the determinant."""
    sign = parity(core.row_perm) * parity(core.col_perm)
    scales = (scale for scale in (core.row_scale, core.col_scale) if scale.size)
    return sign, -sum(float(np.log(scale).sum()) for scale in scales)


def parity(perm: np.ndarray) -> float:
    """Determinant of a permutation: 1 or -1."""
    seen, cycles = np.zeros(len(perm), bool), 0
    for start in range(len(perm)):
        if not seen[start]:
            cycles += 1
            k = start
            while not seen[k]:
                seen[k] = True
                k = perm[k]
    return -1.0 if (len(perm) - cycles) % 2 else 1.0


def make_batch(problem: Problem, analysis: Analysis, device: Any, count: int) -> LockstepBatch | None:
    """Memory and kernels for `count` systems; None where pivots cannot be fixed or a front is too large.

    Raises
    ------
    DeviceMemoryError
    """
    core, dtype, groups = analysis.core, problem.dtype, -(-count // LANES)
    fixed = problem.cholesky or problem.options.matching
    if not fixed or not 0 < problem.n == core.structural_rank:
        return None

    def made() -> LockstepProgram:
        return LockstepProgram(device, core.with_scales_of(dtype.char), problem.pattern, dtype, groups)

    try:
        program: LockstepProgram = problem.once(("supernodal.lockstep", dtype, groups), made)
    except ValueError:  # a front has too many rows
        return None
    return LockstepBatch(program, count, problem.request.device_memory)
