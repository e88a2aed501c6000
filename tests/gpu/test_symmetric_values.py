"""New values that are not symmetric, on a device: refused by factors, flagged by batches."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from support.small_matrices import canonical, phased, spd_matrix
from support.symmetric_values import (
    check_batches,
    check_deferred_batches,
    check_deferred_calls,
    check_holds,
    check_values_on_the_device,
    right_hand_side,
    spoilt,
    supernodal,
)

pytestmark = pytest.mark.gpu

KINDS = pytest.mark.parametrize("kind", ["cholesky", "ldlt"])


@KINDS
@pytest.mark.parametrize("dtype", "fdFD")
def test_values_on_the_device(cupy, kind, dtype):
    check_values_on_the_device(cupy, kind, dtype)


@KINDS
def test_calls_that_nobody_waits_for(cupy, kind):
    check_deferred_calls(cupy, kind)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("count", [5, 70])
def test_batches(cupy, dtype, count):
    for put in (np.asarray, cupy.asarray):
        check_batches(put, spd_matrix(dtype=dtype), count)


def test_batches_that_nobody_waits_for(cupy):
    check_deferred_batches(cupy)


@pytest.mark.parametrize("dtype", "dD")
def test_large_matrices(cupy, dtype):
    """Of many blocks of the kernel that compares; the last pair differs."""
    A = phased(canonical(gallery.poisson(300, 300)), dtype, hermitian=True)
    factor, b = supernodal("cholesky", A), right_hand_side(A)
    for put in (np.asarray, cupy.asarray):
        last = A.data.copy()
        last[-2] *= 1.25
        for bad in (last, spoilt(A, "below")):
            with pytest.raises(gs.NotHermitianError):
                factor.refactor_solve(put(bad), put(b))
        check_holds(factor, A)
