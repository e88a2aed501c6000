"""ordering="natural" and permutations of the caller's, of engines on an emulated device."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from support.small_matrices import canonical, random_matrix

GRID = canonical(gallery.poisson(9, 7))
PERM = np.random.default_rng(1).permutation(63).astype(np.int32)
ORDERS = pytest.mark.parametrize(("ordering", "order"), [("natural", np.arange(63)), (PERM, PERM)])


@ORDERS
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_one_triangle(device, ordering, order, precision):
    for make in (gs.cholesky, gs.ldlt):
        factor = make(GRID, engine="supernodal", ordering=ordering, precision=precision)
        for scale in (1, 2):
            np.testing.assert_array_equal(factor.perm, order)
            assert sp.triu(factor.L, 1).nnz == 0
            D = factor.D if make is gs.ldlt else sp.eye_array(63)
            assert abs(factor.L @ D @ factor.L.T - scale * GRID[order][:, order]).max() < 1e-13
            factor.refactor(2 * GRID.data)


@ORDERS
@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
def test_lu(device, engine, ordering, order):
    A = random_matrix(63)
    lu = gs.splu(A, engine=engine, ordering=ordering)
    for scale in (1, 2):
        np.testing.assert_array_equal(np.argsort(lu.perm_c), order)
        assert sp.triu(lu.L, 1).nnz == sp.tril(lu.U, -1).nnz == 0
        assert abs(lu.L @ lu.U - scale * A[np.argsort(lu.perm_r)][:, order]).max() < 1e-12
        lu.refactor(2 * A.data)
