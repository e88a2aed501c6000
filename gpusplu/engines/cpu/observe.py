"""Measurements for fitting the constants of the CPU engine."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core, gallery
from ...common.matrix import Pattern
from ...common.options import Options
from ...common.timing import other_values, repeated, timed
from ...cost.calibration import for_core
from ...cost.features import PHASES, factor_features
from ...cost.model import Features, Observation, Observations, net_of_solve
from ...cuda.layout import struct
from ..processor import cpu_factor

SYSTEMS = 8  # in a group, in double precision
FRONT = struct("shared/lockstep.hpp", "LockstepFront")
COLUMN_FLOPS = 2e9  # above this, column LU is no alternative and takes too long [flop]


def observe_methods(name: str, cholesky: bool, budget: float) -> Observations:
    """Measure both methods on a matrix of the gallery, each phase for `budget` seconds."""
    A = gallery.named(name)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    pattern = _core.canonical("csc", A.shape[0], A.indptr, A.indices)
    found: dict[str, list[Observation]] = {}
    symmetric = abs(A - A.T).max() == 0
    for method in ("front",) if cholesky else ("column", "front", "ldlt") if symmetric else ("column", "front"):
        values = other_values(A, cholesky or method == "ldlt").data
        how = {"ldlt": True} if method == "ldlt" else {"cholesky": cholesky, "method": method}
        symbolic = _core.analyze(ptr, ind, A.data, for_core(), **how)
        if method == "column" and symbolic.flops > COLUMN_FLOPS:
            continue
        took = phase_seconds(symbolic, pattern, A.data, values, budget)
        features = factor_features(symbolic)
        half = {feature: 0.5 * value for feature, value in features.items()}
        for phase in PHASES:
            one_triangle = cholesky and phase != "solve"
            found[f"cpu.{method}.{phase}"] = [Observation(half if one_triangle else features, took[phase])]
        if method == "front":
            found["cpu.supernodes"] = [Observation(supernode_features(symbolic), took["refactor"])]
            found["lockstep.merging"] = [observe_lockstep(symbolic, pattern, values, budget)]
    found["cpu.dissection"] = [observe_dissection(ptr, ind, A.data)]
    return found


def supernode_features(symbolic: Any) -> Features:
    """Features of a factorization, front by front."""
    width, below = np.diff(symbolic.super_ptr), np.diff(symbolic.row_ptr)
    return front_features(width, width + below, float(symbolic.flops))


def front_features(width: np.ndarray, rows: np.ndarray, flops: float) -> Features:
    """Features of fronts with these numbers of pivots and rows."""
    width, rows = width.astype(float), rows.astype(float)
    scalars = float((rows**2 + (rows - width) ** 2).sum())
    return {"fronts": float(width.size), "columns": float(width.sum()), "flops": flops, "bytes": 8 * scalars}


def observe_lockstep(symbolic: Any, pattern: Any, values: np.ndarray, budget: float) -> Observation:
    """One system of a batch: refactorizations of one group, which has other fronts than a single system."""
    plan = _core.make_lockstep_plan(symbolic, pattern.ptr, pattern.ind, for_core())
    fronts = plan.fronts.view(FRONT)
    many = np.tile(values, (SYSTEMS, 1))
    batch = _core.lockstep(symbolic, pattern, SYSTEMS, values[:0], for_core())
    took = repeated(lambda: batch.refactor(many), budget) / SYSTEMS
    return Observation(front_features(fronts["width"], fronts["rows"], float(symbolic.flops)), took)


def observe_dissection(ptr: np.ndarray, ind: np.ndarray, values: np.ndarray) -> Observation:
    """The analysis stage that dissects the graph of A + A^T and counts its fill, the best of a few runs."""

    def dissected() -> Any:
        return _core.analyze(ptr, ind, values, for_core(), ordering="nd", method="front", matching=False)

    took = [dissected().stages["order"] for _ in range(3)]
    A = sp.csc_array((np.ones(ind.size), ind, ptr))
    graph = A + A.T
    edges = graph.nnz - np.count_nonzero(graph.diagonal())
    return Observation({"rows": float(ptr.size - 1), "entries": float(edges)}, min(took))


def phase_seconds(
    symbolic: Any, pattern: Any, first: np.ndarray, second: np.ndarray, budget: float
) -> dict[str, float]:
    """Seconds by phase of the core's factor itself, without the overhead of the facade."""

    def make() -> Any:
        return cpu_factor(symbolic, Pattern(pattern), first, Options())

    b = np.ones(symbolic.n)
    took, factor = timed(make)
    end = perf_counter() + budget
    while perf_counter() < end:
        took = min(took, timed(make)[0])
    refactor, solve = (repeated(call, budget) for call in (lambda: factor.refactor(second), lambda: factor.solve(b)))
    step = repeated(lambda: (factor.refactor(second), factor.solve(b)), budget)
    return {"factor": took, "refactor": net_of_solve(refactor, solve, step), "solve": solve}
