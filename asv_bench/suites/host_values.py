"""A refactorization and solve with values on the host, beside the same on the device and by the CPU engine.

Seconds of `refactor_solve` from Python, waited for, in the supernodal engine: of values and vectors on the device
("device"); of NumPy's, with 1 and 4 threads that copy them to page-locked memory ("host_1", "host_4"); of the same with
copies in the graph instead of kernels that move them ("copies"); and of the CPU engine ("cpu").
"""

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured

CASES = (
    *("add20", "rajat19", "adder_dcop_05", "case3375wp_nrjac", "memplus", "case_ACTIVSg10k_nrjac"),
    *("bayer10", "ibmpg1t_mna_tran"),
)
PEERS, BUDGET = (), 0.05
THREADS = (1, 4)


def add_arguments(parser):
    parser.add_argument("--engine", default="supernodal")


def measure(A, engine, clock):
    """Seconds by way."""
    rng = np.random.default_rng(0)
    values, b = A.data * rng.uniform(0.95, 1.05, A.nnz), rng.normal(size=A.shape[0])
    there = [clock.put(array) for array in (values, b)]
    lu, cpu = gs.splu(A, engine=engine), gs.splu(A, engine="cpu")

    def step(factor):
        return factor.refactor_solve(values, b)

    found = {"device": clock.wall(lambda: lu.refactor_solve(*there)), "cpu": clock.wall(lambda: step(cpu))}
    step(lu)  # finds out how to take values
    before = internals.num_threads()
    for threads in THREADS:
        internals.set_num_threads(threads)
        found[f"host_{threads}"] = clock.wall(lambda: step(lu))
    internals.set_num_threads(before)
    with internals.copies_of_values():
        other = gs.splu(A, engine=engine)
        step(other)
        found["copies"] = clock.wall(lambda: step(other))
    return found


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.engine, clock))


def of_case(case, engine, clock):
    """A record of every way."""
    A = load(case)
    for way, seconds in measure(A, engine, clock).items():
        yield records.make(case, "cpu" if way == "cpu" else engine, "step", seconds, variant=way, nnz=A.nnz)
