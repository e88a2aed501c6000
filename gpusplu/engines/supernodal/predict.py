"""Predicted seconds of the supernodal engine."""

from __future__ import annotations

from ...common.traits import Structure
from ...cost.features import moving, start_features
from ...cost.model import Costs, Estimate, Features, seconds
from .plan import PHASES, Plan


def plan_features(plan: Plan) -> Features:
    """Features of a plan: modelled seconds."""
    modelled = dict(zip(PHASES, map(float, plan.phase_seconds), strict=True))
    return {"call": 1.0, **modelled, "modelled": float(plan.solve_seconds)}


def predict(structure: Structure, plan: Plan, costs: Costs, on_device: bool = False) -> Estimate:
    """Predict with the engine's plan."""
    features = plan_features(plan)
    refactor, solve = (seconds(costs[f"supernodal.{phase}"], features) for phase in ("refactor", "solve"))
    if plan.streamed:  # the plan's own, copies included; slower kernels hide more of them
        refactor, solve = max(refactor, float(plan.factor_seconds)), max(solve, float(plan.solve_seconds))
    first = refactor + seconds(costs["start.factor"], start_features(structure))
    return Estimate("supernodal", 0.0, first, refactor, solve, moving(costs, structure, on_device, True))
