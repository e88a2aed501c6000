"""Factors that pass through the device: copies between the device and the host, concurrent with the kernels.

Segments 0 .. streamed - 1 of a plan share two buffers in the factor's arena (core/plan/fronts/out_of_core.cpp).
Their copies go to a second stream, in order; kernels wait until the data that they read has arrived, and copies and
kernels until the data that they overwrite is no longer used. All of it becomes part of one graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cuda.stream import Buffer, Stream
from .plan import Plan


class Copies:
    """Copies of one factor while its commands are added to a stream.

    Parameters
    ----------
    plan : Plan
        That streams.
    stream : Stream
        Of the kernels, of a graph.
    factor, host : Buffer
        The arena, and the segments on the host.
    """

    def __init__(self, plan: Plan, stream: Stream, factor: Buffer, host: Buffer):
        self._stream, self._side = stream, stream.fork()
        itemsize = np.dtype(plan.scalar).itemsize
        sizes, places = plan.segment_size * itemsize, plan.segment_place * itemsize
        self._nbytes = sizes[: plan.streamed].tolist()
        self._begin = places[: plan.streamed].tolist()
        self._device = [factor.pointer + place for place in self._begin]
        self._host = (host.pointer + np.cumsum(sizes) - sizes).tolist()
        self._held: dict[int, list[Any]] = {}  # segments on the device: events after which they may be overwritten

    def _evict(self, segment: int) -> list[Any]:
        """Free a buffer; the events after which it is free."""
        begin, end = self._begin[segment], self._begin[segment] + self._nbytes[segment]
        met = [s for s in self._held if self._begin[s] < end and begin < self._begin[s] + self._nbytes[s]]
        return [event for s in met for event in self._held.pop(s)]

    def open(self, segment: int) -> None:
        """Later kernels write this segment."""
        for event in self._evict(segment):
            self._stream.wait(event)

    def save(self, segment: int) -> None:
        """The kernels have written it; copy it to the host."""
        self._side.wait(self._stream.record())
        self._side.copy(self._host[segment], self._device[segment], self._nbytes[segment])
        self._held[segment] = [self._side.record()]

    def load(self, segment: int) -> None:
        """Later kernels read this segment."""
        if segment in self._held:
            return
        for event in self._evict(segment):
            self._side.wait(event)
        self._side.copy(self._device[segment], self._host[segment], self._nbytes[segment])
        self._stream.wait(self._side.record())

    def leave(self, segment: int) -> None:
        """The kernels have read it."""
        self._held.setdefault(segment, []).append(self._stream.record())

    def close(self) -> None:
        """Later commands wait for all copies."""
        self._stream.join(self._side)
