"""Graphs of emulated devices: commands and their dependencies."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusplu.cuda.graphs import GraphStream, Nodes

#: Which of several commands whose dependencies are done runs next: the one added first, or last, or a random one.
FIRST, LAST = "first", "last"
Order = str | int


@dataclass(eq=False)
class Command:
    """A node of a graph and its dependencies."""

    run: Callable[[], None]
    after: tuple[Command, ...]
    programmatic: bool = False  # depends on its predecessor by a programmatic edge


class Recording(list[Command]):
    """Commands of a graph, with the interface of `GraphBuilder` (gpusplu/cuda/graphs.py)."""

    def launch(
        self, device: Any, kernel: Any, shape: tuple[int, int, int], args: np.ndarray, after: Nodes, programmatic: bool
    ) -> Command:
        made = self.add(device, device.kernel_command(kernel, *shape, args), after)
        if programmatic:
            device.count("dependent")
            made.programmatic = True
        return made

    def copy(
        self, device: Any, to: tuple[int, int], source: tuple[int, int], shape: tuple[int, int], after: Nodes
    ) -> Command:
        return self.add(device, device.copy_command(to, source, shape), after)

    def clear(self, device: Any, to: int, nbytes: int, after: Nodes) -> Command:
        return self.add(device, device.clear_command(to, nbytes), after)

    def add(self, device: Any, run: Callable[[], None], after: Nodes) -> Command:
        device.must_be_current()
        assert len(set(after)) == len(after), "duplicate dependencies"
        self.append(Command(run, after))
        return self[-1]


class CapturedStream(GraphStream):
    """The caller's stream while he captures it."""

    __slots__ = ()
    captured = True

    def call(self, run: Callable[[], None]) -> None:
        """Add work of a kernel of the caller."""
        self._append(self._builder.add(self._device, run, self._last))

    def replay(self, graph: Any) -> None:
        raise AssertionError("a graph cannot be captured into another")

    def read(self, to: np.ndarray, source: int, nbytes: int) -> None:
        self.synchronize()

    def synchronize(self) -> None:
        raise AssertionError("the host cannot wait for what is only captured")


@dataclass(eq=False)
class EmulatedGraph:
    """An executable graph."""

    commands: Sequence[Command]

    def run(self, order: Order) -> None:
        if order == FIRST:  # dependencies are added before their dependents
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
    """Whether `end` depends on all other commands."""
    found, ahead = set(end), list(end)
    while ahead:
        for command in ahead.pop().after:
            if command not in found:
                found.add(command)
                ahead.append(command)
    return len(found) == len(commands)
