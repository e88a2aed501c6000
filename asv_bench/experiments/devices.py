"""Several devices of one host compared with one of them, and predicted schedules for more.

`devices` of a record is the number of devices that share the work. Values and right-hand side are on the first one;
seconds are medians of a call up to the end of a synchronization. `same`: whether the solution has the same bits as that
of one device. A batch is a case `NAME x SYSTEMS`: seconds per system of a refactorization and a solve, from arrays on
the first device and, in phase "host", from arrays on the host. --simulated runs nothing: it maps the plan for one H200
to the given numbers of devices, and records of the phase "simulated" contain the predicted seconds of a
refactorization.
"""

import gc

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load, select
from ..options import device_clock, measured, note, numbers
from ..phases import factored_by_fronts, on_host, wall_of_fronts
from ..suites.batches import Systems

CASES = ("elast:60x59x59", "poisson:120x120x120", "rlc:1200x1200")
BATCHES = ("memplus:4096", "case_ACTIVSg10k_nrjac:4096", "ibmpg1t_mna_tran:1024")
PEERS, BUDGET = (), 0.2


def add_arguments(parser):
    parser.add_argument("--counts", type=numbers, default=[1, 2, 4], help="devices, joined by commas; 1 first")
    parser.add_argument("--batches", nargs="*", default=list(BATCHES), metavar="NAME:SYSTEMS", help="of LU")
    parser.add_argument("--simulated", action="store_true", help="predict, and measure nothing")


def measure(A, factor, clock):
    """Numbers of one factor, and its solution."""
    found, x = wall_of_fronts(A, factor, clock)
    stats = factor.stats
    return found | {"bytes": stats.bytes, "predicted_s": stats.get("seconds_shared")}, x


def measure_case(case, counts, clock):
    """A record of every number of devices."""
    A, first, alone = load(case.name), None, None
    for count in counts:
        factor = factored_by_fronts(A, case.definite, device=list(range(count)) if count > 1 else 0)
        found, x = measure(A, factor, clock)
        first, alone = (x, found) if first is None else (first, alone)
        more = found | {"devices": count, "same": bool((x == first).all())}
        more["times_as_fast"] = alone["refactor_s"] / found["refactor_s"]
        error = factor.backward_error
        yield records.make(
            f"{case.name} on {count}", "supernodal", "step", found["both_s"], backward_error=error, **more
        )
        del factor


def measure_batch(named, counts, clock):
    """Two records of every number of devices: from arrays on the first one, and of the host."""
    name, count = named.rsplit(":", 1)
    systems, first, alone = Systems(load(name), int(count), clock), None, {}
    given = {"step": (systems.values(), systems.b)}
    given["host"] = tuple(map(on_host, given["step"]))
    for devices in counts:
        gc.collect()
        which = list(range(devices)) if devices > 1 else 0
        batch = gs.splu_batch(systems.A, given["host"][0], engine="supernodal", device=which)
        x = batch.solve(systems.b)
        first = on_host(x) if first is None else first
        known = {"systems": systems.count, "devices": devices, "same": bool((on_host(x) == first).all())}
        case, error = f"{name} x {count} on {devices}", systems.error(x)
        for phase, (values, b) in given.items():
            took, more = seconds_of_batch(batch, values, b, clock)
            alone.setdefault(phase, took)
            more |= {"times_as_fast": alone[phase] / took}
            yield records.make(case, "supernodal", phase, took, backward_error=error, **known, **more)


def seconds_of_batch(batch, values, b, clock):
    """Of a system: of a refactorization and a solve in one call, and of each."""
    calls = {"refactor_s": lambda: batch.refactor(values), "solve_s": lambda: batch.solve(b)}
    each = {name: clock.wall(call) / len(batch) for name, call in calls.items()}
    return clock.wall(lambda: batch.refactor_solve(values, b)) / len(batch), each


def simulate_case(case, counts):
    """A record of every number of devices, by the model."""
    plan = internals.plan_for_one(load(case.name), case.definite)
    for count in counts:
        dealt = internals.map_fronts(plan, [1.0] * count)
        note(f"{case.name} on {count}: {len(dealt.turns)} pieces, busy {np.round(dealt.busy(count), 4).tolist()}")
        more = {"devices": count, "times_as_fast": dealt.single_seconds / dealt.seconds, "traffic_bytes": dealt.traffic}
        yield records.make(f"{case.name} on {count}", "supernodal", "simulated", dealt.seconds, **more)


def run(arguments):
    cases = select(arguments.cases)
    if arguments.simulated:
        yield from measured(arguments, cases, lambda case: simulate_case(case, arguments.counts))
        return
    clock = device_clock(arguments)
    yield from measured(arguments, cases, lambda case: measure_case(case, arguments.counts, clock))
    yield from measured(arguments, arguments.batches, lambda named: measure_batch(named, arguments.counts, clock))
