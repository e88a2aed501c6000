"""Determinants and condition numbers from factors on an emulated device, without the CPU engine's factor."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.engines.supernodal.diagonal import diagonal_blocks
from support.determinants import check_determinant_and_condition
from support.small_matrices import canonical, phased, random_matrix, small_pairs, spd_matrix

pytestmark = pytest.mark.usefixtures("cupy")
KINDS = {gs.splu: random_matrix, gs.cholesky: spd_matrix}


def dense(n, dtype="d"):
    """One front."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype in "FD" else 0)
    return canonical(sp.csc_array(A)).astype(dtype)


def definite(A):
    return canonical(A @ A.conj().T + sp.eye_array(A.shape[0])).astype(A.dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_small_fronts(device, make, dtype):
    check_determinant_and_condition(KINDS[make](dtype=dtype), make, "supernodal")


@pytest.mark.parametrize("n", [33, 180])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_one_front(device, make, n):
    A = dense(n) if make is gs.splu else definite(dense(n))
    there = check_determinant_and_condition(A, make, "supernodal")
    plan = there._core._recorded.program.plan
    assert (plan.phase.tolist() == [3]) == (n == 180)
    assert diagonal_blocks(plan)["order"].sum() == n


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_a_mesh(device, make):
    A = phased(gallery.named("convdiff:6" if make is gs.splu else "elast:3x3x3"), "D", make is gs.cholesky)
    check_determinant_and_condition(A, make, "supernodal")


@pytest.mark.parametrize("engine", ["glu", "sflu"])
@pytest.mark.parametrize("dtype", "dF")
def test_columns(device, engine, dtype):
    check_determinant_and_condition(random_matrix(dtype=dtype), gs.splu, engine)


def test_perturbed_pivots_are_left_to_the_processor(device):
    """With them it is another matrix that was factored."""
    A = small_pairs()
    there = gs.splu(A, engine="supernodal")
    assert there.stats.n_perturbed > 0 == there.stats.n_repivoted
    assert there._core._cpu is None
    found, known = there.slogdet(), np.linalg.slogdet(A.toarray())
    assert found.sign == known[0]
    np.testing.assert_allclose(found.logabsdet, known[1], rtol=1e-6)
    assert there._core._cpu is not None


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_parity(n):
    perm = np.random.default_rng(n).permutation(n).astype(np.int32)
    assert _core.parity(perm) == round(np.linalg.det(np.eye(n)[perm]))
    with pytest.raises(ValueError, match="permutation"):
        _core.parity(np.full(n, n, np.int32))
