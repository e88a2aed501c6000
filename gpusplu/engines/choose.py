"""Analysis for the GPU, and the choice of an engine by predicted seconds."""

from __future__ import annotations

import sys
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..cuda import devices
from ..dispatch.calibration import costs_of
from ..dispatch.costs import (
    COLUMN_ENGINES,
    Costs,
    Prediction,
    column_bytes,
    factor_features,
    fastest,
    predict_columns,
    predict_cpu,
    predict_fronts,
    seconds,
    start_features,
)
from ..dispatch.resolve import Choice
from ..dispatch.traits import Structure, structure_of
from ..errors import EngineUnavailableError
from ..matrix import Pattern
from ..options import Options
from ..plans.fronts import Plan
from .buffers import usable_bytes
from .front_memory import missing_bytes, plan_within

MARGIN = 0.9  # of the CPU engine's predicted seconds that a GPU engine has to stay below
# Compiling kernels is paid once a machine: what the first matrix is charged of it, and files that say whether it was.
COMPILE_SHARE = 0.1
FILES = (
    "fronts/block_fronts.cu",
    "common/residual.cu",
    "fronts/solve_fronts.cu",
    "common/values.cu",
    "fronts/warp_fronts.cu",
)


class Planned(NamedTuple):
    """An analysis, the plan made of it (none of a structurally singular matrix), and what they took [s]."""

    core: Any
    plan: Plan | None
    seconds: dict[str, float]


class OnDevice(NamedTuple):
    """A device, the supernodal engine's plan for it, the structures that orderings give, and what is predicted.

    `once`: what a first use costs besides [s].
    """

    device: Any
    planned: Planned
    structures: list[Structure]
    predictions: tuple[Prediction, ...]
    once: float = 0.0


def plan_fronts(
    pattern: Pattern,
    canonical: np.ndarray,
    options: Options,
    cholesky: bool,
    device: Any,
    device_memory: int | None = None,
    candidates: list[Any] | None = None,
) -> Planned:
    """Analyse for fronts on `device`: the ordering whose plan promises the fastest factorization and solve."""
    start = perf_counter()
    if candidates is None:
        candidates = front_candidates(pattern, canonical, options, cholesky)
    analysed = perf_counter()
    if pattern.n == 0 or candidates[0].structural_rank < pattern.n:
        return Planned(candidates[0], None, {"analyze": analysed - start})
    core, plan = plan_within(candidates, pattern, canonical.dtype, device, device_memory)
    return Planned(core, plan, {"analyze": analysed - start, "plan": perf_counter() - analysed})


def front_candidates(pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool) -> list[Any]:
    """An analysis for fronts with every ordering worth considering.

    Raises
    ------
    EngineUnavailableError
        For ``pivoting="partial"``.
    """
    if options.pivoting == "partial":
        raise EngineUnavailableError(
            "engine='supernodal' pivots inside its fronts only; pass pivoting='auto' or engine='cpu'"
        )
    candidates: list[Any] = _core.analyze_fronts(
        pattern.ptr,
        pattern.ind,
        canonical,
        cholesky=cholesky,
        ordering=options.ordering,
        perm=options.perm,
        matching=options.matching,
    )
    return candidates


def choose(
    pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool, choice: Choice, core: Any
) -> tuple[Choice, Planned | None]:
    """The engine with the least predicted seconds, given what the analysis for the CPU found.

    Returns
    -------
    choice : Choice
        Of an engine by name, with the predictions it was chosen by.
    planned : Planned or None
        For a GPU engine.
    """
    if options.pivoting == "partial":
        return choice.of("cpu", "engine='auto' and partial pivoting, which no GPU engine has"), None
    costs = costs_of()
    structure = structure_of(core, pattern.nnz, canonical.itemsize)
    cpu = predict_cpu(structure, costs, choice.on_device)
    on_cpu = cpu.total(choice.refactorizations)
    features = {**factor_features(structure), **start_features(structure)}
    start = seconds(costs["start.factor"], features) + seconds(costs["supernodal.analyze"], features)
    try:
        if "cupy" in sys.modules:
            start += first_use(devices.open_device(choice.device), canonical.dtype, cholesky, costs)
        else:
            start += seconds(costs["start.load"], {"call": 1.0})
        if on_cpu < start:
            reason = f"engine='auto' and a GPU would not pay: {on_cpu:.2g} s are predicted on the CPU"
            return choice.of("cpu", reason, (cpu,)), None
        found = predict_on_device(pattern, canonical, options, cholesky, choice, core)
    except EngineUnavailableError as error:
        return choice.of("cpu", f"engine='auto' and no GPU engine can run: {error}", (cpu,)), None
    if found.planned.plan is None:
        return choice.of("cpu", "engine='auto' and A is structurally singular", (cpu,)), None
    return decide(choice, (cpu, *found.predictions), found)


