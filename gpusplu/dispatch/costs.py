"""Predicted seconds of the engines: sums of a constant times a feature, so that constants can be fitted.

A term such as ``"sflu.refactor"`` has a constant for each of its features. Features come from an analysis or a plan:
``call`` is 1, ``rows`` and ``entries`` are those of A, ``fill`` the entries of L, ``flops`` of a factorization,
``alone`` the same where a single thread does them, ``levels`` those of columns; the supernodal engine's are the seconds
that its plan models itself, phase by phase, so that its constants say how far this device is from the one the plan
knows. Section 5.1, eqs. 16-19, of the crisscross paper models one kernel this way.

A step is what ``refactor_solve`` takes: solves count as called by themselves, refactorizations as what a step takes
besides.

Constants here are those of an H200 and of its host; those of another machine are fitted by ``python -m gpusplu bench
--calibrate`` (`calibration`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..plans.columns import MOST_MAPPED
from .traits import Structure

Features = dict[str, float]
Term = Mapping[str, float]
Costs = Mapping[str, Term]

#: What a user is taken to do with a factor before the pattern changes, unless ``expected_refactors=`` says otherwise.
REFACTORIZATIONS = 5

COLUMN_ENGINES = ("glu", "sflu", "crisscross")
CPU_PHASES = ("factor", "refactor", "solve")

# Column LU refactors with one thread below [flop].
ALONE = 3e6

# One H200, double precision, from Python [s].
DEVICE: Costs = {
    # Import of CuPy and start of a context; kernels that are not in the cache yet; then, of a factor, uploads and the
    # recording of graphs.
    "start.load": {"call": 1.0},
    "start.compile": {"call": 4.0},
    "start.factor": {"call": 1.2e-3, "bytes": 8e-10},
    # Values and vectors by way of pinned memory of the host, moved by nodes of a graph; and for the CPU engine what is
    # brought from the device and back.
    "move.to_device": {"call": 1e-6, "bytes": 5e-11},
    "move.to_host": {"call": 50e-6, "bytes": 1.2e-10},
    "supernodal.analyze": {"call": 1.7e-3, "rows": 1e-6, "entries": 1.8e-8},
    "supernodal.refactor": {"call": 7e-6, "warp": 1.2, "small": 1.5, "block": 1.0, "large": 1.0},
    "supernodal.solve": {"call": 17e-6, "modelled": 0.65},
    # All column engines: orderings. Of each the plan, after the CPU engine's factorization.
    "columns.analyze": {"call": 0.9e-3, "rows": 1.3e-7, "entries": 1.9e-7},
    "glu.plan": {"call": 1e-5, "rows": 2.5e-7, "fill": 2.5e-7, "flops": 1e-12},
    "sflu.plan": {"call": 3e-5, "rows": 2.5e-7, "fill": 1e-7, "flops": 1e-12},
    "crisscross.plan": {"call": 1e-3, "rows": 3.5e-6, "fill": 2e-7, "flops": 1e-12},
    # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less where blocks own several.
    "glu.refactor": {"call": 2e-6, "levels": 1e-6, "fill": 5.5e-10, "flops": 5.9e-12},
    "glu.solve": {"call": 2.1e-5, "levels": 9.8e-7, "fill": 3.9e-10},
    "sflu.refactor": {"call": 1.9e-5, "levels": 1.2e-6, "fill": 1.4e-10, "flops": 4.6e-12},
    "sflu.solve": {"call": 2.3e-5, "levels": 9.6e-7, "fill": 3.9e-10},
    "crisscross.refactor": {"call": 3.4e-5, "levels": 5.9e-7, "fill": 7e-10, "flops": 4e-12},
    "crisscross.solve": {"call": 5.9e-5, "levels": 2.1e-7, "fill": 2.2e-10},
}
# The CPU engine with 16 threads of a Xeon [s]. The analysis chooses the method by constants of its own.
PROCESSOR: Costs = {
    "cpu.column.factor": {"call": 1.9e-5, "rows": 6.9e-8, "entries": 2.7e-8, "fill": 1.1e-8, "flops": 6.3e-10},
    "cpu.column.refactor": {"call": 3.4e-6, "rows": 2.7e-8, "fill": 3.2e-9, "flops": 1e-12, "alone": 1.4e-10},
    "cpu.column.solve": {"call": 4.9e-6, "rows": 4.3e-9, "fill": 6.7e-10, "flops": 1e-13},
    "cpu.front.factor": {"call": 6.1e-5, "rows": 8.2e-8, "entries": 2.2e-8, "fill": 2.7e-9, "flops": 1.4e-11},
    "cpu.front.refactor": {"call": 2e-5, "rows": 5e-9, "entries": 8e-9, "fill": 1e-10, "flops": 1.8e-11},
    "cpu.front.solve": {"call": 7.7e-6, "rows": 1.5e-8, "fill": 7.4e-11, "flops": 6.4e-13},
}


class Prediction(NamedTuple):
    """Seconds of one engine; of an engine that cannot run only `note`.

    Attributes
    ----------
    engine : str
    analyze : float
        What is still to be done, where the analysis for the CPU engine exists.
    factor, refactor, solve : float
        `refactor` and `solve` with one right-hand side, for values and vectors where the engine wants them.
    moving : float
        Of values and vectors, for one refactorization and solve, from where the caller has them.
    note : str
    """

    engine: str
    analyze: float = 0.0
    factor: float = 0.0
    refactor: float = 0.0
    solve: float = 0.0
    moving: float = 0.0
    note: str = ""

    @property
    def step(self) -> float:
        """One refactorization and solve."""
        return self.refactor + self.solve + self.moving

    def total(self, refactorizations: float) -> float:
        """All that a factor is used for."""
        return self.analyze + self.factor + refactorizations * self.step


def shipped() -> Costs:
    """Constants that hold until a machine is calibrated."""
    return {**DEVICE, **PROCESSOR}


def seconds(term: Term, features: Mapping[str, float]) -> float:
    """Of one phase."""
    return sum(constant * features[name] for name, constant in term.items())


def factor_features(structure: Structure) -> Features:
    """Features of a factorization by columns, or of the CPU engine's."""
    flops = structure.flops * (2.0 if structure.cholesky else 1.0)
    return {
        "call": 1.0,
        "rows": float(structure.n),
        "entries": float(structure.nnz),
        "fill": float(structure.fill),
        "flops": flops,
        "alone": flops if flops < ALONE else 0.0,
        "levels": float(structure.column_levels),
    }


