"""Measurements that the constants of the column engines are fitted to."""

from __future__ import annotations

from ...cost.features import factor_features, start_features
from ...cost.model import Costs, seconds
from ...cost.observation import Observation, Observations, beside_solve, excess
from ..cpu.predict import pivoting_seconds
from ..interface import Measure


def observe_columns(engine: str, measure: Measure, costs: Costs) -> Observations:
    """An engine on a matrix of the gallery, if it can factor that at all; `costs` of the processor."""
    found = measure(engine, True)
    if isinstance(found, str):
        return {}
    problem, analysis = found.factor_object.symbolic.parts()
    structure = problem.structure(analysis.core)
    features = factor_features(structure)
    before = pivoting_seconds(structure, costs)
    before += seconds(costs["start.factor"], start_features(structure)) + found.refactor
    return {
        f"{engine}.refactor": [Observation(features, beside_solve(found.refactor, found.solve, found.step))],
        f"{engine}.solve": [Observation(features, found.solve)],
        "columns.analyze": [Observation(features, found.analyze)],
        **excess(f"{engine}.plan", features, found.factor, before),
    }
