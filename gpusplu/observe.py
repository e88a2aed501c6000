"""Measurements on matrices of the gallery that the constants of `costs` are fitted to."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import _core, gallery
from .dispatch.calibration import Observation
from .dispatch.costs import (
    COLUMN_ENGINES,
    CPU_PHASES,
    Costs,
    Features,
    factor_features,
    move_features,
    plan_features,
    seconds,
    start_features,
)
from .dispatch.traits import structure_of
from .matrix import to_device
from .measure import Measured, failure, measure, other_values, repeated, synchronizer, timed

Observations = dict[str, list[Observation]]

#: Name and whether to be factored as definite: circuits, grids and fields from a thousand unknowns on.
PROCESSOR_CASES = (
    ("rlc:12x12", False),
    ("rlc:20x20", False),
    ("circuit:25x25", False),
    ("rlc:35x35", False),
    ("circuit:40x40", False),
    ("rlc:60x60", False),
    ("power:60x60", False),
    ("convdiff:8", False),
    ("convdiff:15", False),
    ("rlc:150x150", False),
    ("poisson:100x100", True),
    ("elast:6x6x6", True),
    ("poisson:15x15x15", True),
)
DEVICE_CASES = (
    ("rlc:12x12", False),
    ("rlc:20x20", False),
    ("circuit:30x30", False),
    ("rlc:35x35", False),
    ("rlc:60x60", False),
    ("power:100x100", False),
    ("convdiff:12", False),
    ("rlc:200x200", False),
    ("convdiff:25", False),
    ("poisson:300x300", True),
    ("elast:8x8x8", True),
    ("elast:16x16x16", True),
    ("poisson:30x30x30", True),
)
COLUMN_FLOPS = 2e9  # above, column LU is no choice and takes too long [flop]


def observe_processor(name: str, cholesky: bool, budget: float) -> Observations:
    """Both methods of the CPU engine on a matrix of the gallery."""
    A = gallery.named(name)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    values = other_values(A, cholesky).data
    found: Observations = {}
    for method in ("front",) if cholesky else ("column", "front"):
        symbolic = _core.analyze(ptr, ind, A.data, cholesky=cholesky, method=method)
        structure = structure_of(symbolic, A.nnz, A.data.itemsize)
        if method == "column" and structure.flops > COLUMN_FLOPS:
            continue
        took = processor_seconds(symbolic, pattern, A.data, values, budget)
        features = factor_features(structure)
        half = {feature: 0.5 * value for feature, value in features.items()}
        for phase in CPU_PHASES:
            one_triangle = cholesky and phase != "solve"
            found[f"cpu.{method}.{phase}"] = [Observation(half if one_triangle else features, took[phase])]
    return found


def processor_seconds(
    symbolic: Any, pattern: Any, first: np.ndarray, second: np.ndarray, budget: float
) -> dict[str, float]:
    """Seconds by phase of the CPU engine's factor itself, without what the facade does around it."""

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


def observe_device(name: str, cholesky: bool, budget: float, costs: Costs) -> Observations:
    """Every GPU engine on a matrix of the gallery, and what moving its values costs; `costs` of the processor."""
    A = gallery.named(name)
    found = observe_moving(A, cholesky, budget)
    for engine in () if cholesky else COLUMN_ENGINES:
        merge(found, observe_columns(A, engine, budget, costs))
    return found


def observe_moving(A: sp.csc_array, cholesky: bool, budget: float) -> Observations:
    """The supernodal engine, and what values and vectors cost that are on the other side."""
    there, here = (measure(A, "supernodal", cholesky=cholesky, on_device=on, budget=budget) for on in (True, False))
    symbolic = there.factor_object.symbolic
    structure = structure_of(symbolic._core, A.nnz, A.data.itemsize)
    plan = plan_features(symbolic._plan)
    found = {
        "supernodal.analyze": [Observation(factor_features(structure), min(there.analyze, here.analyze))],
        "supernodal.refactor": [Observation(plan, beside_solve(there.refactor, there.solve, there.step))],
        "supernodal.solve": [Observation(plan, there.solve)],
        **excess("start.factor", start_features(structure), min(there.factor, here.factor), there.refactor),
        **excess("move.to_device", move_features(structure), here.step, there.step),
    }
    return found | {"move.to_host": [Observation(move_features(structure), seconds_to_host(A, budget))]}


def seconds_to_host(A: sp.csc_array, budget: float) -> float:
    """Values and a right-hand side from the device, a solution there."""
    x = np.ones(A.shape[0], A.dtype)
    values, b = to_device(A.data), to_device(x)
    return repeated(lambda: (values.get(), b.get(), to_device(x)), budget, synchronizer())


def observe_columns(A: sp.csc_array, engine: str, budget: float, costs: Costs) -> Observations:
    """A column engine, where it can factor A at all."""
    found = failure(lambda: measure(A, engine, on_device=True, budget=budget))
    if not isinstance(found, Measured):
        return {}
    structure = structure_of(found.factor_object.symbolic._core, A.nnz, A.data.itemsize)
    features = factor_features(structure)
    before = seconds(costs["cpu.column.factor"], features)
    before += seconds(costs["start.factor"], start_features(structure)) + found.refactor
    return {
        f"{engine}.refactor": [Observation(features, beside_solve(found.refactor, found.solve, found.step))],
        f"{engine}.solve": [Observation(features, found.solve)],
        "columns.analyze": [Observation(features, found.analyze)],
        **excess(f"{engine}.plan", features, found.factor, before),
    }


def beside_solve(refactor: float, solve: float, step: float) -> float:
    """What a refactorization takes in a step of both [s].

    On a device it saves a launch and a wait; the CPU engine's next solve looks more closely.
    """
    return max(step - solve, 0.3 * refactor)


def excess(term: str, features: Features, total: float, part: float) -> Observations:
    """What is more than a part that has a term of its own; nothing where noise hides it."""
    return {term: [Observation(features, total - part)]} if total > 1.02 * part else {}


def merge(into: Observations, more: Any) -> None:
    """Add observations term by term."""
    for term, observations in more.items():
        into.setdefault(term, []).extend(observations)


def all_of(parts: Iterable[Observations]) -> Observations:
    """Observations of several matrices together."""
    found: Observations = {}
    for part in parts:
        merge(found, part)
    return found
