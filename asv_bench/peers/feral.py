"""feral-solver of PyPI, in Rust: LDL^T of symmetric indefinite matrices with certified inertia, parallel; from Python.

It analyses in its first factorization: analyze is that of `feral.analyze`, which makes no factor, and factor what a
first factorization takes beyond that.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from ..phases import begun
from ..timing import backward_error
from . import with_sums

KINDS, MOST_FLOPS, SYMMETRIC = (), float("inf"), True


def missing():
    return "" if find_spec("feral") else "feral-solver has to be installed"


def measure(problem):
    import feral

    first, second = (lower(feral, A) for A in (problem.A, problem.scaled))
    found, solver = begun(problem, lambda: feral.analyze(first), lambda _: factored(feral, first))
    found["factor"] = max(found["factor"] - found["analyze"], 0.0)
    found["total"] = found["analyze"] + found["factor"]
    found["refactor"] = problem.clock.least(lambda: accepted(feral, solver.refactor(second)))
    found["solve"] = problem.clock.least(lambda: solver.solve(problem.b))
    error = backward_error(problem.scaled, np.asarray(solver.solve(problem.b)), problem.b)
    inertia = f"{solver.inertia.n_pos}, {solver.inertia.n_neg}"
    return with_sums(found | {"entries": solver.factor_nnz, "inertia": inertia, "backward_error": error})


def lower(feral, A):
    return feral.from_scipy(sp.csc_matrix(A), symmetric="full")


def factored(feral, A):
    solver = feral.Solver()
    accepted(feral, solver.factor(A))
    return solver


def accepted(feral, result):
    """Raise unless the first of what a factorization returns is success."""
    if result[0] != feral.FactorStatus.SUCCESS:
        raise RuntimeError(f"feral: {result[0]}")
