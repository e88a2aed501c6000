"""The signs of D of LDL^T from a factor of fronts: those of its inverted diagonal blocks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import constant, record
from ...cuda.stream import Buffer, Stream
from ..device.part import Part, address
from ..device.unfinished import outliving
from .diagonal import THREADS, diagonal_blocks
from .plan import Plan

FILE = "fronts/inertia.cu"
COUNTS = constant(FILE, "INERTIA_COUNTS")
LEAST = 1e3  # eigenvalues of a block this many roundings of its largest entry may have either sign


class Signs(Part):
    """Of Hermitian D, of factors by one plan that does not stream."""

    def __init__(self, device: Any, plan: Plan):
        super().__init__(device, np.dtype(plan.scalar))
        self._plan = plan

    @property
    def files(self) -> tuple[str, ...]:
        return (FILE,)

    @cached_property
    def _blocks(self) -> tuple[Buffer | None, int, int]:
        """The blocks, their number, and the order of the largest."""
        blocks = diagonal_blocks(self._plan)
        return self.upload(blocks), len(blocks), int(blocks["order"].max())

    def count(self, stream: Stream, factor: Buffer) -> tuple[int, int, int]:
        """How many eigenvalues are positive, negative, and too small to tell; waits."""
        self.load(FILE)
        blocks, count, order = self._blocks
        kernel, sums, found = (
            self.kernel(FILE, "count_signs"),
            self.device.zeros(4 * COUNTS),
            np.zeros(COUNTS, np.uint32),
        )
        self.device.own_stream().synchronize()
        args = record(
            kernel.arguments,
            factor=factor.pointer,
            blocks=address(blocks),
            count=count,
            least=LEAST * np.finfo(self.dtype).eps,
            counts=sums.pointer,
        )
        stream.launch(kernel, self.blocks(count, 1, 16), THREADS, order * order * self.dtype.itemsize, args)
        with outliving(self.device, sums):
            stream.read(found, sums.pointer, found.nbytes)
        positive, negative, small = found.tolist()
        return positive, negative, small
