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
    """What a refactorization takes in a step of both [s].

    On a device it saves a launch and a wait; the CPU engine's next solve looks more closely.
    """
    return max(step - solve, 0.3 * refactor)


def excess(term: str, features: Features, total: float, part: float) -> dict[str, list[Observation]]:
    """What is more than a part that has a term of its own; nothing where noise hides it."""
    return {term: [Observation(features, total - part)]} if total > 1.02 * part else {}


def merge(into: dict[str, list[Observation]], more: Observations) -> None:
    """Add observations term by term."""
    for term, observations in more.items():
        into.setdefault(term, []).extend(observations)
