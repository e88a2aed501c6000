"""Measurements that the constants of the CPU engine are fitted to."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ... import _core, gallery
from ...cost.features import factor_features
from ...cost.observation import Observation, Observations, beside_solve
from ...timing import other_values, repeated, timed
from ...traits import structure_of
from .predict import PHASES

COLUMN_FLOPS = 2e9  # above, column LU is no choice and takes too long [flop]


def observe_methods(name: str, cholesky: bool, budget: float) -> Observations:
    """Both methods on a matrix of the gallery, each phase for `budget` seconds."""
    A = gallery.named(name)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    values = other_values(A, cholesky).data
    found: dict[str, list[Observation]] = {}
    for method in ("front",) if cholesky else ("column", "front"):
        symbolic = _core.analyze(ptr, ind, A.data, cholesky=cholesky, method=method)
        structure = structure_of(symbolic, A.nnz, A.data.itemsize)
        if method == "column" and structure.flops > COLUMN_FLOPS:
            continue
        took = phase_seconds(symbolic, pattern, A.data, values, budget)
        features = factor_features(structure)
        half = {feature: 0.5 * value for feature, value in features.items()}
        for phase in PHASES:
            one_triangle = cholesky and phase != "solve"
            found[f"cpu.{method}.{phase}"] = [Observation(half if one_triangle else features, took[phase])]
    return found


def phase_seconds(
    symbolic: Any, pattern: Any, first: np.ndarray, second: np.ndarray, budget: float
) -> dict[str, float]:
    """Seconds by phase of the core's factor itself, without what the facade does around it."""

    def make() -> Any:
        return _core.factor(symbolic, pattern, first)

    b = np.ones(symbolic.n)
    took, factor = timed(make)
    end = perf_counter() + budget
    while perf_counter() < end:
        took = min(took, timed(make)[0])
    refactor, solve = (repeated(call, budget) for call in (lambda: factor.refactor(second), lambda: factor.solve(b)))
    step = repeated(lambda: (factor.refactor(second), factor.solve(b)), budget)
    return {"factor": took, "refactor": beside_solve(refactor, solve, step), "solve": solve}
