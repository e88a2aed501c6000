"""The glu engine's program: column-based right-looking LU, level by level.

He, Tan, Wang and Shi, IEEE TVLSI 24 (2016), algorithms 2 and 4, with the levels (section II-C) and the modes (section
III-B) of Lee, Achar and Nakhla, IEEE TVLSI 26 (2018). The schedule: core/plan/columns/glu_schedule.hpp; the kernels:
kernels/columns/glu.cu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cost.calibration import costs_of, packed
from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer, Stream
from ..columns.groups import Grouping, GroupLaunches, choose_groups, group_capacity
from ..columns.plan import ColumnPlan
from ..columns.program import ColumnArrays, ColumnProgram, ColumnSolve
from ..device.buffers import Buffers, Memory
from ..device.program import address

FILE = "columns/glu.cu"
MODES = ("cluster", "batch", "pipeline")
KERNELS = ("update_levels", "update_batch", "update_pipeline")
SHARED = "shared/columns.hpp"
THREADS = constant(SHARED, "GLU_THREADS")  # of a block, but of pipelines
RUN = struct(SHARED, "GluRun")
RESIDENT = constant(SHARED, "GLU_BLOCKS")  # blocks a multiprocessor
TICKET_BYTES, FINISH_THREADS = constant(SHARED, "GLU_TICKET_BYTES"), constant(SHARED, "GLU_FINISH_THREADS")
RESERVED_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")


@dataclass(frozen=True)
class Tuning(Grouping):
    """Choices of the model, and the groups of solves; other values than the defaults are for measurements and tests.

    Attributes
    ----------
    mode : str or None
        One of `MODES` for all levels.
    costs : mapping
        Of a pipeline's ``column`` and ``update`` [us].
    """

    mode: str | None = None
    costs: Mapping[str, float] = field(default_factory=dict)


class GluProgram(ColumnProgram):
    """A plan of columns and the launches of glu; solves are those of all column engines.

    Attributes
    ----------
    runs : ndarray of RUN
        Subtrees and levels in the order of execution, each with its mode.
    """

    name = "glu"
    files = (FILE,)

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        pattern: Pattern,
        dtype: np.dtype,
        pivot_threshold: float = 0.1,
        tuning: Tuning = Tuning(),
    ):
        super().__init__(device, plan, pattern, dtype, pivot_threshold)
        capacity = (device.shared_memory_bytes - RESERVED_BYTES) // self.dtype.itemsize
        forced = MODES.index(tuning.mode) if tuning.mode else -1
        known = costs_of(device.name)
        costs = packed({**known, "glu.schedule": {**known["glu.schedule"], **tuning.costs}})
        self.schedule = plan.glu_schedule(costs, forced, capacity)
        self.runs: np.ndarray = self.schedule.runs.view(RUN)
        self.tiny = _core.small_pivot_of_columns(self.dtype.char)
        self.arrays = ColumnArrays(device, plan, dtype)
        groups = choose_groups(device, plan, plan.n, group_capacity(device, self.dtype.itemsize), tuning)
        launches = GroupLaunches(device, dtype, groups, tuning.by_levels)
        self.solution = ColumnSolve(self.arrays, launches, plan.n)
        self.compose(plan, float(2.0 * plan.flops + plan.nnz), self.arrays, launches, self.solution)
        self.factor_seconds = self.schedule.predicted_seconds
        names = ("tasks", "chunks", "chains", "steps", "updates", "places")
        self.needed_bytes = self.count_bytes() + int(sum(getattr(self.schedule, name).nbytes for name in names))

    @property
    def _counter_words(self) -> tuple[int, int]:
        """Tickets, and completed chunks of each level."""
        return len(self.runs), self.plan.n_levels

    def factor_memory(self) -> Memory:
        memory = super().factor_memory()
        return memory._replace(zeros=memory.zeros | {"counters": 4 * sum(self._counter_words)})

    _glu_arrays = cached_property(lambda self: self._uploaded("tasks", "chunks"))
    _pipeline_arrays = cached_property(lambda self: self._uploaded("chains", "steps", "updates", "places"))

    def _uploaded(self, *names: str) -> dict[str, Buffer | None]:
        """Arrays of the schedule."""
        return self.upload_all({name: getattr(self.schedule, name) for name in names})

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self._assemble(stream, buffers, values)
        for number, run in enumerate(self.runs):
            self._update(stream, buffers, number, run)
        self._finish(stream, buffers)

    def _assemble(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        (source, scale), own, words = self.arrays.entries, buffers.own, sum(self._counter_words)
        shape = self.blocks(max(self.plan.nnz, words), THREADS, 8), THREADS, 0
        arrays = {"source": source, "scale": scale, "values": values}
        self.launch(stream, FILE, "assemble_glu", shape, [own], **arrays, count=self.plan.nnz, counter_count=words)

    def _update(self, stream: Stream, buffers: Buffers, number: int, run: np.ndarray) -> None:
        mode, begin, end, widest = (int(run[name]) for name in ("mode", "begin", "end", "widest"))
        name, own = KERNELS[mode], buffers.own
        if MODES[mode] == "pipeline":
            shape = end - begin, widest, max(1, int(run["slots"])) * self.dtype.itemsize
            self.launch(stream, FILE, name, shape, (self._pipeline_arrays, own), tiny=self.tiny, begin=begin)
            return
        counters, known = own["counters"], ({"tiny": self.tiny}, self._glu_arrays, self.arrays.arrays, own)
        fields = {"end": end, "ticket": address(counters, 4 * number), "done": address(counters, 4 * len(self.runs))}
        if MODES[mode] == "batch":
            # Twice the count of a level, so that the next level's blocks are resident when it ends.
            grid = min(2 * widest, RESIDENT * int(self.device.multiprocessors))
            self.launch(stream, FILE, name, (grid, THREADS, TICKET_BYTES), known, **fields, begin=begin)
            return
        first_chunk = self.schedule.level_chunk
        for level in range(int(run["level_begin"]), int(run["level_end"])):
            first, chunks = int(first_chunk[level]), int(first_chunk[level + 1] - first_chunk[level])
            if chunks:
                self.launch(stream, FILE, name, (chunks, THREADS, TICKET_BYTES), known, **fields, begin=first)

    def _finish(self, stream: Stream, buffers: Buffers) -> None:
        shape = self.blocks(FINISH_THREADS * self.plan.n, THREADS, 8), THREADS, 0
        fields = {"status": buffers.device_status, "tiny": self.tiny, "n": self.plan.n}
        self.launch(stream, FILE, "finish_glu", shape, (self.arrays.arrays, buffers.own), **fields)


PROGRAM = GluProgram
