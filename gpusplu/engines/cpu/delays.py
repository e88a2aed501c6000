"""Results of earlier LDL^T factorizations for later ones: columns that were delayed to the fronts of parents.

If LDL^T was used instead of LU and was inaccurate or impossible, also the analysis for LU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..processor import cpu_factor

if TYPE_CHECKING:
    from ..interface import Analysis
    from ..problem import Problem

#: Ratio of entries of L with and without delayed columns above which the delays of other values are not reused.
MOST_FILL = 1.5


class Delays:
    """State stored with an analysis.

    Attributes
    ----------
    found : tuple of (_core.Symbolic, int) or None
        Analysis to start with, and the number of pivots that were still perturbed when it was found.
    """

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: tuple[Any, int] | None = None


def factor_with_delays(problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
    """An LDL^T factor of canonical values, with columns placed where the earlier factorizations moved them.

    Other values may be worse off with that placement: more perturbed pivots than the values it was found for, or no
    LDL^T factor at all. Then gpusplu tries the original analysis and drops the stored one.
    """
    delays: Delays = problem.memo("delays", Delays)
    known = delays.found
    if known is not None:
        core, perturbed = known
        factor = cpu_factor(core, problem.pattern, values, problem.options)
        as_good = factor.symbolic.kind == "ldlt" and factor.stats()["n_perturbed"] <= perturbed
        if as_good or problem.kind == "lu":
            delays.found = led_to(factor, analysis)
            return factor
    factor = cpu_factor(analysis.core, problem.pattern, values, problem.options)
    delays.found = led_to(factor, analysis)
    return factor


def led_to(factor: Any, analysis: Analysis) -> tuple[Any, int] | None:
    """The analysis that the next factorization starts with; None if it is the original analysis."""
    symbolic, stats = factor.symbolic, factor.stats()
    if symbolic is analysis.core or stats["n_repivoted"] > 0:
        return None
    too_large = symbolic.kind == "ldlt" and symbolic.lnz > MOST_FILL * analysis.core.lnz
    return None if too_large else (symbolic, stats["n_perturbed"])
