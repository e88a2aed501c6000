"""Predicted seconds of the column engines."""

from __future__ import annotations

from ...common.traits import Structure
from ...cost.features import factor_features, moving, pivoting_seconds, start_features
from ...cost.model import Costs, Estimate, seconds
from .plan import MOST_MAPPED


def predict(engine: str, structure: Structure, costs: Costs, on_device: bool = False) -> Estimate:
    """For a column engine: in the first factorization the CPU engine chooses pivots, and a plan is made from them."""
    features = factor_features(structure)
    refactor, solve, plan = (seconds(costs[f"{engine}.{phase}"], features) for phase in ("refactor", "solve", "plan"))
    first = pivoting_seconds(structure, costs) + plan + refactor
    first += seconds(costs["start.factor"], start_features(structure))
    return Estimate(
        engine,
        seconds(costs["columns.analyze"], features),
        first,
        refactor,
        solve,
        moving(costs, structure, on_device, True),
    )


def column_bytes(structure: Structure) -> int:
    """Approximate device memory of a column engine [bytes]."""
    entries, updates = 2 * structure.fill, structure.flops / 2
    maps = 2 * updates if updates <= MOST_MAPPED else 0
    return int(entries * (16 + structure.itemsize) + maps + structure.nnz * (16 + 3 * structure.itemsize))
