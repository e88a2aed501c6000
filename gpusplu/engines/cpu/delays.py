"""What factorizations by LDL^T have led to, for those to come: columns that were moved to the fronts of parents.

And where LDL^T stood for LU and was not accurate, or not possible, the analysis for LU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..processor import cpu_factor

if TYPE_CHECKING:
    from ..interface import Analysis
    from ..problem import Problem

#: Entries of L with delayed columns over those without, beyond which delays of other values are too dear.
MOST_FILL = 1.5


class Delays:
    """What is remembered beside an analysis.

    Attributes
    ----------
    found : tuple of (_core.Symbolic, int) or None
        What to begin with, and how many pivots were perturbed all the same when it was found.
    """

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: tuple[Any, int] | None = None


def factor_with_delays(problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
    """A factor by LDL^T of canonical values, with columns where the factorizations before found that they belong.

    Other values may be worse off there, with more perturbed pivots than the values had that it was found for, or no
    factor by LDL^T at all. Then the analysis is tried as it was made, and what was remembered is forgotten.
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
    """What the next factorization begins with; None where that is the analysis as it was made."""
    symbolic, stats = factor.symbolic, factor.stats()
    if symbolic is analysis.core or stats["n_repivoted"] > 0:
        return None
    too_large = symbolic.kind == "ldlt" and symbolic.lnz > MOST_FILL * analysis.core.lnz
    return None if too_large else (symbolic, stats["n_perturbed"])
