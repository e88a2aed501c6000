"""A factor that is used k times: `auto`, which may migrate it to a GPU, and the best engine for k.

Seconds of splu (or cholesky) and of k refactorizations and solves (`total`), values and right-hand sides on the host or
on the device. `auto` does not know k; it makes all calls, the best of --repeat times, in a process that has used the
device before. The time of a named engine is the best of its first factorizations and first steps, which record graphs
on a device, plus k - 1 median steps; the least is that of the peer (`hindsight`), `best` names the engine. `ended` is
the engine that auto used last. Numbers k whose best time exceeds --longest seconds are left out, and so are engines
whose factorization takes longer.
"""

from functools import partial
from operator import itemgetter

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured, numbers
from ..timing import HostClock, backward_error

CASES = (
    *("memplus", "add20", "case_ACTIVSg10k_nrjac", "ibmpg1t_mna_tran", "rlc:100x100", "rlc:300x300"),
    *("poisson:300x300", "poisson:30x30x30", "elast:12x12x12", "elast:20x20x20"),
)
PEERS, BUDGET = (), 0.05
DEFINITE = ("poisson", "elast")  # matrices of the gallery that cholesky takes
REPEATS = 2  # of a first factorization


def add_arguments(parser):
    parser.add_argument("--uses", type=numbers, default=[1, 10, 100, 1000, 10_000], help="numbers joined by commas")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds of one measurement")


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments, clock))


def of_case(case, arguments, clock):
    A, definite = load(case), case.startswith(DEFINITE)
    make = partial(gs.cholesky if definite else gs.splu, A)
    host = HostClock(arguments.budget)
    for place in (host, clock):
        values, b = place.put(A.data), place.put(np.ones(A.shape[0]))
        each = by_engine(definite, make, values, b, place, arguments.longest)
        for uses in arguments.uses:
            totals = {name: first + (uses - 1) * step for name, (first, step) in each.items()}
            best = min(totals, key=totals.get)
            if totals[best] > arguments.longest:
                break
            each_time = (alone(partial(use, make, values, b, uses, place), place) for _ in range(arguments.repeat))
            seconds, (factor, ended) = min(each_time, key=itemgetter(0))
            error = backward_error(A, np.asarray(on_host(factor.solve(b))), np.ones(A.shape[0]))
            more = {"variant": f"{'device' if place is clock else 'host'} arrays, {uses} uses", "uses": uses}
            more |= {"cpu_s": totals.get("cpu"), "best": best, "ended": ended}
            more["story"] = factor.symbolic.choice.reason
            yield records.make(case, "auto", "total", seconds, "hindsight", totals[best], error, **more)


def on_host(x):
    return x if type(x) is np.ndarray else x.get()


def by_engine(definite, make, values, b, place, longest):
    """Seconds of a first factorization with a step, and of a step, by engine."""
    found = {}
    for engine in internals.engine_names(definite):
        first, factor = place.once(partial(new, make, engine, values, b))
        if first > longest:
            continue
        for _ in range(REPEATS):
            first = min(first, place.once(partial(new, make, engine, values, b))[0])
        found[engine] = first, place.wall(partial(step, factor, values, b))
    return found


def new(make, engine, values, b):
    gs.cache_clear()
    factor = make(engine=engine)
    step(factor, values, b)
    return factor


def step(factor, values, b):
    factor.refactor(values)
    return factor.solve(b)


def alone(function, place):
    """Seconds and result, with no move of a factor before under way."""
    internals.join_moves()
    return place.once(function)


def use(make, values, b, uses, place):
    """A factor of a pattern that was never seen, refactored and solved with, and the engine it came to."""
    gs.cache_clear()
    factor = make()
    for _ in range(uses):
        step(factor, values, b)
    place.synchronize()
    return factor, factor.engine
