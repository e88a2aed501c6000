"""Values that are not those of a Hermitian or symmetric matrix, on the host and on devices: bodies of tests."""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error

from .small_matrices import EPS, canonical, phased, rhs, spd_matrix
from .solves import on_host


def indefinite(dtype="d", hermitian=True):
    """A grid with eigenvalues of both signs; complex ones with entries of all phases."""
    return phased(canonical(gallery.poisson(8, 7) - 3.1 * sp.eye_array(56)), dtype, hermitian)


def made(kind, dtype="d", hermitian=True):
    """How a factor of this kind is made, and a matrix for it."""
    if kind == "cholesky":
        return gs.cholesky, spd_matrix(dtype=dtype)
    return gs.ldlt, indefinite(dtype, hermitian)


def columns_of(A):
    return np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))


def off_diagonal(A, below):
    """Where the first entry below the diagonal, or above it, is in A.data."""
    beside = A.indices > columns_of(A) if below else A.indices < columns_of(A)
    return int(np.flatnonzero(beside)[0])


def spoilt(A, how, size=0.25):
    """Values of A that are not symmetric any more, by `size` of the largest one."""
    values = A.data.copy()
    largest = abs(values).max()
    if how == "imaginary diagonal":
        values[np.flatnonzero(A.indices == columns_of(A))[3]] += 1j * size * largest
    else:
        values[off_diagonal(A, how == "below")] += size * largest
    return values


def ways_to_spoil(dtype, hermitian=True):
    return ["below", "above"] + ["imaginary diagonal"] * (hermitian and np.dtype(dtype).kind == "c")


def nearly(A, units):
    """Values of A, one of which differs from its counterpart by so many units of the precision of the largest one."""
    return spoilt(A, "below", units * EPS[A.dtype.char])


def right_hand_side(A):
    return rhs(A.shape[0], A.dtype)


# ---- on a device


def supernodal(kind, A, **options):
    return {"cholesky": gs.cholesky, "ldlt": gs.ldlt}[kind](A, engine="supernodal", **options)


def check_holds(factor, A):
    b = right_hand_side(A)
    assert backward_error(A, on_host(factor.solve(b)), b) < 200 * EPS[A.dtype.char]
