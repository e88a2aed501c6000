"""Several devices of one host beside one of them, in the same run; and the schedules for more, as they are predicted.

`devices` of a record: how many share the work. Values and right-hand side are on the first one; seconds are those of a
call up to the end of a synchronization, medians. `same`: whether the solution has the bits of one device's. With
--simulated nothing runs: the plans for one H200 are dealt to as many devices as are named, and records of the phase
"simulated" say the seconds of a refactorization that the model predicts.
"""

import numpy as np

from .. import internals, records
from ..cases import select
from ..matrices import load
from ..options import device_clock, measured, note, numbers
from ..phases import factored_by_fronts, wall_of_fronts

CASES = ("elast:60x59x59", "poisson:120x120x120", "rlc:1200x1200")
PEERS, BUDGET = (), 0.2


def add_arguments(parser):
    parser.add_argument("--counts", type=numbers, default=[1, 2, 4], help="devices, joined by commas; 1 first")
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


def simulate_case(case, counts):
    """A record of every number of devices, by the model."""
    plan = internals.plan_for_one(load(case.name), case.definite)
    for count in counts:
        dealt = internals.deal(plan, [1.0] * count)
        note(f"{case.name} on {count}: {len(dealt.turns)} pieces, busy {np.round(dealt.busy(count), 4).tolist()}")
        more = {"devices": count, "times_as_fast": dealt.alone / dealt.seconds, "traffic_bytes": dealt.traffic}
        yield records.make(f"{case.name} on {count}", "supernodal", "simulated", dealt.seconds, **more)


def run(arguments):
    cases = select(arguments.cases)
    if arguments.simulated:
        yield from measured(arguments, cases, lambda case: simulate_case(case, arguments.counts))
        return
    clock = device_clock(arguments)
    yield from measured(arguments, cases, lambda case: measure_case(case, arguments.counts, clock))
