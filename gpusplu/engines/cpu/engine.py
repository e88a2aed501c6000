"""The CPU engine behind the interface: the core does analysis, factorization and solves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.listeners import log_enabled, tell
from ...common.memo import Memo
from ...common.options import DEFAULT_OPTIONS, OF_ANY_VALUES, Options
from ...cost.calibration import costs_of, for_core
from ...cost.model import Costs, Prediction, fastest
from ...cost.observation import Observations
from ...cost.processor import predict
from ..interface import KINDS, Analysis, Engine, EngineBatch, Measure
from ..problem import Problem, Request
from ..processor import cpu_factor
from .batch import cpu_batch
from .delays import factor_with_delays


class CpuEngine(Engine):
    """Column LU with threshold partial pivoting, or fronts, as the analysis decides; the other kinds by fronts."""

    name, batches, interfaces = "cpu", True, True
    kinds = KINDS

    def analyze(self, problem: Problem) -> Analysis:
        return Analysis(problem.for_processor())

    def adopt(self, problem: Problem, analysis: Analysis) -> None:
        problem.memo.put("for_processor", analysis.core)

    def predict(self, problem: Problem) -> Prediction:
        """Predict from the analysis for the processor; if only other analyses exist, estimate from them."""
        request = problem.request
        if problem.memo.get("for_processor") is None and problem.memo.get("for_fronts") is not None:
            methods = {"lu": ("column", "front"), "cholesky": ("front",), "ldlt": ("ldlt",)}[problem.kind]
            structures = [replace(one, method=method) for one in problem.structures() for method in methods]
        else:
            structures = [problem.structure(problem.for_processor())]
        each = [predict(structure, costs_of(), request.on_device, self.name) for structure in structures]
        return fastest(each, request.uses)

    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        if analysis.core.kind == "ldlt":
            return factor_with_delays(problem, analysis, values)
        return cpu_factor(analysis.core, problem.pattern, values, problem.options)

    def factor_batch(self, problem: Problem, analysis: Analysis, count: int) -> EngineBatch | None:
        return cpu_batch(problem, analysis, count)

    def partial_factor(self, problem: Problem, whole: Any, pattern: matrix.Pattern, dtype: np.dtype, memo: Memo) -> Any:
        options = problem.options
        how: dict[str, Any] = {"pivoting": options.pivoting, "refine": options.refine, "hermitian": options.hermitian}
        return _core.partial_factor(whole, pattern.core, np.empty(0, dtype), **how)

    def factor_fused(
        self, A: Any, request: Request, cache: Any, borrow: bool
    ) -> tuple[Problem, Analysis, Any, Any] | None:
        n, n_columns = A.shape
        if n != n_columns:
            return None
        made = _core.splu(cache if request.remembered else None, n, A.indptr, A.indices, A.data, for_core(), borrow)
        if made is None:
            return None
        canonical, symbolic, factor, *took, known, dropped = made
        if dropped and log_enabled():
            tell(f"analysis of call {dropped} dropped: it does not suit these values, or leads to no factor")
        return *analyzed(canonical, symbolic, took, A, DEFAULT_OPTIONS, request), factor, known

    def analyze_fused(self, A: Any, request: Request) -> tuple[Problem, Analysis] | None:
        n, n_columns = A.shape
        if n != n_columns:
            return None
        made = _core.analyze_matrix(n, A.indptr, A.indices, A.data, for_core(), float(request.refactorizations))
        if made is None:
            return None
        canonical, symbolic, *took = made
        return analyzed(canonical, symbolic, took, A, OF_ANY_VALUES, request)

    def factor_given(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        if problem.options is not OF_ANY_VALUES or problem.request.may_migrate:
            return None
        if analysis.core.structural_rank < problem.n:  # by zeros among the analysed values; others may differ
            return None
        return _core.factor_given(analysis.core, problem.pattern.core, values)

    def observe(self, name: str, cholesky: bool, measure: Measure, costs: Costs, budget: float) -> Observations:
        from .observe import observe_methods

        return observe_methods(name, cholesky, budget)


def analyzed(
    canonical: Any, symbolic: Any, took: list[float], A: Any, options: Options, request: Request
) -> tuple[Problem, Analysis]:
    """Convert the results of one call of the core for `A`, which took this many seconds."""
    problem = Problem(matrix.Pattern(canonical), A.data[:0], "lu", options, request, Memo({"for_processor": symbolic}))
    problem.seconds = {"canonicalize": took[0], "analyze": took[1]}
    return problem, Analysis(symbolic)


ENGINE = CpuEngine()
