"""Predicted seconds of the CPU engine."""

from __future__ import annotations

from ...cost import table
from ...cost.features import factor_features, moving
from ...cost.model import Costs, Prediction, seconds
from ...traits import Structure

PHASES = ("factor", "refactor", "solve")

COSTS: Costs = {
    "cpu.column.factor": {"call": 1.9e-5, "rows": 6.9e-8, "entries": 2.7e-8, "fill": 1.1e-8, "flops": 6.3e-10},
    "cpu.column.refactor": {"call": 3.4e-6, "rows": 2.7e-8, "fill": 3.2e-9, "flops": 1e-12, "alone": 1.4e-10},
    "cpu.column.solve": {"call": 4.9e-6, "rows": 4.3e-9, "fill": 6.7e-10, "flops": 1e-13},
    "cpu.front.factor": {"call": 6.1e-5, "rows": 8.2e-8, "entries": 2.2e-8, "fill": 2.7e-9, "flops": 1.4e-11},
    "cpu.front.refactor": {"call": 2e-5, "rows": 5e-9, "entries": 8e-9, "fill": 1e-10, "flops": 1.8e-11},
    "cpu.front.solve": {"call": 7.7e-6, "rows": 1.5e-8, "fill": 7.4e-11, "flops": 6.4e-13},
}
table.add(COSTS)  # not with the engine only: those that take their pivots from it are predicted by them too


def pivoting_seconds(structure: Structure, costs: Costs) -> float:
    """Predicted seconds of a factorization by columns, which finds pivots for whoever goes on with them."""
    return seconds(costs["cpu.column.factor"], factor_features(structure))


def predict(structure: Structure, costs: Costs, on_device: bool = False) -> Prediction:
    """After the analysis; `on_device` where the caller's values and vectors are on a device."""
    features = factor_features(structure)
    factor, refactor, solve = (seconds(costs[f"cpu.{structure.method}.{phase}"], features) for phase in PHASES)
    half = 0.5 if structure.cholesky else 1.0  # one triangle of everything
    return Prediction("cpu", 0.0, half * factor, half * refactor, solve, moving(costs, structure, on_device, False))
