"""Predicted seconds: sums of a constant times a feature, so that constants can be fitted.

A term such as ``"sflu.refactor"`` has a constant for each of its features. Features come from an analysis or a plan:
``call`` is 1, ``rows`` and ``entries`` are those of A, ``fill`` the entries of L, ``flops`` of a factorization,
``alone`` the same where a single thread does them, ``levels`` those of columns; some are seconds that a plan models
itself by constants of its own (table.py).

A step is what ``refactor_solve`` takes: solves count as called by themselves, refactorizations as what a step takes
besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Features = dict[str, float]
Term = Mapping[str, float]
Costs = Mapping[str, Term]

#: What a user is taken to do with a factor before the pattern changes, unless ``expected_refactors=`` says otherwise.
REFACTORIZATIONS = 5


class Prediction(NamedTuple):
    """Seconds of one engine; of an engine that cannot run only `note`.

    Attributes
    ----------
    engine : str
    analyze : float
        What is still to be done, where the analysis for the CPU engine exists.
    factor, refactor, solve : float
        `refactor` and `solve` with one right-hand side, for values and vectors where the engine wants them.
    moving : float
        Of values and vectors, for one refactorization and solve, from where the caller has them.
    note : str
    first_use : float
        What the first matrix on a machine is charged of work that is done once, such as compiling kernels.
    """

    engine: str
    analyze: float = 0.0
    factor: float = 0.0
    refactor: float = 0.0
    solve: float = 0.0
    moving: float = 0.0
    note: str = ""
    first_use: float = 0.0

    @property
    def step(self) -> float:
        """One refactorization and solve."""
        return self.refactor + self.solve + self.moving

    def total(self, refactorizations: float) -> float:
        """All that a factor is used for."""
        return self.first_use + self.analyze + self.factor + refactorizations * self.step


def seconds(term: Term, features: Mapping[str, float]) -> float:
    """Of one phase."""
    return sum(constant * features[name] for name, constant in term.items())


def fastest(predictions: Iterable[Prediction], refactorizations: float) -> Prediction:
    """The one with the least total; of equals the first. Raises ValueError where none can run."""
    return min((p for p in predictions if not p.note), key=lambda p: p.total(refactorizations))
