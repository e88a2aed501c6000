"""Updates and downdates of Cholesky factors, compared with CHOLMOD's and with a refactorization.

Columns of C have entries at `--entries` unknowns that are neighbours of each other in A, or at fewer. A measurement
alternates between several such C, adds one and subtracts it again: `update` and `downdate` are least seconds of one
call from Python. CHOLMOD changes a simplicial factor, in C. `refactor_s` is a refactorization of the same matrix.
"""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .. import records
from ..matrices import load
from ..options import measured, numbers, present
from ..peers.suitesparse import UpDown
from ..timing import HostClock, backward_error, timed

CASES = ("poisson:300x300", "poisson:30x30x30", "elast:12x12x12", "bcsstk16", "bodyy4", "G3_circuit")
PEERS, BUDGET = ("cholmod",), 0.5
CHANGES = 12  # different C


def add_arguments(parser):
    parser.add_argument("--ranks", type=numbers, default=[1, 8], help="of C, joined by commas")
    parser.add_argument("--entries", type=int, default=4, help="of a column")


def drawn(A, rank, entries, rng):
    """C, of cliques of A's graph."""
    rows = sp.csr_array(A)
    columns = []
    for first in rng.integers(A.shape[0], size=rank):
        clique = {int(first)}
        for other in rows[[first]].indices:
            if len(clique) < entries and clique <= set(rows[[other]].indices):
                clique.add(int(other))
        scale = np.sqrt(abs(A[first, first]))
        values = scale * rng.normal(size=len(clique))
        columns.append(sp.coo_array((values, (sorted(clique), [0] * len(clique))), shape=(A.shape[0], 1)))
    return sp.csc_array(sp.hstack(columns))


def least_of_both(change, changes, repeat):
    """Least seconds of an update and of a downdate, the first of all left out."""
    took = [[timed(lambda C=C, way=way: change(C, way))[0] for way in (False, True)] for C in changes * repeat]
    return [min(seconds) for seconds in zip(*took[1:], strict=True)]


def compare(case, arguments, peer):
    A, clock = load(case), HostClock(arguments.budget)
    n, b = A.shape[0], np.random.default_rng(0).normal(size=A.shape[0])
    ch = gs.cholesky(A, engine="cpu")
    refactor = clock.least(lambda: ch.refactor(A.data))
    beside = UpDown(A) if peer else None
    for rank in arguments.ranks:
        rng = np.random.default_rng(rank)
        changes = [drawn(A, rank, arguments.entries, rng) for _ in range(CHANGES)]
        ours = least_of_both(lambda C, way: (ch.downdate if way else ch.update)(C), changes, arguments.repeat)
        there = [None, None]
        if beside:
            given = [beside.columns(C) for C in changes]
            there = least_of_both(beside.change, given, arguments.repeat)
        error = backward_error(A, ch.solve(b), b)
        for phase, here, other in zip(("update", "downdate"), ours, there, strict=True):
            more = {"n": n, "rank": rank, "refactor_s": refactor}
            name = "cholmod" if peer else "none"
            yield records.make(case, "cpu", f"{phase} of rank {rank}", here, name, other, error, **more)
    if beside:
        beside.free()


def run(arguments):
    peer = bool(present(arguments))
    yield from measured(arguments, arguments.cases, lambda case: compare(case, arguments, peer))
