"""Release of the memory of factors: collective, although ranks drop their factors at different times."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any

from .solvers import Solver
from .system import System


class Parts:
    """Parts of a factor on all ranks. `destroy` is collective."""

    def __init__(self, system: System, solver: Solver):
        self.system, self.solver = system, solver
        self.is_open = True

    def destroy(self) -> None:
        if self.is_open:
            self.is_open = False
            self.solver.destroy()
            self.system.destroy()


class Dropped:
    """For a communicator: number of factors made, and the parts of factors that are no longer referenced here."""

    def __init__(self) -> None:
        self.made = 0
        self.parts: dict[int, Parts] = {}


@cache
def key() -> int:
    """By which MPI finds the `Dropped` of a communicator, whatever Python object stands for that."""
    from mpi4py import MPI

    return int(MPI.Comm.Create_keyval())


def dropped(comm: Any) -> Dropped:
    found = comm.Get_attr(key())
    if found is None:
        found = Dropped()
        comm.Set_attr(key(), found)
    return found  # type: ignore[no-any-return]


def watch(factor: Any, comm: Any, parts: Parts) -> None:
    """Let a later `collect` destroy the parts once the factor is no longer referenced."""
    kept = dropped(comm)
    kept.made += 1
    weakref.finalize(factor, kept.parts.__setitem__, kept.made, parts).atexit = False


def collect(comm: Any) -> None:
    """Destroy the parts of factors that no rank holds any more; collective."""
    kept = dropped(comm)
    everywhere = set.intersection(*map(set, comm.allgather(list(kept.parts))))
    for number in sorted(everywhere):
        kept.parts.pop(number).destroy()
