"""refactor_solve with waiting, without, and in a graph of the caller.

Mean seconds of many successive `refactor_solve` with values and vectors on the device: waiting for each ("now"); calls
from Python without waiting ("later"); launches of a captured graph without waiting ("captured"). With `--systems` also
those of a batch of that size, in seconds per system.
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
BATCHES = "supernodal"  # factors systems side by side


def add_arguments(parser):
    parser.add_argument("--engines", type=names, default=ENGINES, help="names joined by commas")
    parser.add_argument("--systems", type=int, default=0, help="of a batch")


def measure(factor, values, b, clock):
    """Seconds by way, of a factor or a batch, with arrays on the device."""
    times = IN_A_ROW if clock.has_events else 1
    x = factor.refactor_solve(values, b, check="later")

    def later():
        factor.refactor_solve(values, b, check="later", out=x)

    launch = clock.capture(later)
    ways = {"now": lambda: factor.refactor_solve(values, b), "later": later, "captured": launch}
    found = {}
    for way, step in ways.items():
        found[way] = clock.wall(lambda: [step() for _ in range(times)]) / times  # noqa: B023
    return found


def run(arguments):
    clock, ways = device_clock(arguments), (arguments.engines, arguments.systems)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, *ways, clock))


def of_case(case, engines, systems, clock):
    """A record of every engine and way."""
    A, rng = load(case), np.random.default_rng(0)
    b = clock.put(rng.normal(size=A.shape[0]))
    for engine in engines:
        factor = gs.splu(A, engine=engine)
        found = measure(factor, clock.put(A.data), b, clock)
        error = factor.check()
        for way, seconds in found.items():
            yield records.make(case, engine, "step", seconds, backward_error=error, variant=way, nnz=A.nnz)
    if systems:
        values = clock.put(A.data * rng.uniform(0.9, 1.1, (systems, A.nnz)))
        batch = gs.splu_batch(A, values, engine=BATCHES)
        found = measure(batch, values, clock.put(rng.normal(size=(systems, A.shape[0]))), clock)
        error = float(batch.check().max())
        for way, seconds in found.items():
            variant = f"{way}, {systems} systems"
            yield records.make(
                case, BATCHES, "step", seconds / systems, backward_error=error, variant=variant, nnz=A.nnz
            )