def plan_features(plan: Any) -> Features:
    """Features of a plan of the supernodal engine: modelled seconds."""
    phases = ("warp", "small", "block", "large")
    modelled = dict(zip(phases, map(float, plan.phase_seconds), strict=True))
    return {"call": 1.0, **modelled, "modelled": float(plan.solve_seconds)}


def predict_cpu(structure: Structure, costs: Costs, on_device: bool = False) -> Prediction:
    """Of the CPU engine, after its analysis; `on_device` where the caller's values and vectors are on a device."""
    features = factor_features(structure)
    factor, refactor, solve = (seconds(costs[f"cpu.{structure.method}.{phase}"], features) for phase in CPU_PHASES)
    half = 0.5 if structure.cholesky else 1.0  # one triangle of everything
    moving = moved(costs["move.to_host"], structure) if on_device else 0.0
    return Prediction("cpu", 0.0, half * factor, half * refactor, solve, moving)


def predict_fronts(
    structure: Structure, plan: Any, analyze: float, costs: Costs, on_device: bool = False
) -> Prediction:
    """Of the supernodal engine, with its plan."""
    features = plan_features(plan)
    refactor = seconds(costs["supernodal.refactor"], features)
    solve = seconds(costs["supernodal.solve"], features)
    if plan.streamed:  # the plan's own, copies and all; kernels that take longer hide more of them
        refactor, solve = max(refactor, float(plan.factor_seconds)), max(solve, float(plan.solve_seconds))
    moving = 0.0 if on_device else moved(costs["move.to_device"], structure)
    first = refactor + seconds(costs["start.factor"], start_features(structure))
    return Prediction("supernodal", analyze, first, refactor, solve, moving)


def predict_columns(engine: str, structure: Structure, costs: Costs, on_device: bool = False) -> Prediction:
    """Of a column engine: in the first factorization the CPU engine chooses pivots, and a plan is made of them."""
    features = factor_features(structure)
    refactor = seconds(costs[f"{engine}.refactor"], features)
    solve = seconds(costs[f"{engine}.solve"], features)
    moving = 0.0 if on_device else moved(costs["move.to_device"], structure)
    plan = seconds(costs["cpu.column.factor"], features) + seconds(costs[f"{engine}.plan"], features)
    first = plan + refactor + seconds(costs["start.factor"], start_features(structure))
    return Prediction(engine, seconds(costs["columns.analyze"], features), first, refactor, solve, moving)


def column_bytes(structure: Structure) -> int:
    """Device memory that a column engine is going to need, about [bytes]."""
    entries, updates = 2 * structure.fill, structure.flops / 2
    maps = 2 * updates if updates <= MOST_MAPPED else 0
    return int(entries * (16 + structure.itemsize) + maps + structure.nnz * (16 + 3 * structure.itemsize))


def start_features(structure: Structure) -> Features:
    """Features of what making a factor on a device costs besides the factorization."""
    return {"call": 1.0, "bytes": float(structure.nnz * structure.itemsize)}


def moved(term: Term, structure: Structure) -> float:
    """Values there, a right-hand side there and a solution back."""
    return seconds(term, move_features(structure))


def move_features(structure: Structure) -> Features:
    """Features of what one refactorization and solve moves."""
    return {"call": 1.0, "bytes": float((structure.nnz + 2 * structure.n) * structure.itemsize)}


def fastest(predictions: Iterable[Prediction], refactorizations: float) -> Prediction:
    """The one with the least total; of equals the first. Raises ValueError where none can run."""
    return min((p for p in predictions if not p.note), key=lambda p: p.total(refactorizations))
