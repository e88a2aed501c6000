"""New values of large matrices that are not symmetric, on a device; tests/contract has the rest."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from support.small_matrices import canonical, phased
from support.symmetric_values import (
    check_holds,
    right_hand_side,
    spoilt,
    supernodal,
)

pytestmark = pytest.mark.gpu


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
