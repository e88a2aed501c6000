"""Commands of one front that several devices share, stage by stage (tiles.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...cuda.layout import record
from ...cuda.stream import Buffer, Stream
from ..device.buffers import Buffers
from ..device.part import THREADS
from .team import Copy, Team
from .tiles import LARGE_FRONT, Part, Sent

if TYPE_CHECKING:
    from .shared_program import SharedProgram

FILE = "fronts/devices.cu"
COUNTER_BYTES = 4


class SharedFront:
    """Parameters: of which program, and which front of its plan."""

    def __init__(self, program: SharedProgram, front: int):
        plan = program.plan
        self._program, self._front, self.tiles = program, front, plan.tiles[front]
        self._home, self._segment = int(plan.front_device[front]), int(plan.front_segment[front])
        number = int(np.count_nonzero(plan.is_large[:front]))
        self._counter = int(plan.large_front_bytes.view(LARGE_FRONT)[number]["counter"])
        self._control = COUNTER_BYTES * int(plan.launches[plan.launch_ptr[self._segment]]["scalars"])

    def sent(self) -> list[Sent]:
        """All that goes between devices but contribution blocks."""
        return [each for stage in range(-1, self.tiles.chunks) for each in self.tiles.sent(stage, self._home)]

    def factor(self, team: Team, buffers: Buffers, values: Buffer) -> None:
        devices = self.tiles.group
        team.meet(devices)
        for stage in range(-1, self.tiles.chunks + 1):
            for k in devices:
                team.receive(k, (self._front, stage))
                self._launch(team, k, stage, buffers, values)
            for each in self.tiles.sent(stage, self._home):
                places = [self._factor(buffers, k) for k in (each.target, each.source)]
                copies = [self._copy(places[0], places[1], part) for part in each.parts]
                team.send(each.source, each.target, (self._front, each.stage), copies)
        team.receive(self._home, (self._front, None))
        team.meet(devices)

    def _factor(self, buffers: Buffers, k: int) -> int:
        """Address of the front's factor on a device."""
        program = self._program
        begin = int(program.own(buffers, k).own["factor"].pointer)
        return begin + int(program.shares[k].factor_place(self._front)) * program.dtype.itemsize

    def _copy(self, to: int, source: int, part: Part) -> Copy:
        size = self._program.dtype.itemsize
        at, pitch = part.begin * size, part.ld * size
        return Copy(to + at, source + at, part.rows * size, part.columns, pitch, pitch)

    def _launch(self, team: Team, k: int, stage: int, buffers: Buffers, values: Buffer) -> None:
        """The tasks of a stage that are device k's."""
        program = self._program
        begin, count = program.shares[k].stage_tasks(self._front, stage)
        if not count:
            return
        own: Any = program.own(buffers, k)
        with team.on(k) as kernels:
            self._set_progress(kernels, k, own.own["large_counters"].pointer + self._control, stage)
            given = program.values_of(buffers, values, k)
            program.each[k].factor_tasks(kernels, own, given, self._segment, begin, count)

    def _set_progress(self, kernels: Stream, k: int, counters: int, stage: int) -> None:
        """What is there before a stage, for its launch."""
        part, tiles = self._program.each[k], self.tiles
        begin, end = tiles.columns(stage) if stage >= 0 else (0, 0)
        kernel = part.kernel(FILE, "set_progress")
        fields = {"counter": self._counter, "tiles": tiles.count, "begin": begin, "end": end}
        args = record(kernel.arguments, counters=counters, **fields, upper=not part.one_triangle)
        kernels.launch(kernel, part.blocks(tiles.count, THREADS, 1), THREADS, 0, args)
