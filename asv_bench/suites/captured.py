"""A refactorization and solve that is waited for, one that is not, and one in a graph of the caller's.

Seconds of `refactor_solve` with values and vectors on the device, on average over many in a row: each waited for
("now"); not waited for, each a launch from Python ("later"); not waited for, each a launch of a graph that was captured
("captured").
"""

import numpy as np

import gpusplu as gs

from .. import records
from ..matrices import load
from ..options import device_clock, measured, names

CASES = ("add20", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "ibmpg1t_mna_tran", "bcsstk16")
PEERS, BUDGET = (), 0.05
IN_A_ROW = 100
ENGINES = ("supernodal", "glu", "sflu", "crisscross")


def add_arguments(parser):
    parser.add_argument("--engines", type=names, default=ENGINES, help="names joined by commas")


def measure(A, engine, clock):
    """Seconds by way, and the largest backward error."""
    lu, times = gs.splu(A, engine=engine), IN_A_ROW if clock.has_events else 1
    values, b = clock.put(A.data), clock.put(np.random.default_rng(0).normal(size=A.shape[0]))
    x = lu.refactor_solve(values, b, check="later")

    def later():
        lu.refactor_solve(values, b, check="later", out=x)

    launch = clock.capture(later)
    ways = {"now": lambda: lu.refactor_solve(values, b), "later": later, "captured": launch}
    found = {}
    for way, step in ways.items():
        found[way] = clock.wall(lambda: [step() for _ in range(times)]) / times  # noqa: B023
    return found, lu.check()


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.engines, clock))


def of_case(case, engines, clock):
    """A record of every engine and way."""
    A = load(case)
    for engine in engines:
        found, error = measure(A, engine, clock)
        for way, seconds in found.items():
            yield records.make(case, engine, "step", seconds, backward_error=error, variant=way, nnz=A.nnz)
