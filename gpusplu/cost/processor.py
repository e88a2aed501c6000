"""Predicted seconds of the core's factorizations on the processor, which are the CPU engine's."""

from __future__ import annotations

from ..common.traits import Structure
from .features import factor_features, moving
from .model import Costs, Estimate, seconds

PHASES = ("factor", "refactor", "solve")


def pivoting_seconds(structure: Structure, costs: Costs) -> float:
    """Predicted seconds of a factorization by columns, which finds pivots for another engine."""
    return seconds(costs["cpu.column.factor"], factor_features(structure))


def predict(structure: Structure, costs: Costs, on_device: bool = False, engine: str = "") -> Estimate:
    """Predict from the analysis. `on_device`: the caller's values and vectors are on a device; `engine`: the
    requester."""
    features = factor_features(structure)
    factor, refactor, solve = (seconds(costs[f"cpu.{structure.method}.{phase}"], features) for phase in PHASES)
    half = 0.5 if structure.cholesky and structure.method != "ldlt" else 1.0  # one triangle of everything
    return Estimate(engine, 0.0, half * factor, half * refactor, solve, moving(costs, structure, on_device, False))
