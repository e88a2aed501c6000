"""What unpickling calls: a pickle may be damaged, and it may be read where there is no device."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, matrix
from .dispatch.costs import COLUMN_ENGINES
from .dispatch.resolve import ENGINES, Choice
from .errors import EngineUnavailableError
from .factor import CholeskyFactor, Factor, LUFactor
from .options import ORDERINGS, PIVOTINGS, REFINEMENTS, Options, one_of
from .symbolic import Symbolic


def restore_symbolic(pattern: Any, core: Any, options: Any, choice: Any, seconds: Any) -> Symbolic:
    """A Symbolic of its parts, for the CPU engine where its device is not there.

    The core has checked the pattern and the analysis, each by itself (core/matrix/validate.hpp and
    core/analysis/validate.hpp).

    Raises
    ------
    ValueError
        The parts do not belong together.
    """
    kinds = (matrix.Pattern, _core.Symbolic, Options, Choice, dict)
    whole = all(map(isinstance, (pattern, core, options, choice, seconds), kinds))
    require(whole and isinstance(pattern.core, _core.Canonical), "a part is something else")
    _core.validate(core, pattern.core)
    one_of("ordering", options.ordering, ORDERINGS)
    one_of("pivoting", options.pivoting, PIVOTINGS)
    one_of("refine", options.refine, REFINEMENTS)
    one_of("engine", choice.engine, ENGINES[1:])
    method = "column" if choice.engine in COLUMN_ENGINES else "front" if choice.engine == "supernodal" else core.method
    require(core.method == method or core.structural_rank < core.n, "the engine is not one for this analysis")
    require(isinstance(choice.refactorizations, (int, float)), "the expected refactorizations are no number")
    require(all(isinstance(value, float) for value in seconds.values()), "the seconds of the phases are no numbers")
    return Symbolic(pattern, core, options, choice_here(choice), seconds)


def choice_here(choice: Choice) -> Choice:
    """The choice, or the CPU engine where its device is not there."""
    if choice.engine == "cpu":
        return choice
    from .kernels import launch

    try:
        launch.open_device(choice.device)
    except EngineUnavailableError as error:
        return choice.of("cpu", f"pickled with engine={choice.engine!r}, which cannot run here: {error}")
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
    matrix.check_finite(symbolic._pattern, canonical)
    factor: Factor = kind(symbolic, canonical)
    return factor


def require(holds: bool, what: str) -> None:
    """Refuse a pickle of which something does not hold."""
    if not holds:
        raise ValueError(f"the pickle is damaged: {what}")
