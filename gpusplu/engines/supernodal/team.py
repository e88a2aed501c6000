"""Streams of several devices while the commands of one factorization or solve are added to them.

Every device has a stream of kernels and one of copies to others. Each waits for its inputs by events; commands are
added in an order in which children come before parents, so that nothing waits for a later command. The first device's
stream of kernels is the caller's: the others begin after its earlier commands, and it ends after all of them, so that
everything can be one graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...cuda.stream import Buffer, Stream


class Copy(NamedTuple):
    """`width` bytes from one address to another, repeated, with pitches between the repetitions."""

    to: int
    source: int
    width: int
    times: int = 1
    to_pitch: int = 0
    source_pitch: int = 0

    @property
    def nbytes(self) -> int:
        return self.width * self.times

    def run(self, stream: Stream) -> None:
        if self.times == 1:
            stream.copy(self.to, self.source, self.width)
        else:
            stream.copy_rows(self.to, self.to_pitch, self.source, self.source_pitch, self.width, self.times)

    def by(self, place: int) -> tuple[Copy, Copy]:
        """Two copies through `place`: to it, contiguous, and from it."""
        to_staging = self._replace(to=place, to_pitch=self.width)
        return to_staging, self._replace(source=place, source_pitch=self.width)


class Streams:
    """Streams of a factor on each device, made once; the first device's kernels go to the caller's."""

    def __init__(self, devices: Sequence[Any]):
        self.devices = tuple(devices)
        self.kernels = [None, *(device.new_stream() for device in self.devices[1:])]
        self.copies = [device.new_stream() for device in self.devices]
        #: Whether device k has direct access to device m.
        self.direct = [[one.reaches(other) for other in self.devices] for one in self.devices]


class Team:
    """The devices during one list of commands.

    Parameters
    ----------
    streams : Streams
    stream : Stream
        The caller's, of the first device.
    bounce : Buffer or None
        Page-locked memory of the host, if devices have no peer access.
    """

    def __init__(self, streams: Streams, stream: Stream, bounce: Buffer | None):
        self._devices, self._direct = streams.devices, streams.direct
        self._kernels = [stream, *map(stream.peer_stream, streams.devices[1:], streams.kernels[1:])]
        self._copies = [*map(stream.peer_stream, streams.devices, streams.copies)]
        self._bounce, self._used = bounce, 0
        self._arrived: dict[tuple[int, Hashable], list[Any]] = {}
        self._met: dict[int, Any] = {}

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

    def meet(self, devices: Iterable[int]) -> None:
        """Later kernels of each of these devices run after its copies so far, and copies to it after its kernels so
        far: memory that it wrote, read or sent from before may then be reused, by other devices too."""
        for k in devices:
            with self._devices[k]:
                self._kernels[k].wait(self._copies[k].record())
                self._met[k] = self._kernels[k].record()

    def send(self, k: int, m: int, what: Hashable, copies: Sequence[Copy]) -> None:
        """Copy from device k, after its kernels so far, to device m, which calls `receive` with `what` to wait for the
        data."""
        direct = self._direct[k][m]
        routes = [(copy, copy) if direct else copy.by(self._take(copy.nbytes)) for copy in copies]
        with self._devices[k]:
            stream = self._copies[k]
            stream.wait(self._kernels[k].record())
            self._wait_for(m, stream)
            for copy, _ in routes:
                copy.run(stream)
            event = stream.record()
        if not direct:
            with self._devices[m]:
                stream = self._copies[m]
                stream.wait(event)
                self._wait_for(m, stream)
                for _, copy in routes:
                    copy.run(stream)
                event = stream.record()
        self._arrived.setdefault((m, what), []).append(event)

    def _wait_for(self, m: int, stream: Stream) -> None:
        """Wait until device m has met the others."""
        if m in self._met:
            stream.wait(self._met[m])

    def receive(self, m: int, what: Hashable) -> None:
        """Later kernels of device m run after the copies known as `what`."""
        with self._devices[m]:
            for event in self._arrived.pop((m, what), ()):
                self._kernels[m].wait(event)

    def _take(self, nbytes: int) -> int:
        assert self._bounce is not None
        place = self._bounce.pointer + self._used
        self._used += -(-nbytes // ALIGN) * ALIGN
        assert self._used <= self._bounce.nbytes
        return place


ALIGN = 256  # alignment of places on the host [bytes]


def bounced_bytes(direct: Sequence[Sequence[bool]], sent: Sequence[tuple[int, int, int]]) -> int:
    """Host memory for copies, given as (from, to, bytes)."""
    return sum(-(-nbytes // ALIGN) * ALIGN for k, m, nbytes in sent if not direct[k][m])
