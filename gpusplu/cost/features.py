"""Features of a matrix and its factors that predictions are made of."""

from __future__ import annotations

from ..common.traits import Structure
from ..cuda import presence
from ..cuda.layout import constant
from .model import Costs, Features, seconds

SINGLE_THREAD = constant("shared/costs.hpp", "SINGLE_THREAD_FLOPS")


def factor_features(structure: Structure) -> Features:
    """Of a factorization by columns, or of the CPU engine's."""
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
    """Of what making a factor on a device costs besides the factorization."""
    return {"call": 1.0, "bytes": float(structure.nnz * structure.itemsize)}


def move_features(structure: Structure) -> Features:
    """Of what one refactorization and solve moves: values there, a right-hand side there and a solution back."""
    return {"call": 1.0, "bytes": float((structure.nnz + 2 * structure.n) * structure.itemsize)}


def loading(costs: Costs) -> float:
    """Seconds that CuPy takes to import before anything runs on a device; none where somebody has."""
    return 0.0 if presence.is_loaded() else seconds(costs["start.load"], {"call": 1.0})


def moving(costs: Costs, structure: Structure, from_device: bool, to_device: bool) -> float:
    """Seconds that values and vectors take in a step, from where the caller has them to where the engine wants them."""
    if from_device == to_device:
        return 0.0
    return seconds(costs["move.to_device" if to_device else "move.to_host"], move_features(structure))
