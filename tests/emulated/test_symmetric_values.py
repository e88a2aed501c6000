"""New values that are not symmetric, of engines on an emulated device: what tests/contract does not have of them."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.small_matrices import canonical, spd_matrix
from support.symmetric_values import made, nearly, spoilt, supernodal

pytestmark = pytest.mark.usefixtures("cupy", "device")


@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array])
def test_values_of_less_precision(form):
    """What the host has compared by their own precision the device does not compare again."""
    A = form(spd_matrix())
    factor, single = supernodal("cholesky", A), canonical(A, "f")
    for given in (sp.csc_array((nearly(single, 900), single.indices, single.indptr)), A.data.astype("f")):
        factor.refactor(given)
        factor.solve(np.ones(50))
    assert factor.stats.n_refactor == 2


@pytest.mark.thorough
@pytest.mark.parametrize("triangle", [sp.tril, sp.triu])
def test_one_triangle(cupy, triangle):
    """Its diagonal has to be real."""
    part = canonical(triangle(spd_matrix(dtype="D")))
    factor = supernodal("cholesky", part)
    for put in (np.asarray, cupy.asarray):
        factor.refactor(put(2 * part.data))
        with pytest.raises(gs.NotHermitianError, match="the conjugate of"):
            factor.refactor_solve(put(spoilt(part, "imaginary diagonal")), put(np.ones(50, "D")))
        assert abs(factor.slogdet().logabsdet - gs.cholesky(2 * part).slogdet().logabsdet) < 1e-9


@pytest.mark.parametrize("kind", ["cholesky", "ldlt"])
def test_schur_complements(cupy, kind):
    _, A = made(kind)
    symbolic = gs.analyze(A, cholesky=kind == "cholesky", ldlt=kind == "ldlt", schur=[3, 17, 30], engine="supernodal")
    for put in (np.asarray, cupy.asarray):
        factor = symbolic.factor(put(A.data))
        before = factor.schur.copy()
        for how in ("below", "above"):
            with pytest.raises(gs.NotHermitianError):
                factor.refactor(put(spoilt(A, how)))
            assert np.array_equal(factor.schur, before)
        factor.refactor(put(2 * A.data))
