"""Numbers below the smallest normal one: zeros in factors that do not depend on them, and numbers in those that do."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery

DTYPES = "fdFD"
COUPLED = {"f": 1e-20, "d": 1e-160}  # whose squares are below it


def real(dtype):
    return np.dtype(dtype).char.lower()


def subnormals(*factors):
    data = np.concatenate([part for factor in factors for part in (abs(factor.data.real), abs(factor.data.imag))])
    return int(((data > 0) & (data < np.finfo(data.dtype).tiny)).sum())


def barely_coupled(dtype):
    """As a step of a stiff equation that has just begun: the identity and a very small matrix with much fill."""
    J = gallery.named("poisson:40x40")
    J.data *= np.random.default_rng(0).uniform(0.5, 1.5, J.nnz)
    return sp.csc_array(sp.eye_array(J.shape[0]) + COUPLED[real(dtype)] * J).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_far_below_rounding_errors_becomes_zero(dtype):
    A = barely_coupled(dtype)
    lu = gs.splu(A, engine="cpu")
    assert lu.stats.method == "front"
    assert subnormals(lu.L, lu.U) == 0
    b = np.linspace(1, 2, A.shape[0]).astype(dtype)
    assert abs(A @ lu.solve(b) - b).max() <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [gs.cholesky, gs.splu])
def test_of_matrices_that_are_small_altogether_they_stay(function, dtype):
    """Refactored, too, with scales of LU that are those of other values."""
    P = gallery.named("poisson:30x30")
    small = 40 * float(np.finfo(dtype).tiny)
    A = (small * P).astype(dtype)
    x = np.linspace(1, 2, A.shape[0])
    b = (P @ x * small).astype(dtype)
    fresh, again = function(A, engine="cpu"), function(P.astype(dtype), engine="cpu")
    again.refactor(A.data)
    for factor in (fresh, again):
        assert abs(factor.solve(b) - x).max() <= 1e3 * np.finfo(dtype).eps * 40
