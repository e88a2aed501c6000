"""SciPy's splu (SuperLU): neither an analysis nor a refactorization of its own, so refactor is a whole splu again."""

import scipy.sparse.linalg

from ..timing import backward_error, best, timed

KINDS, MOST_FLOPS = (False, True), 5e9
REPEAT = 3


def missing():
    return ""


def measure(problem):
    A, b = problem.scaled, problem.b
    factor, lu = timed(lambda: scipy.sparse.linalg.splu(A))
    found = {"analyze": None, "factor": factor, "total": factor}
    found["refactor"] = best(lambda: scipy.sparse.linalg.splu(A), REPEAT)
    found["solve"] = best(lambda: lu.solve(b), REPEAT)
    found["step"] = found["refactor"] + found["solve"]
    return found | {"backward_error": backward_error(A, lu.solve(b), b)}
