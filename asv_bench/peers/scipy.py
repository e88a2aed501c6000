"""SciPy's splu (SuperLU): neither an analysis nor a refactorization of its own, so refactor is a whole splu again."""

import scipy.sparse.linalg

from ..timing import backward_error, timed

KINDS, MOST_FLOPS = (False, True), 5e9


def missing():
    return ""


def measure(problem):
    A, b = problem.scaled, problem.b
    factor, lu = timed(lambda: scipy.sparse.linalg.splu(A))
    found = {"analyze": None, "factor": factor, "total": factor}
    found["refactor"] = problem.clock.least(lambda: scipy.sparse.linalg.splu(A))
    found["solve"] = problem.clock.least(lambda: lu.solve(b))
    found["step"] = found["refactor"] + found["solve"]
    return found | {"backward_error": backward_error(A, lu.solve(b), b)}
