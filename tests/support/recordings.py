"""Graphs of emulated devices: commands of several streams, in the order of each, and what they wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Command:
    """A node of a graph: what it does, on which stream, and what has to be done before."""

    run: Callable[[], None]
    stream: int
    after: list[Command]
    done: bool = False


class Recording(list[Command]):
    """Commands of a graph while it is recorded, and how many streams are in it."""

    streams, over = 0, False


class Event(list[Command]):
    """The last commands of a stream, and the recording that they are of."""

    recording: Recording | None = None


def run_in_any_order(commands: list[Command], side_first: bool) -> None:
    """The order of each stream, and otherwise the first, or the last, runs ahead as far as what it waits for allows."""
    streams = sorted({command.stream for command in commands}, reverse=side_first)
    waiting = [deque(c for c in commands if c.stream == stream) for stream in streams]
    for command in commands:
        command.done = False
    while any(waiting):
        ahead = next(q for q in waiting if q and all(before.done for before in q[0].after))
        command = ahead.popleft()
        command.run()
        command.done = True


def joined(commands: list[Command], end: list[Command]) -> bool:
    """Whether whoever waits for `end` waits for all of them."""
    found, ahead = {id(c) for c in end}, list(end)
    while ahead:
        for command in ahead.pop().after:
            if id(command) not in found:
                found.add(id(command))
                ahead.append(command)
    return len(found) == len(commands)
