"""KLU of SuiteSparse: LU by columns of matrices of circuits, one thread."""

import numpy as np

from . import suitesparse

KINDS, MOST_FLOPS = (False,), 5e9
missing = suitesparse.missing


def measure(problem):
    return suitesparse.phases("bench_klu", problem.scaled, problem, np.int32)
