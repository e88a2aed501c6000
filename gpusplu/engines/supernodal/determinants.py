"""Determinants from a factor of fronts: those of its inverted diagonal blocks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.stream import Buffer, Stream
from ..device.interrupted import outliving
from ..device.program import joined, outer_determinant
from .diagonal import OverDiagonal, are_tiles

FILE = "fronts/determinants.cu"


class Determinants(OverDiagonal):
    """Of factors by one plan that does not stream."""

    @cached_property
    def _outer(self) -> tuple[float, float]:
        """The part that is the same for all values."""
        return outer_determinant(self._plan)

    def slogdet(self, stream: Stream, factor: Buffer) -> tuple[Any, float]:
        """Sign and logarithm of the modulus of the determinant of A; waits."""
        _, blocks = self._blocks
        wide = np.dtype("D" if self.dtype.kind == "c" else "d")
        logs, signs = np.empty(len(blocks)), np.empty(len(blocks), wide)
        out = self.device.empty(logs.nbytes + signs.nbytes)
        self._launch(stream, FILE, "block_determinants", factor=factor, signs=out, logs=out.pointer + signs.nbytes)
        with outliving(self.device, out):
            stream.read(signs, out.pointer, signs.nbytes)
            stream.read(logs, out.pointer + signs.nbytes, logs.nbytes)
        sign, shift = self._outer
        if self._plan.cholesky:  # for large fronts it is the inverted triangle
            return 1.0, shift - float((logs * np.where(are_tiles(self._plan), 2, 1)).sum())
        return sign * np.conj(joined(signs)), shift - float(logs.sum())
