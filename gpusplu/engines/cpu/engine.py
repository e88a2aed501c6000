"""The CPU engine behind the interface: analysis, factorization and solves are the core's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core, matrix, patterns
from ...cost.calibration import costs_of, for_core
from ...cost.model import Costs, Prediction, fastest
from ...cost.observation import Observations
from ...cost.processor import predict
from ...journal.listeners import listens, tell
from ...problem import Problem, Request
from ..interface import KINDS, Analysis, Engine, EngineBatch, Measure
from ..processor import cpu_factor
from .batch import cpu_batch
from .delays import factor_with_delays

# Of the machine's own byte order.
INDICES = (np.dtype(np.int32), np.dtype(np.int64))


class CpuEngine(Engine):
    """Column LU with threshold partial pivoting, or fronts, as the analysis finds best; the other kinds by fronts."""

    name, batches = "cpu", True
    kinds = KINDS

    def analyze(self, problem: Problem) -> Analysis:
        return Analysis(problem.for_processor())

    def remember(self, problem: Problem, analysis: Analysis) -> None:
        problem.once.put("for_processor", analysis.core)

    def predict(self, problem: Problem) -> Prediction:
        """By the analysis for the processor; where there are others and not yet this one, it is guessed from them."""
        request = problem.request
        if problem.once.get("for_processor") is None and problem.once.get("for_fronts") is not None:
            methods = {"lu": ("column", "front"), "cholesky": ("front",), "ldlt": ("ldlt",)}[problem.kind]
            structures = [replace(one, method=method) for one in problem.structures() for method in methods]
        else:
            structures = [problem.structure(problem.for_processor())]
        each = [predict(structure, costs_of(), request.on_device) for structure in structures]
        return fastest(each, request.uses)

    def factor(self, problem: Problem, analysis: Analysis, values: np.ndarray) -> Any:
        if analysis.core.kind == "ldlt":
            return factor_with_delays(problem, analysis, values)
        return cpu_factor(analysis.core, problem.pattern, values, problem.options)

    def factor_batch(self, problem: Problem, analysis: Analysis, count: int) -> EngineBatch | None:
        return cpu_batch(problem, analysis, count)

    def factor_at_once(
        self, A: Any, request: Request, lent: bool
    ) -> tuple[Any, Analysis, Any, dict[str, float], Any] | None:
        arrays = taken_as_they_are(A)
        if arrays is None:
            return None
        store = patterns.STORE if request.remembered else None
        made = _core.splu(store, *arrays, for_core(), lent)
        if made is None:
            return None
        canonical, symbolic, factor, *took, known, dropped = made
        if dropped and listens():
            tell(f"analysis of call {dropped} dropped: it does not suit these values, or leads to no factor")
        spent = {"canonicalize": took[0], "analyze": took[1]}
        return matrix.Pattern(canonical), Analysis(symbolic), factor, spent, known

    def analyze_at_once(self, A: Any, request: Request) -> tuple[Any, Analysis, dict[str, float]] | None:
        arrays = taken_as_they_are(A)
        if arrays is None:
            return None
        made = _core.analyze_matrix(*arrays, for_core(), request.refactorizations)
        if made is None:
            return None
        canonical, symbolic, *took = made
        return matrix.Pattern(canonical), Analysis(symbolic), {"canonicalize": took[0], "analyze": took[1]}

    def observe(self, name: str, cholesky: bool, measure: Measure, costs: Costs, budget: float) -> Observations:
        from .observe import observe_methods

        return observe_methods(name, cholesky, budget)


def taken_as_they_are(A: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray] | None:
    """The order of a sparse matrix on the host and its arrays, if they are what the core reads."""
    n, n_columns = A.shape
    if A.format != "csc" or n != n_columns or n >= 2**31:
        return None
    data, indices, indptr = A.data, A.indices, A.indptr
    taken = (
        data.dtype in matrix.FLOATS
        and indices.dtype in INDICES
        and indices.dtype == indptr.dtype
        and data.ndim == indices.ndim == indptr.ndim == 1
        and data.flags.c_contiguous
        and indices.flags.c_contiguous
        and indptr.flags.c_contiguous
    )
    return (n, indptr, indices, data) if taken else None


ENGINE = CpuEngine()
