"""``bench --calibrate``: fits the constants that engines are chosen by to this machine, and keeps them."""

from collections.abc import Callable
from time import perf_counter

from gpusplu import observe
from gpusplu.dispatch.calibration import Observation, costs_of, fit, processor_name, spread, store
from gpusplu.dispatch.costs import Costs, shipped
from gpusplu.dispatch.resolve import no_device

from .report import CommandError, Progress, describe, table


def run(budget: float) -> int:
    """Measure, fit, print and keep."""
    start = perf_counter()
    subject = processor_name()
    found = collect(
        "processor", observe.PROCESSOR_CASES, lambda name, kind: observe.observe_processor(name, kind, budget / 4)
    )
    print(f"processor: {subject}")
    keep(subject, found)
    missing = no_device()
    if missing:
        print(f"no device: {missing}")
    else:
        from gpusplu.cuda import devices

        device = devices.open_device().name
        costs = costs_of()
        observe.observe_device("rlc:10x10", False, 0.01, costs)  # loads kernels
        observe.observe_device("elast:6x6x6", True, 0.01, costs)
        found = collect(
            "device", observe.DEVICE_CASES, lambda name, kind: observe.observe_device(name, kind, budget / 4, costs)
        )
        print(f"device: {device}")
        keep(device, found)
    print(f"in {perf_counter() - start:.0f} s")
    return 0


def collect(
    title: str, cases: tuple[tuple[str, bool], ...], measure: Callable[[str, bool], observe.Observations]
) -> observe.Observations:
    """Observations of all cases."""
    found: observe.Observations = {}
    with Progress(title, len(cases)) as progress:
        for case in cases:
            observe.merge(found, measure(*case))
            progress.advance(case[0])
    return found


def keep(subject: str, found: dict[str, list[Observation]]) -> None:
    """Fit each term, print how far off it was and is, and write the file."""
    costs: Costs = {term: fit(observations, shipped()[term]) for term, observations in found.items()}
    rows = []
    for term, observations in found.items():
        off = [f"{spread(observations, constants[term]):.2f}" for constants in (shipped(), costs)]
        values = " ".join(f"{name} {value:.3g}" for name, value in costs[term].items())
        rows.append([term, str(len(observations)), *off, values])
    print(table(("term", "cases", "shipped off by", "now", "constants"), rows))
    try:
        print(f"kept in {store(subject, costs)}")
    except OSError as error:
        raise CommandError(f"constants cannot be kept: {describe(error)}") from None
