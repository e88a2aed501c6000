"""What tests of remembered patterns share."""

import numpy as np

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, rhs

REUSED = "analysis of call {} reused"
NEW = "made for this matrix"


def accurate(A, x, b, times=100):
    assert backward_error(A, x, b) < times * EPS[np.result_type(A.dtype, "f").char]


def solved(A, solve=gs.spsolve, seed=5):
    """Solve with a random right-hand side, and look at the residual."""
    b = rhs(A.shape[0], A.dtype, seed=seed)
    x = solve(A, b)
    accurate(A, x, b)
    return x


def counts():
    info = gs.cache_info()
    return info.hits, info.misses


WAYS = {
    "splu": lambda A, b: gs.splu(A).solve(b),
    "factorized": lambda A, b: gs.factorized(A)(b),
    "spsolve": gs.spsolve,
    "cholesky": lambda A, b: gs.cholesky(A).solve(b),
    "splu with options": lambda A, b: gs.splu(A, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(b),
    "spsolve with options": lambda A, b: gs.spsolve(A, b, permc_spec="COLAMD"),
}
