"""Status of calls without a wait, accumulated on the device until the host reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...cuda.layout import struct
from ...cuda.stream import Stream
from .program import NOTHING, Status

ACCUMULATED = struct("shared/values.hpp", "AccumulatedStatus")


class AccumulatedStatus(NamedTuple):
    """``struct AccumulatedStatus`` of kernels/shared/values.hpp."""

    last: Status = NOTHING
    worst: Status = NOTHING
    error: float = 0.0
    n_factored: int = 0
    n_solved: int = 0
    n_held: int = 0
    not_finite: int = 0
    asymmetric: int = 0
    worst_solve: int = 0


class AccumulatedBuffer:
    """Accumulated status on the device, and page-locked memory that it is read into.

    Attributes
    ----------
    pointer : int
    """

    def __init__(self, device: Any):
        self._memory = device.zeros(ACCUMULATED.itemsize)
        self.pointer = self._memory.pointer
        self._read = device.pinned(ACCUMULATED, 1)
        device.own_stream().synchronize()

    def read(self, stream: Stream) -> None:
        """Wait until the status of all earlier commands of this stream is accumulated. A signal loses nothing."""
        stream.copy(self._read.ctypes.data, self.pointer, ACCUMULATED.itemsize)
        stream.synchronize()

    def take(self, stream: Stream) -> AccumulatedStatus:
        """Return the status that was read, and reset it."""
        stream.clear(self.pointer, ACCUMULATED.itemsize)
        last, worst, *numbers = self._read[0].item()
        return AccumulatedStatus(Status._make(last), Status._make(worst), *numbers)