def choose_first(
    pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool, choice: Choice
) -> tuple[Choice, Planned | None]:
    """As `choose`, with nothing analysed for the CPU engine yet: what it would take follows from the other analysis."""
    try:
        found = predict_on_device(pattern, canonical, options, cholesky, choice)
    except EngineUnavailableError as error:
        return choice.of("cpu", f"engine='auto' and no GPU engine can run: {error}"), None
    if found.planned.plan is None:
        return choice.of("cpu", "engine='auto' and A is structurally singular"), None
    methods = ("front",) if cholesky else ("column", "front")
    each = [replace(structure, method=method) for structure in found.structures for method in methods]
    cpu = fastest([predict_cpu(one, costs_of(), choice.on_device) for one in each], choice.refactorizations)
    return decide(choice, (cpu, *found.predictions), found)


def choose_on_device(
    pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool, choice: Choice
) -> tuple[Choice, Planned | None]:
    """The GPU engine with the least predicted seconds, where a device was asked for and no engine.

    Returns
    -------
    choice, planned
        As `choose` does; where none has enough memory the supernodal engine, which is going to say so.
    """
    found = predict_on_device(pattern, canonical, options, cholesky, choice)
    reason = f"device={found.device.index} was asked for"
    if all(prediction.note for prediction in found.predictions):
        return choice.of("supernodal", reason, found.predictions, found.device.index), found.planned
    choice, kept = decide(choice, found.predictions, found)
    return choice._replace(reason=f"{reason}; {choice.reason}"), kept


def predict_on_device(
    pattern: Pattern,
    canonical: np.ndarray,
    options: Options,
    cholesky: bool,
    choice: Choice,
    core: Any = None,
) -> OnDevice:
    """The supernodal engine's plan, and what is predicted for each GPU engine from here on.

    `core` is what the analysis for the CPU found. If these are fronts by another ordering than minimum degree, nothing
    better would be found for a device.
    """
    device = devices.open_device(choice.device)
    begin = perf_counter()
    if core is not None and core.method == "front" and core.ordering != "amd":
        candidates = [core]
    else:
        candidates = front_candidates(pattern, canonical, options, cholesky)
    analysed = perf_counter() - begin
    planned = plan_fronts(pattern, canonical, options, cholesky, device, choice.device_memory, candidates)
    planned.seconds["analyze"] += analysed
    if planned.plan is None:
        return OnDevice(device, planned, [], ())
    costs, free = costs_of(device.name), usable_bytes(device, choice.device_memory)
    structures = [structure_of(core, pattern.nnz, canonical.itemsize) for core in candidates]
    fronts = predict_fronts(structures[0], planned.plan, 0.0, costs, choice.on_device)
    fronts = within(free, free + missing_bytes(planned.plan, pattern, free), fronts)
    columns = predict_all_columns([] if cholesky else structures, costs, choice, free)
    once = first_use(device, canonical.dtype, cholesky, costs)
    return OnDevice(device, planned, structures, (*columns, fronts), once)


def first_use(device: Any, dtype: np.dtype, cholesky: bool, costs: Costs) -> float:
    """What the first matrix on a machine is charged of compiling kernels, 0 where they are in the cache [s]."""
    if device.compiled(FILES, dtype.char, int(cholesky)):
        return 0.0
    return COMPILE_SHARE * seconds(costs["start.compile"], {"call": 1.0})


def predict_all_columns(structures: list[Structure], costs: Costs, choice: Choice, free: int) -> list[Prediction]:
    """Of every column engine, each with the ordering that suits it best."""
    found = []
    for engine in COLUMN_ENGINES if structures else ():
        each = [predict_columns(engine, structure, costs, choice.on_device) for structure in structures]
        best = fastest(each, choice.refactorizations)
        needed = column_bytes(structures[each.index(best)])
        found.append(within(free, needed, best))
    return found


def within(free: int, needed: int, prediction: Prediction) -> Prediction:
    """The prediction, or that there is too little memory for it."""
    if needed <= free:
        return prediction
    return Prediction(prediction.engine, note=f"{needed:,} bytes of device memory are needed, {free:,} may be used")


def decide(choice: Choice, predictions: tuple[Prediction, ...], found: OnDevice) -> tuple[Choice, Planned | None]:
    """Take the fastest, the CPU engine unless by a margin; `found` holds the plan of the supernodal engine."""
    many = choice.refactorizations
    best = fastest(predictions, many)
    there = best.total(many) + found.once
    at_home = [p for p in predictions if p.engine == "cpu" and MARGIN * p.total(many) < there]
    best = at_home[0] if at_home else best
    second = [p for p in predictions if not p.note and p is not best]
    reason = f"predicted {best.total(many):.2g} s"
    if second:
        other = fastest(second, many)
        reason += f", and {other.total(many):.2g} s with {other.engine}, the next,"
    reason += f" for a factorization and {many:g} refactorizations and solves"
    without = [f"{p.engine}: {p.note}" for p in predictions if p.note]
    first = [f"{found.once:.2g} s are charged for kernels that are to be compiled"] if found.once else []
    reason = "; ".join([reason, *without, *first])
    if best.engine == "cpu":
        return choice.of("cpu", reason, predictions), None
    planned = found.planned if best.engine == "supernodal" else None
    return choice.of(best.engine, reason, predictions, found.device.index), planned
