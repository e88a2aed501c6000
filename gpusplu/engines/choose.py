"""Analysis for the GPU, and the choice between it and the CPU by predicted seconds."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..dispatch import Choice
from ..errors import EngineUnavailableError
from ..kernels import launch
from ..matrix import Pattern
from ..options import Options
from ..plan import Limits, Plan, make_plan, predict
from .buffers import usable_bytes
from .supernodal import needed_bytes

# What a user is taken to do with a factor before the pattern changes, as the CPU engine's analysis does
# (core/analysis/time_model.hpp).
REFACTORIZATIONS = 5
LOAD_SECONDS = 1.0  # import of CuPy and start of a context
START_SECONDS = 0.02  # uploads, recording of graphs
BYTES_PER_SECOND = 10e9  # between host and device, pinned memory filled or emptied
BLOCK_SHARE = 0.25  # of the free memory for contribution blocks, before they share it at the price of more launches


class Planned(NamedTuple):
    """An analysis, the plan made of it (none of a structurally singular matrix), and what they took [s]."""

    core: Any
    plan: Plan | None
    seconds: dict[str, float]


def plan_fronts(
    pattern: Pattern,
    canonical: np.ndarray,
    options: Options,
    cholesky: bool,
    device: Any,
    device_memory: int | None = None,
) -> Planned:
    """Analyse for fronts on `device`: the ordering whose plan promises the fastest factorization and solve."""
    if options.pivoting == "partial":
        raise EngineUnavailableError(
            "engine='supernodal' pivots inside its fronts only; pass pivoting='auto' or engine='cpu'"
        )
    start = perf_counter()
    candidates = _core.analyze_fronts(
        pattern.ptr,
        pattern.ind,
        canonical,
        cholesky=cholesky,
        ordering=options.ordering,
        perm=options.perm,
        matching=options.matching,
    )
    analysed = perf_counter()
    if pattern.n == 0 or candidates[0].structural_rank < pattern.n:
        return Planned(candidates[0], None, {"analyze": analysed - start})
    limits = limits_of(device, device_memory)
    core = candidates[0]
    if len(candidates) > 1:
        core = min(candidates, key=lambda candidate: sum(predict(candidate, canonical.dtype, limits)))
    plan = make_plan(core, pattern, canonical.dtype, limits)
    return Planned(core, plan, {"analyze": analysed - start, "plan": perf_counter() - analysed})


def limits_of(device: Any, device_memory: int | None) -> Limits:
    """What a plan for `device` has to keep to."""
    return Limits(
        device.shared_memory_bytes,
        device.multiprocessors,
        device.arch,
        block_bytes=int(BLOCK_SHARE * usable_bytes(device, device_memory)),
    )


def choose(
    pattern: Pattern, canonical: np.ndarray, options: Options, cholesky: bool, choice: Choice, core: Any
) -> tuple[Choice, Planned | None]:
    """Whether the GPU pays, given what the analysis for the CPU found.

    Returns
    -------
    choice : Choice
        Of engine "supernodal" or "cpu".
    planned : Planned or None
        For the GPU.
    """
    n, itemsize = pattern.n, canonical.dtype.itemsize
    on_cpu = total(*_core.predict_seconds(core.method, n, pattern.nnz, core.lnz, core.flops, cholesky))
    start = START_SECONDS + (0 if "cupy" in sys.modules else LOAD_SECONDS)
    if options.pivoting == "partial":
        return Choice("cpu", "engine='auto' and partial pivoting, which no GPU engine has"), None
    if on_cpu < start + core.seconds:
        return Choice("cpu", f"engine='auto' and a GPU would not pay: {on_cpu:.2g} s are predicted on the CPU"), None
    try:
        device = launch.open_device(choice.device)
        planned = plan_fronts(pattern, canonical, options, cholesky, device, choice.device_memory)
    except EngineUnavailableError as error:
        return Choice("cpu", f"engine='auto' and no GPU engine can run: {error}"), None
    plan = planned.plan
    if plan is None:
        return Choice("cpu", "engine='auto' and A is structurally singular"), None
    needed, free = needed_bytes(plan, pattern), usable_bytes(device, choice.device_memory)
    if needed > free:
        text = f"engine='auto' and {needed:,} bytes of device memory are needed, {free:,} may be used"
        return Choice("cpu", text), None
    moved = 2 * pattern.nnz * itemsize + REFACTORIZATIONS * (pattern.nnz + 2 * n) * itemsize
    on_gpu = total(plan.factor_seconds, plan.factor_seconds, plan.solve_seconds)
    on_gpu += start + sum(planned.seconds.values()) + moved / BYTES_PER_SECOND
    compared = (
        f"predicted {on_gpu:.2g} s on {device.name} and {on_cpu:.2g} s on the CPU for a factorization and "
        f"{REFACTORIZATIONS} refactorizations and solves"
    )
    if on_gpu >= on_cpu:
        return Choice("cpu", compared), None
    return Choice("supernodal", compared, device.index, choice.device_memory), planned


def total(factor: float, refactor: float, solve: float) -> float:
    """Seconds of all that a factor is used for."""
    return factor + REFACTORIZATIONS * (refactor + solve)
