"""Seconds of the analysis, stage by stage, over numbers of threads; needs no device.

Cases are names or groups: circuit, middle, large. The least total of the repeats counts, with its stages.
"""

import os

from .. import internals, records
from ..cases import CASES as ALL
from ..cases import select
from ..matrices import load
from ..options import measured, numbers
from ..timing import timed

CASES = [case.name for case in ALL]
PEERS, BUDGET = (), 0.0


def add_arguments(parser):
    cores = len(os.sched_getaffinity(0))
    threads = [2**k for k in range(cores.bit_length())]
    parser.add_argument("--threads", type=numbers, default=threads, help="numbers joined by commas")


def run(arguments):
    before = internals.num_threads()
    yield from measured(arguments, select(arguments.cases), lambda case: of_case(case, arguments))
    internals.set_num_threads(before)


def of_case(case, arguments):
    """A record of every number of threads."""
    A = load(case.name)
    for threads in arguments.threads:
        internals.set_num_threads(threads)
        analyze = internals.analysis(A, case.definite)
        runs = [timed(analyze) for _ in range(arguments.repeat)]
        seconds, (stages, ordering, lnz) = min(runs, key=lambda result: result[0])
        more = {"variant": f"threads: {threads}", "stages": stages, "chosen": ordering, "lnz": lnz}
        yield records.make(case.name, "cpu", "analyze", seconds, n=A.shape[0], nnz=A.nnz, **more)
