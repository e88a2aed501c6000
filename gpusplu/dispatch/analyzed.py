"""A matrix with the engine chosen for it and that engine's analysis, from which values are factored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.options import Options
from ..engines import registry
from ..engines.interface import Analysis
from ..engines.mixed.factor import mixed_factor
from ..engines.problem import Problem
from ..typing import Kind
from .selection import Choice, select


class Analyzed:
    """An analysed matrix. Immutable, and usable from several threads; the pattern cache holds it.

    Parameters
    ----------
    problem : Problem
    choice : Choice
        The engine, the reason for it, and the predictions.
    analysis : Analysis
        Of that engine.
    call : int, optional
        Number of the call that made the analysis if it comes from the pattern cache, else 0.
    remembered : bool, optional
        The problem has no values and already holds the analysis.
    """

    __slots__ = ("_analysis", "_problem", "call", "choice", "seconds")

    def __init__(
        self, problem: Problem, choice: Choice, analysis: Analysis, call: int = 0, *, remembered: bool = False
    ):
        self.seconds, self.call = problem.seconds if remembered else dict(problem.seconds), call
        if not remembered:
            problem = problem.again(request=choice.request)
            registry.named(choice.engine).adopt(problem, analysis)
        self._problem, self.choice, self._analysis = problem, choice, analysis

    @property
    def n(self) -> int:
        """Order of A."""
        return int(self._problem.n)

    @property
    def nnz(self) -> int:
        """Number of entries of A."""
        return int(self._problem.nnz)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of A."""
        return self.n, self.n

    @property
    def engine(self) -> str:
        """Name of the engine that was chosen."""
        return self.choice.engine

    @property
    def kind(self) -> Kind:
        """Kind of factorization: "lu", "cholesky" or "ldlt"."""
        return self._problem.kind  # type: ignore[return-value]

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Attributes of the core's analysis."""
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(self._analysis.core, name)

    def parts(self) -> tuple[Problem, Analysis]:
        """Problem and analysis, as engines take them."""
        return self._problem, self._analysis

    def again(self, call: int, seconds: float, options: Options) -> Analyzed:
        """This analysis for a later call that took `seconds` to find it, with the threshold of its options."""
        found = Analyzed(self._problem.again(options), self.choice, self._analysis, call)
        found.seconds = {"canonicalize": seconds, "analyze": 0.0}
        return found

    def compatible_with(self, canonical: np.ndarray) -> Analyzed:
        """Itself; if the analysed values were structurally singular, an analysis of these values."""
        if self._analysis.core.structural_rank == self.n:
            return self
        problem = self._problem
        return analyze_problem(Problem(problem.pattern, canonical, problem.kind, problem.options, self.choice.request))

    def migrated_to(self, other: Analyzed) -> Analyzed:
        """The analysis `other` of the same pattern for another engine, with the pivot threshold of this one."""
        if self._analysis is other._analysis:
            return self
        options = self._problem.options
        if options.pivot_threshold == other._problem.options.pivot_threshold:
            return other
        found = Analyzed(other._problem.again(options), other.choice, other._analysis, other.call)
        found.seconds = dict(other.seconds)
        return found

    def make(self, canonical: np.ndarray) -> Any:
        """The engine's factor of canonical values, shape (nnz,); with mixed precision a wrapper of it."""
        engine = registry.named(self.engine)
        make = mixed_factor if self._problem.options.precision == "mixed" else type(engine).factor
        return make(engine, self._problem, self._analysis, canonical)


def analyze_problem(problem: Problem) -> Analyzed:
    """Choose an engine for a matrix, and analyse for it."""
    return Analyzed(problem, *select(problem))
