"""Predicted seconds: sums of a constant times a feature, so that constants can be fitted.

A term such as ``"sflu.refactor"`` has a constant for each of its features. Features come from an analysis or a plan:
``call`` is 1, ``rows`` and ``entries`` are those of A, ``fill`` the entries of L, ``flops`` of a factorization,
``alone`` the same for a single thread, ``levels`` those of columns; some are seconds that a plan models
by constants of its own (table.py).

A step is one ``refactor_solve``: solves are measured as separate calls, and a refactorization is the rest of the
step. An `Observation` is what constants are fitted to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Features = dict[str, float]
Term = Mapping[str, float]
Costs = Mapping[str, Term]

#: Assumed uses of a factor before the pattern changes, unless ``expected_refactors=`` is given.
REFACTORIZATIONS = 5


class Estimate(NamedTuple):
    """Seconds of one engine; only `note` for an engine that cannot run.

    Attributes
    ----------
    engine : str
    analyze : float
        Remaining seconds, if the analysis for the CPU engine exists.
    factor, refactor, solve : float
        `refactor` and `solve` with one right-hand side, with values and vectors on the side that the engine needs.
    moving : float
        Transfers of values and vectors, for one refactorization and solve, from the caller's side.
    note : str
    first_use : float
        Share of one-time work, such as compiling kernels, that the first matrix on a machine is charged.
    device_bytes : int
        Device memory of a factor, about.
    prefers_single : str
        Why ``precision="auto"`` selects mixed precision; empty if it selects double.
    """

    engine: str
    analyze: float = 0.0
    factor: float = 0.0
    refactor: float = 0.0
    solve: float = 0.0
    moving: float = 0.0
    note: str = ""
    first_use: float = 0.0
    device_bytes: int = 0
    prefers_single: str = ""

    @property
    def step(self) -> float:
        """One refactorization and solve."""
        return self.refactor + self.solve + self.moving

    def total(self, refactorizations: float) -> float:
        """All uses of a factor."""
        return self.first_use + self.analyze + self.factor + refactorizations * self.step


def seconds(term: Term, features: Mapping[str, float]) -> float:
    """Predicted seconds of one phase."""
    return sum(constant * features[name] for name, constant in term.items())


def fastest(estimates: Iterable[Estimate], refactorizations: float) -> Estimate:
    """The estimate with the least total, the first of equal ones. Raises ValueError if none can run."""
    return min((p for p in estimates if not p.note), key=lambda p: p.total(refactorizations))


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
