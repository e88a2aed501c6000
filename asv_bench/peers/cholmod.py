"""CHOLMOD of SuiteSparse: supernodal Cholesky, as many threads as its BLAS has."""

import numpy as np
import scipy.sparse as sp

from . import suitesparse

KINDS, MOST_FLOPS = (True,), 2e11
DEFAULT_ORDERING = 0
missing = suitesparse.missing


def measure(problem):
    lower = sp.csc_array(sp.tril(problem.scaled))
    return suitesparse.phases("bench_cholmod", lower, problem, np.int64, DEFAULT_ORDERING)
