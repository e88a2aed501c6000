"""Streams of several devices while the commands of one factorization or solve are given to them.

Every device has a stream of kernels and one of copies to others. Each waits for what it needs by events, given in an
order in which children come before parents, so that nothing waits for what is given later. The first device's stream of
kernels is the caller's: the others begin behind what it has been given, and it ends behind all of them, so that the
whole can be recorded as one graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...cuda.stream import Buffer, Stream


class Streams:
    """What a factor has of each device: streams, made once; the first device's kernels go to the caller's."""

    def __init__(self, devices: Sequence[Any]):
        self.devices = tuple(devices)
        self.kernels = [None, *(device.new_stream() for device in self.devices[1:])]
        self.copies = [device.new_stream() for device in self.devices]
        #: Whether device k copies to device m by itself.
        self.direct = [[one.reaches(other) for other in self.devices] for one in self.devices]


class Team:
    """The devices during one list of commands.

    Parameters
    ----------
    streams : Streams
    stream : Stream
        The caller's, of the first device.
    bounce : Buffer or None
        Page-locked memory of the host, where devices do not reach each other.
    """

    def __init__(self, streams: Streams, stream: Stream, bounce: Buffer | None):
        self._devices, self._direct = streams.devices, streams.direct
        self._kernels: list[Any] = [stream, *streams.kernels[1:]]
        self._copies = streams.copies
        self._bounce, self._used = bounce, 0
        self._arrived: dict[tuple[int, Hashable], list[Any]] = {}

    def __enter__(self) -> Team:
        begin = self._kernels[0].record()
        for k, device in enumerate(self._devices):
            with device:
                self._copies[k].wait(begin)
                if k:
                    self._kernels[k].wait(begin)
        return self

    def __exit__(self, *error: object) -> None:
        ends = []
        for k, device in enumerate(self._devices):
            with device:
                ends += [self._copies[k].record(), *([self._kernels[k].record()] if k else [])]
        for end in ends:
            self._kernels[0].wait(end)

    @contextmanager
    def on(self, k: int) -> Iterator[Stream]:
        """The stream of device k's kernels, while that device is the current one."""
        with self._devices[k]:
            yield self._kernels[k]

    def send(self, k: int, m: int, what: Hashable, copies: Sequence[tuple[int, int, int]]) -> None:
        """Copy from device k, behind its kernels so far, to device m: to, from and bytes of each. What is there is
        known as `what` to those that `receive` it."""
        with self._devices[k]:
            stream = self._copies[k]
            stream.wait(self._kernels[k].record())
            direct = self._direct[k][m]
            places = [to if direct else self._take(nbytes) for to, _, nbytes in copies]
            for place, (_, source, nbytes) in zip(places, copies, strict=True):
                stream.copy(place, source, nbytes)
            event = stream.record()
        if not direct:
            with self._devices[m]:
                stream = self._copies[m]
                stream.wait(event)
                for place, (to, _, nbytes) in zip(places, copies, strict=True):
                    stream.copy(to, place, nbytes)
                event = stream.record()
        self._arrived.setdefault((m, what), []).append(event)

    def receive(self, m: int, what: Hashable) -> None:
        """Kernels of device m that come now are behind the copies known as `what`."""
        with self._devices[m]:
            for event in self._arrived.pop((m, what), ()):
                self._kernels[m].wait(event)

    def _take(self, nbytes: int) -> int:
        assert self._bounce is not None
        place = self._bounce.pointer + self._used
        self._used += -(-nbytes // ALIGN) * ALIGN
        assert self._used <= self._bounce.nbytes
        return place


ALIGN = 256  # bytes of the places on the host


def bounced_bytes(direct: Sequence[Sequence[bool]], sent: Sequence[tuple[int, int, int]]) -> int:
    """Memory of the host for copies from, to and of so many bytes."""
    return sum(-(-nbytes // ALIGN) * ALIGN for k, m, nbytes in sent if not direct[k][m])
