"""A batch that is larger than memory: an engine has capacity for some of the systems and processes all in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common import matrix
from .interface import Batch, Given

if TYPE_CHECKING:
    from .interface import Analysis, Engine
    from .problem import Problem

MULTIPLE = 32  # chunks have a multiple of this many systems if possible: as many as a warp factors concurrently


def make_batch(engine: Engine, problem: Problem, analysis: Analysis, count: int) -> Batch | None:
    """A batch with capacity for `count` systems or, if memory is short, for as many as fit, processed in turn.

    Raises
    ------
    MemoryError
        There is none for a single system.
    """
    size = count
    while True:
        try:
            batch = engine.batch(problem, analysis, size)
        except MemoryError:
            if size == 1:
                raise
            size = -(-size // 2)
            size -= size % MULTIPLE if size > MULTIPLE else 0
            continue
        return batch if size == count or batch is None else ChunkedBatch(batch, count, size)


class ChunkedBatch(Batch):
    """Systems that one batch of an engine factors chunk by chunk, again for every solve; their values are kept.

    Parameters
    ----------
    batch : Batch
        Of `size` systems. The last chunk is filled up with systems of the one before it.
    count, size : int
    """

    def __init__(self, batch: Batch, count: int, size: int):
        self._batch, self._starts = batch, [*range(0, count - size, size), count - size]
        self.n, self.nbytes, self.steps = batch.n, batch.nbytes, np.zeros(count, np.int32)
        self._count, self._size, self._loaded = count, size, -1
        self._errors = np.full(count, np.nan)
        self._values: Any = None
        self._source: np.ndarray | None = None

    def _load(self, start: int) -> slice:
        """Factor the systems from `start` on; return their range."""
        which = slice(start, start + self._size)
        if self._loaded != start:
            self._batch.refactor(self._values[which], self._source)
            self._loaded = start
        return which

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        self._values, self._source, self._loaded = values.copy(), source, -1

    def report(self) -> np.ndarray:
        parts = [(self._load(start), self._batch.report().copy()) for start in self._starts]
        report = np.empty(self._count, parts[0][1].dtype)
        for which, part in parts:
            report[which] = part
        return report

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        if given is not None:
            self.refactor(*given)
        x = None
        for start in self._starts:
            which = self._load(start)
            part = self._batch.solve(b[which], trans)
            if x is None:
                x = part if self._size == self._count else _empty_like(part, b.shape)
            x[which] = part
            self._errors[which], self.steps[which] = self._batch.errors(), self._batch.steps
        return x

    def errors(self) -> np.ndarray:
        return self._errors

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        sign: Any = None
        logabsdet = np.zeros(self._count)
        for start in self._starts:
            which = self._load(start)
            part, logabsdet[which] = self._batch.slogdet()
            sign = np.zeros(self._count, part.dtype) if sign is None else sign
            sign[which] = part
        return sign, logabsdet

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        entries: Any = None
        errors = np.zeros(self._count)
        for start in self._starts:
            which = self._load(start)
            part, errors[which] = self._batch.inverse_on_pattern()
            entries = np.zeros((self._count, part.shape[1]), part.dtype) if entries is None else entries
            entries[which] = part
        return entries, errors

    def values(self, system: int) -> np.ndarray:
        one = matrix.to_host(self._values[system])
        return one.copy() if self._source is None else one[self._source]


def _empty_like(array: Any, shape: tuple[int, ...]) -> Any:
    """A new array of the kind and the dtype of `array`."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, array.dtype)
    import cupy

    return cupy.empty(shape, array.dtype)
