"""What unpickling calls: a pickle may be damaged, and it may be read where there is no device."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, matrix
from .engines import registry
from .engines.interface import KINDS, Analysis
from .errors import EngineUnavailableError
from .factor import CholeskyFactor, Factor, LUFactor
from .options import ORDERINGS, PIVOTINGS, REFINEMENTS, Options, one_of
from .problem import Problem, Request
from .selection.select import Choice
from .symbolic import Symbolic


def restore_symbolic(
    pattern: Any, dtype: Any, kind: Any, options: Any, choice: Any, core: Any, seconds: Any
) -> Symbolic:
    """A Symbolic of its parts, for the CPU engine where its device is not there.

    The core has checked the pattern and the analysis, each by itself (core/matrix/validate.hpp and
    core/analysis/validate.hpp).

    Raises
    ------
    ValueError
        The parts do not belong together.
    """
    classes = (matrix.Pattern, np.dtype, Options, Choice, _core.Symbolic, dict)
    whole = all(map(isinstance, (pattern, dtype, options, choice, core, seconds), classes))
    require(whole and isinstance(pattern.core, _core.Canonical), "a part is something else")
    require(dtype in matrix.FLOATS and kind == KINDS[core.cholesky], "the analysis is not of this kind")
    _core.validate(core, pattern.core)
    one_of("ordering", options.ordering, ORDERINGS)
    one_of("pivoting", options.pivoting, PIVOTINGS)
    one_of("refine", options.refine, REFINEMENTS)
    one_of("engine", choice.engine, registry.names())
    engine, method = registry.named(choice.engine), core.method
    fits = kind in engine.kinds and method in engine.methods
    require(fits or core.structural_rank < core.n, "the engine is not one for this analysis")
    require(isinstance(choice.request, Request), "a part is something else")
    require(isinstance(choice.request.refactorizations, (int, float)), "the expected refactorizations are no number")
    require(all(isinstance(value, float) for value in seconds.values()), "the seconds of the phases are no numbers")
    choice = choice_here(choice)
    problem = Problem(pattern, np.empty(0, dtype), kind, options, choice.request)
    problem.seconds.update(seconds)
    return Symbolic(problem, choice, Analysis(core))


def choice_here(choice: Choice) -> Choice:
    """The choice, or the CPU engine where its device is not there."""
    if not registry.named(choice.engine).on_device:
        return choice
    from .cuda import devices

    try:
        devices.open_device(choice.request.device)
    except EngineUnavailableError as error:
        reason = f"pickled with engine={choice.engine!r}, which cannot run here: {error}"
        request = choice.request._replace(engine=registry.DEFAULT, reason=reason, device=None)
        return Choice(registry.DEFAULT, reason, request)
    return choice


def restore_factor(kind: Any, symbolic: Any, canonical: Any) -> Factor:
    """A factor of the class `kind`, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    NonFiniteError
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    whole = isinstance(kind, type) and issubclass(kind, Factor) and isinstance(symbolic, Symbolic)
    require(whole and issubclass(kind, CholeskyFactor if symbolic.cholesky else LUFactor), "a part is something else")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS
    require(values and canonical.shape == (symbolic.nnz,), "the values are not those of the analysis")
    canonical = np.ascontiguousarray(canonical)
    matrix.check_finite(symbolic.parts()[0].pattern, canonical)
    factor: Factor = kind(symbolic, canonical)
    return factor


def require(holds: bool, what: str) -> None:
    """Refuse a pickle of which something does not hold."""
    if not holds:
        raise ValueError(f"the pickle is damaged: {what}")
