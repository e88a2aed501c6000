"""Determinants from a factor of fronts: those of its inverted diagonal blocks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import record
from ...cuda.stream import Buffer, Stream
from ..device.determinants import joined, outer_determinant
from ..device.part import Part, address
from ..device.unfinished import outliving
from .diagonal import THREADS, diagonal_blocks, is_large
from .plan import Plan

FILE = "fronts/determinants.cu"


class Determinants(Part):
    """Of factors by one plan that does not stream."""

    def __init__(self, device: Any, plan: Plan):
        super().__init__(device, np.dtype(plan.scalar), plan.cholesky)
        self._plan = plan

    @cached_property
    def _blocks(self) -> tuple[Buffer | None, np.ndarray]:
        blocks = diagonal_blocks(self._plan)
        return self.upload(blocks), blocks

    @cached_property
    def _outer(self) -> tuple[float, float]:
        """What is the same for all values."""
        return outer_determinant(self._plan)

    def slogdet(self, stream: Stream, factor: Buffer) -> tuple[Any, float]:
        """Sign and logarithm of the modulus of the determinant of A; waits."""
        self.load(FILE)
        on_device, blocks = self._blocks
        kernel, wide = self.kernel(FILE, "block_determinants"), np.dtype("D" if self.dtype.kind == "c" else "d")
        count, order = len(blocks), int(blocks["order"].max())
        logs, signs = np.empty(count), np.empty(count, wide)
        out = self.device.empty(logs.nbytes + signs.nbytes)
        self.device.own_stream().synchronize()
        args = record(
            kernel.arguments,
            factor=factor.pointer,
            blocks=address(on_device),
            count=count,
            signs=out.pointer,
            logs=out.pointer + signs.nbytes,
        )
        stream.launch(kernel, self.blocks(count, 1, 16), THREADS, order * order * self.dtype.itemsize, args)
        with outliving(self.device, out):
            stream.read(signs, out.pointer, signs.nbytes)
            stream.read(logs, out.pointer + signs.nbytes, logs.nbytes)
        sign, shift = self._outer
        if self._plan.cholesky:  # of large fronts it is the triangle that was inverted
            return 1.0, shift - float((logs * np.where(is_large(self._plan, blocks), 2, 1)).sum())
        return sign * np.conj(joined(signs)), shift - float(logs.sum())
