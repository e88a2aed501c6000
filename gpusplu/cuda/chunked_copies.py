"""Copies of large arrays between the host and a device, in chunks through page-locked memory.

The driver copies from and to pageable memory with one thread, at 5 GB/s for an H200 with a link of 50 GB/s. Here
several threads of the core fill or empty one chunk while the other one is being transferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from .. import _core

CHUNK = 1 << 23  # bytes
LEAST = 1 << 22  # bytes of an array below which a copy by the driver is as fast


class ChunkedCopies:
    """Two chunks of host memory for one device, each with its own stream."""

    def __init__(self, device: Any):
        self._device, self._lock, self._busy = device, RLock(), False
        self._sides = [(device.pinned(np.dtype(np.uint8), CHUNK), device.new_stream()) for _ in range(2)]

    def send(self, stream: Any, to: int, source: np.ndarray) -> None:
        """Copy a one-dimensional array of bytes to an address. The array has been read when this returns, and later
        commands of `stream` run after the copies."""
        with self._ordered(stream) as is_free:
            if not is_free:
                stream.copy(to, source.ctypes.data, source.size)
                return
            for begin, size, memory, side in self._chunks(source.size):
                side.synchronize()
                _core.copy(memory[:size], source[begin : begin + size])
                side.copy(to + begin, memory.ctypes.data, size)

    def fetch(self, stream: Any, to: np.ndarray, source: int) -> None:
        """Copy from an address to such an array, after the earlier commands of `stream`; complete when this returns."""
        with self._ordered(stream) as is_free:
            if not is_free:
                stream.read(to, source, to.size)
                return
            in_flight: list[tuple[int, int, np.ndarray, Any]] = []
            for chunk in self._chunks(to.size):
                if len(in_flight) == 2:
                    self._take(to, *in_flight.pop(0))
                begin, size, memory, side = chunk
                side.copy(memory.ctypes.data, source + begin, size)
                in_flight.append(chunk)
            for chunk in in_flight:
                self._take(to, *chunk)

    def _take(self, to: np.ndarray, begin: int, size: int, memory: np.ndarray, side: Any) -> None:
        side.synchronize()
        _core.copy(to[begin : begin + size], memory[:size])

    def _chunks(self, nbytes: int) -> Iterator[tuple[int, int, np.ndarray, Any]]:
        """Begin and bytes of each chunk, and its memory and stream: those of the chunk before the previous one."""
        for k, begin in enumerate(range(0, nbytes, CHUNK)):
            yield begin, min(CHUNK, nbytes - begin), *self._sides[k % 2]

    @contextmanager
    def _ordered(self, stream: Any) -> Iterator[bool]:
        """Wait for this stream, which signals can interrupt, and order it after both streams at the end. If the block
        raises, wait for both streams: the caller may then reuse the memory at either end.

        False if this thread is already inside such copies: it handles a signal, and the chunks are in use.
        """
        stream.synchronize()
        with self._lock, self._device:
            if self._busy:
                yield False
                return
            try:
                self._busy = True
                yield True
                for _, side in self._sides:
                    stream.wait(side.record())
            except BaseException:
                for _, side in self._sides:
                    side.synchronize()
                raise
            finally:
                self._busy = False


class HostCopies:
    """Copies between arrays of the host and a device; a base class of devices."""

    def send(self, stream: Any, to: int, array: np.ndarray) -> None:
        """Copy a contiguous array of the host to an address, in stream order; it may change afterwards."""
        if array.nbytes >= LEAST:
            self._chunks.send(stream, to, as_bytes(array))
        else:
            stream.copy(to, array.ctypes.data, array.nbytes)

    def fetch(self, stream: Any, to: np.ndarray, source: int) -> None:
        """Copy to a contiguous array of the host, after all commands of `stream`, and wait. Signals can interrupt
        this."""
        if to.nbytes >= LEAST:
            self._chunks.fetch(stream, as_bytes(to), source)
        else:
            stream.read(to, source, to.nbytes)

    @cached_property
    def _chunks(self) -> ChunkedCopies:
        return ChunkedCopies(self)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array."""
    return array.reshape(-1, order="A").view(np.uint8)
