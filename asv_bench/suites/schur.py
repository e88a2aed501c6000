"""Schur complements on an interface, beside PARDISO's and beside solves with the factor of the rest.

The interface is the last `--unknowns` of a matrix: of grids a plane or some rows of points. `schur` are new values and
the complement of them, `solves_s` the same by solves with the interior's factor for each column that couples it with
the interface. `halves` is condense and expand of one right-hand side; PARDISO's two partial solves in its place.
`difference` is that of the two complements.
"""

import numpy as np

import gpusplu as gs

from .. import internals, records
from ..matrices import load
from ..options import measured, note, present
from ..peers.pardiso import FACTORIZATION, RELEASE, Pardiso
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


class Beside:
    """PARDISO's complement and halves."""

    def __init__(self, A, b, definite, interface):
        self.pardiso = Pardiso(A, b, definite, interface=interface)
        self.pardiso.begin()

    def schur(self):
        self.pardiso.run(FACTORIZATION)
        return self.pardiso.schur

    def halves(self):
        self.pardiso.run(FORWARD)
        self.pardiso.run(BACKWARD)


def compare(case, unknowns, peer, clock):
    """Records of both phases."""
    A, kind = load(case), kind_of(case)
    A.sort_indices()
    n, b = A.shape[0], np.random.default_rng(0).normal(size=A.shape[0])
    interface = np.arange(n - unknowns, n)
    symbolic = gs.analyze(A, schur=interface, **kind)
    factor = symbolic.factor(A.data)
    x = factor.expand(np.linalg.solve(factor.schur, factor.condense(b)))
    y = x[interface]
    more = {"n": n, "unknowns": unknowns, "eliminated": factor.eliminated}
    error = backward_error(A, x, b)

    def halves():
        factor.condense(b)
        factor.expand(y)

    took = {"schur": clock.least(lambda: factor.refactor(A.data)), "halves": clock.least(halves)}
    if unknowns <= MOST_SOLVES:
        solved = internals.by_solves(gs.analyze(A, schur=interface, **kind)).factor(A.data)
        more["solves_s"] = clock.least(lambda: solved.refactor(A.data))
        more["solves_difference"] = difference(solved.schur, factor.schur)
    there = dict.fromkeys(took)
    if peer:
        beside = Beside(A, b, kind["cholesky"], interface)
        try:
            more["difference"] = difference(beside.schur(), factor.schur)
            there = {"schur": clock.least(beside.schur), "halves": clock.least(beside.halves)}
        finally:
            beside.pardiso.run(RELEASE)
    for phase, seconds in took.items():
        yield records.make(case, "cpu", phase, seconds, "pardiso" if peer else "none", there[phase], error, **more)


def difference(other, schur):
    return float(np.abs(other - schur).max() / np.abs(schur).max())


def run(arguments):
    peer, clock = bool(present(arguments)), HostClock(arguments.budget)
    note(f"{internals.num_threads()} threads")
    yield from measured(arguments, arguments.cases, lambda case: compare(case, arguments.unknowns, peer, clock))
