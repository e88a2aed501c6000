"""rslab of PyPI, in Rust: KLU for circuits, supernodal LU and LDL^T, parallel; from Python, as ours is.

With one thread and with as many as ours has, phase by phase the better of the two. What has the least total stands for
the first phases, what has the least step for the others: KLU, or LU, or LDL^T for definite matrices. These have no
refactorization of their own, so that refactor is a factorization again. KLU is not tried where their factors are large.
Of symmetric indefinite matrices LDL^T is tried, which refuses saddle points, and LU.
"""

from importlib.util import find_spec
from itertools import cycle

import scipy.sparse as sp

from .. import internals
from ..phases import attempt, begun
from ..timing import backward_error
from . import best_of, with_sums

KINDS, MOST_FLOPS, SYMMETRIC = (False, True), float("inf"), True
MOST_ENTRIES, MOST_A_ROW = 3e7, 100  # of supernodal factors, for KLU


def missing():
    return "" if find_spec("rslab") else "rslab has to be installed"


def measure(problem):
    paths = ("ldlt",) if problem.definite else ("ldlt", "lu") if problem.symmetric else ("lu",)
    tried = [attempt(lambda path=path: by_path(problem, path)) for path in paths]
    if not problem.symmetric and tried[0].get("entries", 0) < min(MOST_ENTRIES, MOST_A_ROW * problem.A.shape[0]):
        tried.append(attempt(lambda: by_path(problem, "klu")))
    found = [one for one in tried if "error" not in one]
    if not found:
        raise RuntimeError("; ".join(one["error"] for one in tried))
    first, later = (min(found, key=lambda one: one[phase]) for phase in ("total", "step"))
    return later | {phase: first[phase] for phase in ("analyze", "factor", "total")}


def by_path(problem, path):
    return best_of(with_threads, [(problem, path, threads) for threads in sorted({1, internals.num_threads()})])


def with_threads(problem, path, threads):
    """Analysis and first factorization of the first values, the rest of the second: the least of repeats."""
    import rslab

    settings = rslab.KluSettings(parallel=threads > 1) if path == "klu" else rslab.Settings(threads=threads)
    values = [stored(A, path) for A in (problem.A, problem.scaled)]
    found, (symbolic, made) = begun(
        problem,
        lambda: rslab.analyze(problem.A, path, settings=settings),
        lambda symbolic: (symbolic, symbolic.factor(values[0])),
    )
    others = cycle(values)  # new ones at every call, as nothing is done for those that it has
    refactor = made.refactor if path == "klu" else symbolic.factor
    found["refactor"] = problem.clock.least(lambda: refactor(next(others)))
    made = refactor(values[1]) or made
    found["solve"] = problem.clock.least(lambda: made.solve(problem.b))
    error = backward_error(problem.scaled, made.solve(problem.b), problem.b)
    return with_sums(found | {"entries": made.factor_nnz, "backward_error": error})


def stored(A, path):
    """The values that a path reads."""
    return (sp.csc_array(sp.tril(A)) if path == "ldlt" else A).data
