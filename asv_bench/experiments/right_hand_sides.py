"""Solves with 1, 4, 16 and 32 right-hand sides by the supernodal engine, compared with cuDSS.

Right-hand sides and solutions are on the device. Seconds of gpusplu are those of one replay of the graph without the
backward error, because cuDSS measures none; both are medians between CUDA events. Backward errors are the largest of a
column, without refinement. `--kernels` prints the seconds of each kernel.
"""

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load, select
from ..options import device_clock, measured, note, numbers, present
from ..peers import cudss
from ..phases import on_host
from ..timing import backward_error

CASES = ("ibmpg2t_spd_tran", "elast:20x20x20", "convdiff:50")
PEERS, BUDGET = ("cudss",), 0.2


def add_arguments(parser):
    parser.add_argument("--columns", type=numbers, default=[1, 4, 16, 32], help="numbers joined by commas")
    parser.add_argument("--kernels", action="store_true")


def right_hand_sides(n, columns):
    """Shape (n, columns), or (n,) for one."""
    b = np.random.default_rng(columns).normal(size=(n, columns))
    return np.asfortranarray(b) if columns > 1 else b[:, 0]


def ours(factor, b, clock):
    """Seconds of a solve, and its solution."""
    columns = 1 if b.ndim == 1 else b.shape[1]
    x = on_host(factor.solve(clock.put(b)))  # allocates, compiles and records
    return internals.graph_seconds(factor, clock, internals.solve_call(columns)), x


def theirs(A, definite, b, clock):
    """The same of cuDSS, which gets the number of right-hand sides before its analysis."""
    with cudss.Solver(A, clock.put(b), definite) as solver:
        solver.analyze()
        solver.factor()
        return clock.device(solver.solve), on_host(solver.x)


def by_kernel(factor, clock, columns):
    """Seconds of the kernels of a solve, by name."""
    found = {}
    for name, seconds in internals.commands_by_time(factor, clock, internals.solve_call(columns)):
        found[name] = found.get(name, 0.0) + seconds
    return {name: seconds for name, seconds in found.items() if name.startswith("solve")}


def run(arguments):
    clock = device_clock(arguments)
    peer = "cudss" if "cudss" in present(arguments) else "none"
    yield from measured(arguments, select(arguments.cases), lambda case: of_case(case, arguments, peer, clock))


def of_case(case, arguments, peer, clock):
    """A record of every number of columns."""
    A = load(case.name)
    factor = gs.analyze(A, cholesky=case.definite, engine="supernodal", refine="never").factor(A.data)
    for columns in arguments.columns:
        b = right_hand_sides(A.shape[0], columns)
        (here, x), there, more = ours(factor, b, clock), None, {"columns": columns}
        if peer == "cudss":
            there, its = theirs(A, case.definite, b, clock)
            more["peer_backward_error"] = backward_error(A, its, b)
        if arguments.kernels:
            note(f"{case.name} x {columns}: {by_kernel(factor, clock, columns)}")
        error = backward_error(A, x, b)
        yield records.make(case.name, "supernodal", "solve", here, peer, there, error, **more)
