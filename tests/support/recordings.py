"""Graphs of emulated devices: commands, and what each has to wait for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusplu.cuda.graphs import GraphStream, Nodes

#: Of commands that do not wait for each other: that which was added first, or last; or any, by a random number.
FIRST, LAST = "first", "last"
Order = str | int


@dataclass(eq=False)
class Command:
    """A node of a graph: what it does, and what has to be done before."""

    run: Callable[[], None]
    after: tuple[Command, ...]
    early: bool = False  # it may begin before the one before has ended


class Recording(list[Command]):
    """Commands of a graph, as a device's `Building` takes them (gpusplu/cuda/graphs.py)."""

    def launch(
        self, device: Any, kernel: Any, shape: tuple[int, int, int], args: np.ndarray, after: Nodes, early: bool
    ) -> Command:
        made = self.add(device, device.kernel_command(kernel, *shape, args), after)
        if early:
            device.count("dependent")
            made.early = True
        return made

    def copy(
        self, device: Any, to: tuple[int, int], source: tuple[int, int], shape: tuple[int, int], after: Nodes
    ) -> Command:
        return self.add(device, device.copy_command(to, source, shape), after)

    def clear(self, device: Any, to: int, nbytes: int, after: Nodes) -> Command:
        return self.add(device, device.clear_command(to, nbytes), after)

    def add(self, device: Any, run: Callable[[], None], after: Nodes) -> Command:
        device.must_be_current()
        assert len(set(after)) == len(after), "what comes before is named twice"
        self.append(Command(run, after))
        return self[-1]


class CapturedStream(GraphStream):
    """The caller's stream while he captures it."""

    __slots__ = ()
    captured = True

    def call(self, run: Callable[[], None]) -> None:
        """What a kernel of the caller's does."""
        self._put(self._building.add(self._device, run, self._last))

    def replay(self, graph: Any) -> None:
        raise AssertionError("a graph cannot be captured into another")

    def read(self, to: np.ndarray, source: int, nbytes: int) -> None:
        self.synchronize()

    def synchronize(self) -> None:
        raise AssertionError("the host cannot wait for what is only captured")


@dataclass(eq=False)
class Replayable:
    """A graph."""

    commands: Sequence[Command]

    def run(self, order: Order) -> None:
        if order == FIRST:  # which is how they are listed
            for command in self.commands:
                command.run()
            return
        left = {command: len(command.after) for command in self.commands}
        behind: dict[Command, list[Command]] = {command: [] for command in self.commands}
        for command in self.commands:
            for before in command.after:
                behind[before].append(command)
        ready, chance = [command for command, count in left.items() if not count], random.Random(order)
        while ready:
            command = ready.pop(-1 if order == LAST else chance.randrange(len(ready)))
            command.run()
            for other in behind[command]:
                left[other] -= 1
                if not left[other]:
                    ready.append(other)
        assert not any(left.values())


def joined(commands: Sequence[Command], end: Sequence[Command]) -> bool:
    """Whether whoever waits for `end` waits for all of them."""
    found, ahead = set(end), list(end)
    while ahead:
        for command in ahead.pop().after:
            if command not in found:
                found.add(command)
                ahead.append(command)
    return len(found) == len(commands)
