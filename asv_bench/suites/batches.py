"""Many systems of one pattern: seconds per system of refactor and solve, compared with cuDSS's uniform batch.

Values and right-hand sides are on the device and differ from system to system: A is scaled from both sides by numbers
near one. Seconds are medians between CUDA events of a refactorization and a solve of all systems, divided by their
number; `refactor_s`, `solve_s`: of each; `wall_s`: from Python to the end of a synchronization; `loop_s`: of
refactor_solve of the CPU engine, one system after another. gpusplu measures the backward error of every system and
refines if necessary, cuDSS does neither; both errors are the worst of the first SAMPLES and the last system.
"""

import gc

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .. import internals, records
from ..matrices import Case, load
from ..options import device_clock, measured, note, numbers, present
from ..peers import cudss
from ..phases import on_host
from ..timing import HostClock, backward_error

SYSTEMS = {
    **dict.fromkeys(("memplus", "add20", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac"), (256, 1024)),
    **dict.fromkeys(("ibmpg1t_mna_tran", "elast:8x8x8"), (64, 256)),
}
CASES = tuple(SYSTEMS)
PEERS, BUDGET = ("cudss",), 0.1
SAMPLES = 3


def add_arguments(parser):
    parser.add_argument("--systems", type=numbers, help="numbers joined by commas, of every case")
    parser.add_argument("--grain", type=float, help="work of a subtree that a warp takes, instead of ours")
    parser.add_argument("--rows", type=numbers, help="of fronts for small teams, large teams and a warp's solve")
    parser.add_argument("--kernels", action="store_true", help="say what each kernel takes")


class Systems:
    """The values and right-hand sides of `count` systems, where the engines want them."""

    def __init__(self, A, count, clock):
        rng = np.random.default_rng(count)
        self.A, self.count, n = A, count, A.shape[0]
        self.near_one = 1 + 0.1 * rng.random((count, n))
        self.b = clock.put(rng.normal(size=(count, n)))
        self.put = clock.put

        self.columns = np.repeat(np.arange(n), np.diff(A.indptr))

    def values(self, order=slice(None)):
        """Of all systems, A.data in this order, C-contiguous."""
        scale, data = self.put(self.near_one), self.put(self.A.data[order])
        values = scale[:, self.put(self.A.indices[order])] * scale[:, self.put(self.columns[order])] * data
        return values.copy(order="C")

    def matrix(self, k):
        data = self.near_one[k][self.A.indices] * self.near_one[k][self.columns] * self.A.data
        return sp.csc_array((data, self.A.indices, self.A.indptr), shape=self.A.shape)

    def error(self, x):
        """The worst backward error of some systems, of x on the device."""
        some = [*range(min(SAMPLES, self.count)), self.count - 1]
        return max(backward_error(self.matrix(k), on_host(x[k]), on_host(self.b[k])) for k in some)


def seconds(clock, systems, refactor, solve):
    """Of one system."""

    def both():
        refactor()
        solve()

    timed = {"both": clock.device(both), "refactor_s": clock.device(refactor), "solve_s": clock.device(solve)}
    return {name: took / systems.count for name, took in (timed | {"wall_s": clock.wall(both)}).items()}


def ours(case, systems, clock, grain, rows):
    """Seconds, and what else is known."""
    batch = internals.engine_batch(systems.A, case.definite, systems.count, grain, rows)
    values = systems.values()
    batch.refactor(values)
    x = batch.solve(systems.b)
    found = seconds(clock, systems, lambda: batch.refactor(values), lambda: batch.solve(systems.b))
    found |= {"backward_error": systems.error(x), "worst_error": float(batch.errors().max())}
    return found | {"steps": int(batch.steps.max()), "bytes": batch.nbytes}, batch, values


def theirs(case, systems, clock):
    """The same of cuDSS."""
    order = cudss.Solver.order_of(systems.A)
    if case.definite:
        order = order[(systems.columns >= systems.A.indices)[order]]
    with cudss.Solver(systems.A, systems.b, case.definite, systems.count) as solver:
        solver.values[...] = systems.values(order).reshape(-1)
        solver.analyze()
        solver.factor()
        solver.refactor()
        solver.solve()
        found = seconds(clock, systems, solver.refactor, solver.solve)
        return found | {"backward_error": systems.error(solver.x)}


def loop(case, systems):
    """Seconds a system of the CPU engine."""
    factor = (gs.cholesky if case.definite else gs.splu)(systems.A, engine="cpu")
    few = min(systems.count, 8)
    values, b = [systems.matrix(k).data for k in range(few)], on_host(systems.b[:few])
    return HostClock(0.2).wall(lambda: [factor.refactor_solve(values[k], b[k]) for k in range(few)]) / few


def of_case(case, arguments, clock):
    A = load(case.name)
    A = sp.csc_array((A.data.astype(float), A.indices, A.indptr), shape=A.shape)
    A.sort_indices()
    for count in arguments.systems or SYSTEMS.get(case.name, (64,)):
        gc.collect()
        systems = Systems(A, count, clock)
        found, batch, values = ours(case, systems, clock, arguments.grain, arguments.rows)
        if arguments.kernels:
            note(f"{case.name} x {count}: {internals.batch_kernels(batch, values, systems.b, clock)}")
        del batch, values
        its, peer = {}, "none"
        if "cudss" in arguments.peer:
            try:
                its, peer = theirs(case, systems, clock), "cudss"
            except Exception as error:  # cuDSS fails for some batches, which is a finding
                note(f"{case.name} x {count}: cudss: {error}")
        tuned = arguments.grain or arguments.rows
        more = {"systems": count, "loop_s": None if tuned else loop(case, systems)}
        more |= {f"peer_{name}": value for name, value in its.items() if name != "both"}
        took, error = found.pop("both"), found.pop("backward_error")
        yield records.make(case.name, "supernodal", "both", took, peer, its.get("both"), error, **found, **more)


def run(arguments):
    clock = device_clock(arguments)
    arguments.peer = present(arguments)
    cases = [Case(name, name.startswith(("elast", "poisson")), "batch") for name in arguments.cases]
    yield from measured(arguments, cases, lambda case: of_case(case, arguments, clock))
