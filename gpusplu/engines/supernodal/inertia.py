"""The signs of D of LDL^T from a factor of fronts: those of its inverted diagonal blocks."""

from __future__ import annotations

import numpy as np

from ...cuda.layout import constant
from ...cuda.stream import Buffer, Stream
from ..device.interrupted import outliving
from .diagonal import OverDiagonal

FILE = "fronts/inertia.cu"
COUNTS = constant(FILE, "INERTIA_COUNTS")
LEAST = 1e3  # eigenvalues of a block below this many roundings of its largest entry may have either sign


class Signs(OverDiagonal):
    """Signs of Hermitian D, for factors by one plan that does not stream."""

    @property
    def files(self) -> tuple[str, ...]:
        return (FILE,)

    def count(self, stream: Stream, factor: Buffer) -> tuple[int, int, int]:
        """How many eigenvalues are positive, negative, and too small to tell; waits."""
        sums, found = self.device.zeros(4 * COUNTS), np.zeros(COUNTS, np.uint32)
        least = LEAST * np.finfo(self.dtype).eps
        self._launch(stream, FILE, "count_signs", factor=factor, least=least, counts=sums)
        with outliving(self.device, sums):
            stream.read(found, sums.pointer, found.nbytes)
        positive, negative, small = found.tolist()
        return positive, negative, small
