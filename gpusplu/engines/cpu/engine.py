"""The CPU engine behind the interface: analysis, factorization and solves are the core's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core, matrix
from ...cost.calibration import costs_of
from ...cost.features import factor_features, moving
from ...cost.model import Costs, Prediction, fastest, seconds
from ...cost.observation import Observations
from ...problem import Problem, Request
from ...traits import Structure
from ..interface import Analysis, Engine, Measure
from .factor import cpu_factor

PHASES = ("factor", "refactor", "solve")
# Of the machine's own byte order.
INDICES = (np.dtype(np.int32), np.dtype(np.int64))


class CpuEngine(Engine):
    """Column LU with threshold partial pivoting, or fronts, as the analysis finds best."""

    name = "cpu"
    costs = {  # noqa: RUF012 (never changed)
        "cpu.column.factor": {"call": 1.9e-5, "rows": 6.9e-8, "entries": 2.7e-8, "fill": 1.1e-8, "flops": 6.3e-10},
        "cpu.column.refactor": {"call": 3.4e-6, "rows": 2.7e-8, "fill": 3.2e-9, "flops": 1e-12, "alone": 1.4e-10},
        "cpu.column.solve": {"call": 4.9e-6, "rows": 4.3e-9, "fill": 6.7e-10, "flops": 1e-13},
        "cpu.front.factor": {"call": 6.1e-5, "rows": 8.2e-8, "entries": 2.2e-8, "fill": 2.7e-9, "flops": 1.4e-11},
        "cpu.front.refactor": {"call": 2e-5, "rows": 5e-9, "entries": 8e-9, "fill": 1e-10, "flops": 1.8e-11},
        "cpu.front.solve": {"call": 7.7e-6, "rows": 1.5e-8, "fill": 7.4e-11, "flops": 6.4e-13},
    }

    def analyze(self, problem: Problem) -> Analysis:
        return Analysis(problem.for_processor())

    def remember(self, problem: Problem, analysis: Analysis) -> None:
        problem.once("for_processor", lambda: analysis.core)

    def predict(self, problem: Problem) -> Prediction:
        """By the analysis for the processor; where there are others and not yet this one, it is guessed from them."""
        request = problem.request
        if problem.once.get("for_processor") is None and problem.once.get("for_fronts") is not None:
            methods = ("front",) if problem.cholesky else ("column", "front")
            structures = [replace(one, method=method) for one in problem.structures() for method in methods]
        else:
            structures = [problem.structure(problem.for_processor())]
        each = [predict(structure, costs_of(), request.on_device) for structure in structures]
        return fastest(each, request.refactorizations)

    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        return cpu_factor(analysis.core, problem.pattern, values, problem.options)

    def factor_at_once(self, A: Any, request: Request) -> tuple[Any, Analysis, Any, dict[str, float]] | None:
        """For arrays that the core takes as they are."""
        n = A.shape[0]
        if A.format != "csc" or n != A.shape[1] or n >= 2**31:
            return None
        data, indices, indptr = A.data, A.indices, A.indptr
        if (
            data.dtype not in matrix.FLOATS
            or indices.dtype not in INDICES
            or indices.dtype != indptr.dtype
            or not data.ndim == indices.ndim == indptr.ndim == 1
            or not (data.flags.c_contiguous and indices.flags.c_contiguous and indptr.flags.c_contiguous)
        ):
            return None
        made = _core.splu(n, indptr, indices, data)
        if made is None:
            return None
        canonical, symbolic, factor, *took = made
        spent = {"canonicalize": took[0], "analyze": took[1]}
        return matrix.Pattern(canonical), Analysis(symbolic), factor, spent

    def observe(self, name: str, cholesky: bool, measure: Measure, costs: Costs, budget: float) -> Observations:
        from .observe import observe_methods

        return observe_methods(name, cholesky, budget)


def pivoting_seconds(structure: Structure, costs: Costs) -> float:
    """Predicted seconds of a factorization by columns, which finds pivots for whoever goes on with them."""
    return seconds(costs["cpu.column.factor"], factor_features(structure))


def predict(structure: Structure, costs: Costs, on_device: bool = False) -> Prediction:
    """After the analysis; `on_device` where the caller's values and vectors are on a device."""
    features = factor_features(structure)
    factor, refactor, solve = (seconds(costs[f"cpu.{structure.method}.{phase}"], features) for phase in PHASES)
    half = 0.5 if structure.cholesky else 1.0  # one triangle of everything
    return Prediction("cpu", 0.0, half * factor, half * refactor, solve, moving(costs, structure, on_device, False))


ENGINE = CpuEngine()
