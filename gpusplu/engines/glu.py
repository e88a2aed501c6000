"""The glu engine's program: column-based right-looking LU, level by level.

He, Tan, Wang and Shi, IEEE TVLSI 24 (2016), with the dependency rule and the modes of Lee, Achar and Nakhla, IEEE TVLSI
26 (2018). What runs when: core/plan/columns/glu_schedule.hpp; how: kernels/columns/glu.cu.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import _core
from ..cuda.layout import constant, record, struct
from ..cuda.stream import Buffer, Stream
from .buffers import Buffers, Memory
from .grouped_program import GroupedProgram
from .program import address

FILE = "columns/glu.cu"
MODES = ("cluster", "batch", "pipeline")
KERNELS = ("update_levels", "update_batch", "update_pipeline")
SHARED = "shared/glu.hpp"
THREADS = constant(SHARED, "GLU_THREADS")  # of a block, but of pipelines
PIECE, TASK, RUN = (struct(SHARED, name) for name in ("GluPiece", "GluTask", "GluRun"))
CHAIN, STEP, UPDATE = (struct(SHARED, name) for name in ("GluChain", "GluStep", "GluUpdate"))
RESIDENT = constant(SHARED, "GLU_BLOCKS")  # blocks a multiprocessor
TICKET_BYTES, FINISH_THREADS = constant(SHARED, "GLU_TICKET_BYTES"), constant(SHARED, "GLU_FINISH_THREADS")
SPARE_BYTES = constant(SHARED, "RESERVED_SHARED_BYTES")


class GluProgram(GroupedProgram):
    """A plan of columns and the launches of glu; solves are those of all column engines.

    Attributes
    ----------
    forced_mode : {None, "cluster", "batch", "pipeline"}
        For all levels instead of what the model chooses; of the class, for measurements and tests.
    costs : dict
        Of a pipeline's ``column`` and ``update``, where others than the model's are to be tried [us]; likewise.
    """

    engine = "glu"
    forced_mode: str | None = None
    costs: ClassVar[dict[str, float]] = {}

    def prepare(self) -> None:
        self.device.prepare(
            ["columns/column_solve.cu", FILE, "common/residual.cu", "common/values.cu"], self.dtype.char, 0
        )

    @property
    def factor_seconds(self) -> float:  # type: ignore[override]
        predicted: float = self._schedule.predicted_seconds
        return predicted

    @cached_property
    def _schedule(self) -> Any:
        forced = MODES.index(self.forced_mode) if self.forced_mode else -1
        capacity = (self.device.shared_memory_bytes - SPARE_BYTES) // self.dtype.itemsize
        return _core.make_glu_schedule(self.plan._core, forced, capacity, **self.costs)

    @cached_property
    def runs(self) -> np.ndarray:
        """Type RUN: subtrees and levels in the order in which they are worked off, and in which mode."""
        runs: np.ndarray = self._schedule.run_bytes.view(RUN)
        return runs

    def _count_bytes(self) -> int:
        schedule = self._schedule
        names = ("task_bytes", "piece_bytes", "chain_bytes", "step_bytes", "update_bytes", "place_bytes")
        return super()._count_bytes() + int(sum(getattr(schedule, name).nbytes for name in names))

    @property
    def _counter_words(self) -> tuple[int, int]:
        """Tickets, pieces done of each level."""
        return len(self.runs), self.plan.n_levels

    def factor_memory(self) -> Memory:
        memory = super().factor_memory()
        return memory._replace(zeros=memory.zeros | {"counters": 4 * sum(self._counter_words)})

    @cached_property
    def _glu_arrays(self) -> dict[str, Buffer | None]:
        tasks, pieces = self._schedule.task_bytes, self._schedule.piece_bytes
        names = ("row", "map16", "map32")
        return {"tasks": self.upload(tasks), "pieces": self.upload(pieces)} | {
            name: self._column_arrays[name] for name in names
        }

    @cached_property
    def _pipeline_arrays(self) -> dict[str, Buffer | None]:
        schedule = self._schedule
        arrays = {"chains": schedule.chain_bytes, "steps": schedule.step_bytes, "updates": schedule.update_bytes}
        arrays["places"] = schedule.place_bytes
        return {name: self.upload(array) for name, array in arrays.items()}

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self._assemble(stream, buffers, values)
        for number, run in enumerate(self.runs):
            self._update(stream, buffers, number, run)
        self._finish(stream, buffers)

    def _assemble(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        kernel = self.kernel(FILE, "assemble_glu")
        source, scale = self._entries
        args = record(
            kernel.arguments,
            source=address(source),
            scale=address(scale),
            values=values.pointer,
            factor=buffers.own["factor"].pointer,
            count=self.plan.nnz,
            counters=buffers.own["counters"].pointer,
            counter_count=sum(self._counter_words),
        )
        stream.launch(kernel, self._blocks(max(self.plan.nnz, sum(self._counter_words)), THREADS, 8), THREADS, 0, args)

    def _update(self, stream: Stream, buffers: Buffers, number: int, run: np.ndarray) -> None:
        mode, begin, end, widest = (int(run[name]) for name in ("mode", "begin", "end", "widest"))
        kernel = self.kernel(FILE, KERNELS[mode])
        shared: dict[str, Any] = {"factor": buffers.own["factor"].pointer, "tiny": self.tiny}
        if MODES[mode] == "pipeline":
            arrays = {name: address(buffer) for name, buffer in self._pipeline_arrays.items()}
            slots = max(1, int(run["slots"])) * self.dtype.itemsize
            stream.launch(kernel, end - begin, widest, slots, record(kernel.arguments, **arrays, **shared, begin=begin))
            return
        counters = buffers.own["counters"].pointer
        fields = shared | {
            **{name: address(buffer) for name, buffer in self._glu_arrays.items()},
            "end": end,
            "ticket": counters + 4 * number,
            "done": counters + 4 * len(self.runs),
        }
        if MODES[mode] == "batch":
            # Twice what a level has, so that the next level's blocks are there when it ends.
            grid = min(2 * widest, RESIDENT * int(self.device.multiprocessors))
            stream.launch(kernel, grid, THREADS, TICKET_BYTES, record(kernel.arguments, **fields, begin=begin))
            return
        first_piece = self._schedule.level_piece
        for level in range(int(run["level_begin"]), int(run["level_end"])):
            first, pieces = int(first_piece[level]), int(first_piece[level + 1] - first_piece[level])
            if pieces:
                stream.launch(kernel, pieces, THREADS, TICKET_BYTES, record(kernel.arguments, **fields, begin=first))

    def _finish(self, stream: Stream, buffers: Buffers) -> None:
        kernel = self.kernel(FILE, "finish_glu")
        args = record(
            kernel.arguments,
            col_ptr=address(self._column_arrays["col_ptr"]),
            diag=address(self._column_arrays["diag"]),
            factor=buffers.own["factor"].pointer,
            status=buffers.device_status.pointer,
            tiny=self.tiny,
            singular=self.singular,
            n=self.plan.n,
        )
        stream.launch(kernel, self._blocks(FINISH_THREADS * self.plan.n, THREADS, 8), THREADS, 0, args)
