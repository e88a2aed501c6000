"""A batch of systems distributed over several devices: each has some of them, in lockstep as on a single device.

The caller's arrays on a device are on the first one. The parts that the other devices need are copied to them after the
earlier commands of the caller's stream, and their results are copied back; through the host, with a wait, if the
devices have no peer access. Arrays on the host go to all devices concurrently, one thread each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...cuda.several import failures
from ..interface import Batch, Given
from .batch import LockstepBatch
from .lockstep import LANES


def shares(count: int, speeds: Sequence[float]) -> list[int]:
    """How many of `count` systems each device gets: whole groups of a warp's lanes if there are enough, and in any
    case some for the first one."""
    step = LANES if count >= LANES * len(speeds) else 1
    ends = np.cumsum(speeds) / sum(speeds) * count
    bounds = [0, *(int(np.ceil(end / step)) * step for end in ends[:-1]), count]
    return [int(some) for some in np.diff(np.minimum(bounds, count))]


class DistributedBatch(Batch):
    """A batch on several devices.

    Parameters
    ----------
    batches : list of LockstepBatch
        Of the devices that have systems, the first device's first.
    devices : list of cuda.devices.Device
    """

    def __init__(self, batches: list[LockstepBatch], devices: list[Any]):
        self._batches, self._devices = batches, devices
        self._lead = devices[0]
        self._dtype = batches[0]._dtype
        ends = np.cumsum([batch.count for batch in batches]).tolist()
        self._ranges = [slice(end - batch.count, end) for end, batch in zip(ends, batches, strict=True)]
        self.n, self.count = batches[0].n, ends[-1]
        self.nbytes = sum(batch.nbytes for batch in batches)

    # ---- what the facade calls

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        if type(values) is not self._lead.array_class:
            self._together(lambda k: self._batches[k].refactor(values[self._ranges[k]], source))
            return
        with self._spread(values) as parts:
            for batch, part in zip(self._batches, parts, strict=True):
                batch.refactor(part, source)

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        if given is not None:
            self.refactor(*given)
        if type(b) is not self._lead.array_class:
            x, ranges = np.empty(b.shape, self._dtype), self._ranges
            self._together(lambda k: self._batches[k].solve(b[ranges[k]], trans, out=x[ranges[k]]))
            return x
        with self._spread(b) as parts:
            found = [batch.solve(part, trans) for batch, part in zip(self._batches, parts, strict=True)]
        with self._lead:
            x = self._lead.array(b.shape[::-1], self._dtype).T
        for device, part, which in zip(self._devices, found, self._ranges, strict=True):
            self._copy(device, part, self._lead, x[which])
        return x

    def report(self) -> np.ndarray:
        return np.concatenate(self._together(lambda k: self._batches[k].report()))

    def errors(self) -> np.ndarray:
        return np.concatenate(self._together(lambda k: self._batches[k].errors()))

    @property
    def steps(self) -> np.ndarray:  # type: ignore[override]
        """Of refinement in the last solve, shape (count,); waits."""
        return np.concatenate([batch.steps for batch in self._batches])

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        signs, logs = zip(*self._together(lambda k: self._batches[k].slogdet()), strict=True)
        return np.concatenate(signs), np.concatenate(logs)

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        entries, errors = zip(*self._together(lambda k: self._batches[k].inverse_on_pattern()), strict=True)
        return np.concatenate(entries), np.concatenate(errors)

    def values(self, system: int) -> np.ndarray:
        k = next(k for k, which in enumerate(self._ranges) if system < which.stop)
        return self._batches[k].values(system - self._ranges[k].start)

    # ---- between the devices

    def _together(self, call: Callable[[int], Any]) -> list[Any]:
        """The results of `call` for every device; each waits for the host in its own thread."""
        with failures(self._devices):
            pool = ThreadPoolExecutor(len(self._batches))
            futures = [pool.submit(call, k) for k in range(len(self._batches))]
            try:
                wait(futures)
            finally:
                pool.shutdown(wait=False)  # only `wait` waits, which signals can interrupt
            return [one.result() for one in futures]

    @contextmanager
    def _spread(self, array: Any) -> Iterator[list[Any]]:
        """The systems' parts of an array on the first device, each on their own device. Commands that the first device
        gets meanwhile run concurrently with the copies, and before any later change of the array."""
        lead, parts, ends = self._lead, [array[which] for which in self._ranges], []
        with lead:
            begin = lead.caller_stream().record()
        for k, device in enumerate(self._devices[1:], 1):
            with device:
                copy = device.array(parts[k].shape[::-1], array.dtype).T
            ends.append(self._copy(lead, parts[k], device, copy, begin))
            parts[k] = copy
        try:
            yield parts
        finally:
            with lead:
                for end in filter(None, ends):
                    lead.caller_stream().wait(end)

    def _copy(self, source: Any, array: Any, target: Any, to: Any, begin: Any = None) -> Any:
        """Copy a C-contiguous array before later commands of the target's stream. With `begin`, the copy runs after
        that event, and its completion event is returned; else it runs after the earlier commands of the source's
        stream, and before later ones."""
        with failures(self._devices):
            if not source.reaches(target):
                with source:
                    on_host = array.get()
                with target:
                    to.set(on_host)
                return None
            with source:
                behind = begin or source.caller_stream().record()
            with target:
                stream = target.caller_stream()
                stream.wait(behind)
                stream.copy(target.pointer(to), source.pointer(array), array.nbytes)
                end = stream.record()
            if begin is None:
                with source:
                    source.caller_stream().wait(end)
            return end
