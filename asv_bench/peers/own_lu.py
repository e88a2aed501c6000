"""Our own LU of the same matrix on the processor: what LDL^T saves."""

import gpusplu as gs

from ..phases import begun
from . import with_sums

KINDS, MOST_FLOPS, SYMMETRIC = (), float("inf"), True


def missing():
    return ""


def measure(problem):
    found, factor = begun(
        problem,
        lambda: gs.analyze(problem.A, engine="cpu"),
        lambda symbolic: symbolic.factor(problem.A.data),
    )
    found["refactor"] = problem.clock.least(lambda: factor.refactor(problem.scaled.data))
    found["solve"] = problem.clock.least(lambda: factor.solve(problem.b))
    found |= {"backward_error": problem.error(factor.solve), "entries": factor.nnz, "bytes": factor.stats["bytes"]}
    return with_sums(found)
