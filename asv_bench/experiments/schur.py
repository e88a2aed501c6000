"""Schur complements on an interface, compared with PARDISO, cuDSS and solves with the interior's factor.

The interface is the last `--unknowns` of a matrix: a plane or some rows of points of a grid. `schur` is a
refactorization that computes the complement, `solves_s` the same by solves with the interior's factor for each column
that couples it with the interface. `halves` is condense and expand of one right-hand side; for PARDISO its two partial
solves. `difference` is that of the two complements. With cuDSS everything is on the device, and the complement comes
from the supernodal engine.
"""

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import device_clock, measured, note, present
from ..peers import cudss, pardiso
from ..timing import HostClock, backward_error

CASES = (
    *("poisson:300x300", "poisson:30x30x30", "elast:12x12x12", "convdiff:30", "rlc:150x150", "kkt:20000x8000x3"),
    *("memplus", "faer_matrix_n19168"),
)
PEERS, BUDGET = ("pardiso",), 0.5
FORWARD, BACKWARD = 331, 333  # phases of PARDISO
MOST_SOLVES = 2000  # unknowns beyond which they are not tried


def add_arguments(parser):
    parser.add_argument("--unknowns", type=int, default=400, help="of the interface")


def kind_of(case):
    definite = case.startswith(("poisson", "elast"))
    return {"cholesky": definite, "ldlt": case.startswith(("kkt", "stokes", "mixed", "helmholtz"))}


class OfPardiso:
    """PARDISO's complement and halves."""

    def __init__(self, A, b, kind, interface, _clock):
        self.solver = pardiso.Solver(A, b, kind["cholesky"], interface=interface)
        self.solver.begin()

    def calls(self):
        return {"schur": self.schur, "halves": self.halves}

    def schur(self):
        self.solver.run(pardiso.FACTORIZATION)
        return self.solver.schur

    def halves(self):
        self.solver.run(FORWARD)
        self.solver.run(BACKWARD)

    def free(self):
        self.solver.run(pardiso.RELEASE)


class OfCuDSS:
    """The complement of cuDSS, whole."""

    def __init__(self, A, b, kind, interface, clock):
        self.triangle = kind["cholesky"] or kind["ldlt"]
        how = {"symmetric": kind["ldlt"], "interface": interface}
        self.solver = cudss.Solver(A, clock.put(b), kind["cholesky"], **how).__enter__()
        self.solver.analyze()
        self.solver.factor()

    def calls(self):
        return {"schur": self.again}

    def again(self):
        self.solver.refactor()
        return self.solver.complement()

    def schur(self):
        found = self.again().get()
        return np.triu(found) + np.triu(found, 1).T if self.triangle else found

    def free(self):
        self.solver.__exit__()


BESIDE = {"pardiso": OfPardiso, "cudss": OfCuDSS}


def compare(case, unknowns, peer, clock):
    """Records of both phases."""
    A, kind = load(case), kind_of(case)
    A.sort_indices()
    n, b = A.shape[0], np.random.default_rng(0).normal(size=A.shape[0])
    interface = np.arange(n - unknowns, n)
    engine = "supernodal" if clock.on_device else "cpu"
    values, right = clock.put(A.data), clock.put(b)
    factor = gs.analyze(A, schur=interface, engine=engine, **kind).factor(values)
    y = clock.put(np.linalg.solve(on_host(factor.schur), on_host(factor.condense(right))))
    more = {"n": n, "unknowns": unknowns, "eliminated": factor.eliminated}
    error = backward_error(A, on_host(factor.expand(y)), b)

    def halves():
        factor.condense(right)
        factor.expand(y)

    took = {"schur": clock.least(lambda: factor.refactor(values)), "halves": clock.least(halves)}
    if unknowns <= MOST_SOLVES and factor.eliminated:
        solved = internals.by_solves(gs.analyze(A, schur=interface, engine=engine, **kind)).factor(values)
        more["solves_s"] = clock.least(lambda: solved.refactor(values))
        more["solves_difference"] = difference(solved.schur, factor.schur)
    there = dict.fromkeys(took)
    if peer:
        beside = BESIDE[peer](A, b, kind, interface, clock)
        try:
            more["difference"] = difference(beside.schur(), on_host(factor.schur))
            there |= {phase: clock.least(call) for phase, call in beside.calls().items()}
        finally:
            beside.free()
    for phase, seconds in took.items():
        yield records.make(case, engine, phase, seconds, peer or "none", there[phase], error, **more)


def on_host(array):
    return array if isinstance(array, np.ndarray) else array.get()


def difference(other, schur):
    return float(np.abs(other - schur).max() / np.abs(schur).max())


def run(arguments):
    peer = next(iter(present(arguments)), None)
    clock = device_clock(arguments) if peer == "cudss" else HostClock(arguments.budget)
    note(f"{internals.num_threads()} threads")
    yield from measured(arguments, arguments.cases, lambda case: compare(case, arguments.unknowns, peer, clock))
