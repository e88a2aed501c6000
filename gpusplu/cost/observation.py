"""Measured seconds of a phase with the features that predict them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .model import Features


class Observation(NamedTuple):
    """Measured seconds of one phase of one matrix."""

    features: Features
    seconds: float


Observations = Mapping[str, list[Observation]]


def net_of_solve(refactor: float, solve: float, step: float) -> float:
    """Seconds of a refactorization within a step of refactorization and solve [s].

    On a device a step saves a launch and a wait; the CPU engine checks the first solve after a refactorization more
    closely.
    """
    return max(step - solve, 0.3 * refactor)


def excess(term: str, features: Features, total: float, part: float) -> dict[str, list[Observation]]:
    """Seconds in excess of a part that has its own term; empty if noise hides the excess."""
    return {term: [Observation(features, total - part)]} if total > 1.02 * part else {}


def merge(into: dict[str, list[Observation]], more: Observations) -> None:
    """Add observations term by term."""
    for term, observations in more.items():
        into.setdefault(term, []).extend(observations)
