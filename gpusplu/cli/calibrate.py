"""Seconds of each phase of an engine on one matrix; ``bench --calibrate``: constants fitted to this machine."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.common import matrix
from gpusplu.common.timing import Measured, backward_error, nothing, other_values, repeated, synchronizer, timed
from gpusplu.cost.calibration import costs_of, fit, processor_name, spread, store, with_followers
from gpusplu.cost.model import Costs, Observation, Observations, merge
from gpusplu.cost.table import shipped
from gpusplu.cuda.presence import is_loaded, no_device
from gpusplu.engines import registry
from gpusplu.errors import GpuspluError
from gpusplu.linalg import analyze

from .report import CommandError, Progress, describe, table


def cases(indefinite: str, definite: str) -> tuple[tuple[str, bool], ...]:
    """Names in the gallery, and whether to be factored as definite."""
    return tuple((name, kind == definite) for kind in (indefinite, definite) for name in kind.split())


# Circuits, grids and fields from a thousand unknowns on.
PROCESSOR_CASES = cases(
    "rlc:12x12 rlc:20x20 circuit:25x25 rlc:35x35 circuit:40x40 rlc:60x60 power:60x60 convdiff:8 convdiff:15 "
    "rlc:150x150",
    definite="poisson:100x100 elast:6x6x6 poisson:15x15x15",
)
DEVICE_CASES = cases(
    "rlc:12x12 rlc:20x20 circuit:30x30 rlc:35x35 rlc:60x60 power:100x100 convdiff:12 rlc:200x200 convdiff:25",
    definite="poisson:300x300 elast:8x8x8 elast:16x16x16 poisson:30x30x30",
)
#: Warm-up cases, which load the kernels.
FIRST_CASES = (("rlc:10x10", False), ("elast:6x6x6", True))


def run(budget: float) -> int:
    """Measure, fit, print and save."""
    start = perf_counter()
    subject = processor_name()
    found = collect("processor", PROCESSOR_CASES, False, budget / 4, costs_of())
    print(f"processor: {subject}")
    keep(subject, found, costs_of())
    missing = no_device()
    if missing:
        print(f"no device: {missing}")
    else:
        from gpusplu.cuda import devices

        found_first = first_use()
        device, costs = devices.open_device().name, costs_of()
        for case in FIRST_CASES:
            observe(case, True, 0.01, costs)
        found = collect("device", DEVICE_CASES, True, budget / 4, costs)
        merge(found, found_first)
        print(f"device: {device}")
        keep(device, found, costs_of(device))
    print(f"in {perf_counter() - start:.0f} s")
    return 0


def collect(
    title: str, cases: tuple[tuple[str, bool], ...], on_device: bool, budget: float, costs: Costs
) -> dict[str, list[Observation]]:
    """Observations of all cases."""
    found: dict[str, list[Observation]] = {}
    with Progress(title, len(cases)) as progress:
        for case in cases:
            merge(found, observe(case, on_device, budget, costs))
            progress.advance(case[0])
    return found


def observe(case: tuple[str, bool] | None, on_device: bool, budget: float, costs: Costs) -> Observations:
    """Times of all engines of a device, or of the processor, on a matrix of the gallery; None: costs of a first use."""
    A, cholesky = (None, False) if case is None else (gallery.named(case[0]), case[1])

    def measured(engine: str, arrays_on_device: bool) -> Measured | str:
        return failure(lambda: measure(A, engine, cholesky=cholesky, on_device=arrays_on_device, budget=budget))

    found: dict[str, list[Observation]] = {}
    for engine in registry.engines(on_device):
        merge(found, engine.calibrate(case, measured, costs, budget))
    return found


def first_use() -> Observations:
    """Times of the first use of a device: loading CuPy, creating a context, and those that engines measure."""
    from gpusplu.cuda import devices

    was_loaded, start = is_loaded(), perf_counter()
    devices.open_device()
    took = perf_counter() - start
    found = {} if was_loaded else {"start.load": [Observation({"call": 1.0}, took)]}
    merge(found, observe(None, True, 0.0, costs_of()))
    return found


def keep(subject: str, found: dict[str, list[Observation]], current: Costs) -> None:
    """Fit each entry that was observed, print how far off it was and is, and write the file with those that follow."""
    costs: Costs = {term: fit(observations, shipped()[term]) for term, observations in found.items()}
    rows = []
    for term, observations in found.items():
        off = [f"{spread(observations, constants[term]):.2f}" for constants in (shipped(), costs)]
        values = " ".join(f"{name} {value:.3g}" for name, value in costs[term].items())
        rows.append([term, str(len(observations)), *off, values])
    print(table(("term", "cases", "shipped off by", "now", "constants"), rows))
    try:
        print(f"saved to {store(subject, with_followers(costs, current))}")
    except OSError as error:
        raise CommandError(f"constants cannot be saved: {describe(error)}") from None


def measure(
    A: sp.csc_array,
    engine: Any,
    *,
    cholesky: bool = False,
    on_device: bool = False,
    budget: float = 0.2,
    **options: Any,
) -> Measured:
    """Analyse, factor, refactor with other values and solve.

    Parameters
    ----------
    A : csc_array, shape (n, n)
    engine : str
    cholesky : bool, optional
    on_device : bool, optional
        Values and right-hand sides are CuPy's.
    budget : float, optional
        How long refactor, solve and both together are repeated, each [s].
    **options
        Of `gpusplu.analyze`.

    Raises
    ------
    GpuspluError, RuntimeError
        What the engine raises.
    """
    put = matrix.to_device if on_device else np.asarray
    scaled = other_values(A, cholesky)
    b = scaled @ np.ones(A.shape[1], A.dtype)
    analysis, symbolic = timed(lambda: analyze(A, cholesky=cholesky, engine=engine, **options))
    factorization, factor = timed(lambda: symbolic.factor(A.data))
    new, rhs = put(scaled.data), put(b)
    finish = synchronizer() if registry.named(factor.engine).capabilities.on_device or on_device else nothing
    factor.refactor(new)
    x = factor.solve(rhs)
    error = backward_error(scaled, x if isinstance(x, np.ndarray) else x.get(), b)
    refactor = repeated(lambda: factor.refactor(new), budget, finish)
    solve = repeated(lambda: factor.solve(rhs), budget, finish)
    step = repeated(lambda: factor.refactor_solve(new, rhs), budget, finish)
    return Measured(analysis, factorization, refactor, solve, step, error, factor)


def failure(measuring: Callable[[], Measured]) -> Measured | str:
    """The measurements, or the reason why there are none."""
    try:
        return measuring()
    except (GpuspluError, RuntimeError, ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
