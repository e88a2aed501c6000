"""Features of a matrix and its factors, for predictions; predicted seconds of the CPU engine's factorizations.

They are those of a ``_core.Symbolic``; `itemsize` is the size of a value [bytes].
"""

from __future__ import annotations

from typing import Any

from ..cuda import presence
from ..cuda.layout import constant
from .model import Costs, Estimate, Features, seconds

SINGLE_THREAD = constant("shared/costs.hpp", "SINGLE_THREAD_FLOPS")


def factor_features(core: Any) -> Features:
    """Features of a factorization by columns, or of the CPU engine's."""
    flops = core.flops * (2.0 if core.kind != "lu" else 1.0)
    return {
        "call": 1.0,
        "rows": float(core.n),
        "entries": float(core.nnz),
        "fill": float(core.lnz),
        "flops": flops,
        "alone": flops if flops < SINGLE_THREAD else 0.0,
        "levels": float(core.column_levels),
    }


def start_features(core: Any, itemsize: int) -> Features:
    """Cost of making a factor on a device besides the factorization."""
    return {"call": 1.0, "bytes": float(core.nnz * itemsize)}


def move_features(core: Any, itemsize: int) -> Features:
    """Transfers of one refactorization and solve: values and a right-hand side to the device, a solution back."""
    return {"call": 1.0, "bytes": float((core.nnz + 2 * core.n) * itemsize)}


def loading(costs: Costs) -> float:
    """Seconds that the import of CuPy takes before the first device work; 0 if CuPy has already been imported."""
    return 0.0 if presence.is_loaded() else seconds(costs["start.load"], {"call": 1.0})


def moving(costs: Costs, core: Any, itemsize: int, from_device: bool, to_device: bool) -> float:
    """Seconds per step for transfers of values and vectors from the caller's side to the side that the engine needs."""
    if from_device == to_device:
        return 0.0
    return seconds(costs["move.to_device" if to_device else "move.to_host"], move_features(core, itemsize))


PHASES = ("factor", "refactor", "solve")


def pivoting_seconds(core: Any, costs: Costs) -> float:
    """Predicted seconds of a factorization by columns, which finds pivots for another engine."""
    return seconds(costs["cpu.column.factor"], factor_features(core))


def method_of(core: Any) -> str:
    """Method of the CPU engine: "column", "front" or, by fronts too, "ldlt"."""
    return "ldlt" if core.kind == "ldlt" else str(core.method)


def predict(
    core: Any, itemsize: int, costs: Costs, on_device: bool = False, engine: str = "", method: str = ""
) -> Estimate:
    """Predict from the analysis. `on_device`: the caller's values and vectors are on a device; `engine`: the
    requester; `method`: another one than that of the analysis."""
    features, method = factor_features(core), method or method_of(core)
    factor, refactor, solve = (seconds(costs[f"cpu.{method}.{phase}"], features) for phase in PHASES)
    half = 0.5 if core.kind != "lu" and method != "ldlt" else 1.0  # one triangle of everything
    moved = moving(costs, core, itemsize, on_device, False)
    return Estimate(engine, 0.0, half * factor, half * refactor, solve, moved)
