"""Measurements that the constants of the column engines are fitted to."""

from __future__ import annotations

from collections.abc import Mapping

from ...cost.features import factor_features, pivoting_seconds, start_features
from ...cost.model import Costs, Observation, Observations, excess, net_of_solve, seconds
from ..interface import Measure


def observe_columns(engine: str, measure: Measure, costs: Costs, parts: Mapping[str, str]) -> Observations:
    """Measure an engine on a matrix of the gallery, if it can factor the matrix.

    Parameters
    ----------
    engine : str
    measure : callable
        See `Engine.calibrate`.
    costs : Costs
        Of the processor.
    parts : mapping
        Parts of a refactorization that the plan's own model predicts, by feature: names in the statistics of a factor.
    """
    found = measure(engine, True)
    if isinstance(found, str):
        return {}
    problem, analysis = found.factor_object.symbolic.parts()
    structure = problem.structure(analysis.core)
    features = factor_features(structure)
    before = pivoting_seconds(structure, costs)
    before += seconds(costs["start.factor"], start_features(structure)) + found.refactor
    refactor, stats = net_of_solve(found.refactor, found.solve, found.step), found.factor_object.stats
    modelled = {feature: float(stats[name]) for feature, name in parts.items()}
    return {
        f"{engine}.refactor": [Observation(features, refactor)],
        **({f"{engine}.model": [Observation(modelled, refactor)]} if modelled else {}),
        f"{engine}.solve": [Observation(features, found.solve)],
        "columns.analyze": [Observation(features, found.analyze)],
        **excess(f"{engine}.plan", features, found.factor, before),
    }
