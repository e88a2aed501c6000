"""Features of a matrix and its factors, for predictions; predicted seconds of the CPU engine's factorizations."""

from __future__ import annotations

from ..common.traits import Structure
from ..cuda import presence
from ..cuda.layout import constant
from .model import Costs, Estimate, Features, seconds

SINGLE_THREAD = constant("shared/costs.hpp", "SINGLE_THREAD_FLOPS")


def factor_features(structure: Structure) -> Features:
    """Features of a factorization by columns, or of the CPU engine's."""
    flops = structure.flops * (2.0 if structure.cholesky else 1.0)
    return {
        "call": 1.0,
        "rows": float(structure.n),
        "entries": float(structure.nnz),
        "fill": float(structure.fill),
        "flops": flops,
        "alone": flops if flops < SINGLE_THREAD else 0.0,
        "levels": float(structure.column_levels),
    }


def start_features(structure: Structure) -> Features:
    """Cost of making a factor on a device besides the factorization."""
    return {"call": 1.0, "bytes": float(structure.nnz * structure.itemsize)}


def move_features(structure: Structure) -> Features:
    """Transfers of one refactorization and solve: values and a right-hand side to the device, a solution back."""
    return {"call": 1.0, "bytes": float((structure.nnz + 2 * structure.n) * structure.itemsize)}


def loading(costs: Costs) -> float:
    """Seconds that the import of CuPy takes before the first device work; 0 if CuPy has already been imported."""
    return 0.0 if presence.is_loaded() else seconds(costs["start.load"], {"call": 1.0})


def moving(costs: Costs, structure: Structure, from_device: bool, to_device: bool) -> float:
    """Seconds per step for transfers of values and vectors from the caller's side to the side that the engine needs."""
    if from_device == to_device:
        return 0.0
    return seconds(costs["move.to_device" if to_device else "move.to_host"], move_features(structure))


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
