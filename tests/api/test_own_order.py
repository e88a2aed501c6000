"""ordering="natural" and permutations of the caller's: factors are taken out in that order of the columns."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix

FOUR = canonical(np.array([[10.0, 0, 3, 0], [0, 5, 0, -2], [3, 0, 5, 0], [0, -2, 0, 2]]))
GRID = canonical(gallery.poisson(13, 9))
RNG = np.random.default_rng(8)


def orders(n):
    """What is asked for, and the order that is."""
    perm = RNG.permutation(n).astype(np.int32)
    return [("natural", np.arange(n)), (perm, perm), (np.arange(n)[::-1], np.arange(n)[::-1])]


def quasidefinite(dtype="d"):
    """Has an LDL^T in every order."""
    J = sp.random_array((30, 117), density=0.1, rng=3)
    return phased(sp.block_array([[GRID, J.T], [J, -sp.eye_array(30)]]), dtype, hermitian=True)


def check(A, factor, order):
    """L D L^H is the matrix in its order, and the parts of a solve make one."""
    L, perm, b, eps = factor.L, factor.perm, rhs(A.shape[0], A.dtype), EPS[A.dtype.char]
    assert sp.triu(L, 1).nnz == 0 and L.has_sorted_indices
    y = factor.solve_L(factor.apply_P(b))
    if isinstance(factor, gs.LDLFactor):
        D, y, upper = factor.D, factor.solve_D(y), L.conj().T if factor.hermitian else L.T
        np.testing.assert_array_equal(L.diagonal(), 1)
        assert sp.tril(D, -2).nnz == sp.triu(D, 2).nnz == 0
    else:
        D, upper = sp.eye_array(len(b)), L.conj().T
    assert abs(L @ D @ upper - A[perm][:, perm]).max() < 1e4 * eps * abs(A).max()
    assert backward_error(A, factor.apply_Pt(factor.solve_Lt(y)), b) < 1e4 * eps
    if order is not None:
        np.testing.assert_array_equal(perm, order)


def test_the_matrix_that_was_reported():
    for ordering in ("natural", np.arange(4)):
        factor = gs.cholesky(FOUR, ordering=ordering)
        np.testing.assert_array_equal(factor.perm, [0, 1, 2, 3])
        np.testing.assert_allclose(factor.L.toarray(), np.linalg.cholesky(FOUR.toarray()), atol=1e-15)
        np.testing.assert_array_equal(gs.ldlt(FOUR, ordering=ordering).perm, [0, 1, 2, 3])
        for pivoting in ("auto", "partial", "static"):
            np.testing.assert_array_equal(gs.splu(FOUR, ordering=ordering, pivoting=pivoting).perm_c, [0, 1, 2, 3])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("make", [gs.cholesky, gs.ldlt])
def test_pivots_in_the_order_of_the_caller(make, dtype):
    grid = phased(GRID, dtype, hermitian=True)
    for A in (grid, quasidefinite(dtype) if make is gs.ldlt else spd_matrix(dtype=dtype)):
        for ordering, order in orders(A.shape[0]):
            factor = make(A, ordering=ordering)
            check(A, factor, order)
            factor.refactor(2 * A.data)
            check(2 * A, factor, order)
            check(A, pickle.loads(pickle.dumps(factor)).symbolic.factor(A.data), order)
            if make is gs.cholesky:
                expected = np.linalg.cholesky(A.toarray()[order][:, order].astype(np.result_type(dtype, "d")))
                np.testing.assert_allclose(make(A, ordering=ordering).L.toarray(), expected, atol=1e3 * EPS[dtype])
    factor = make(GRID, ordering="amd")  # fronts number columns by a postorder
    np.testing.assert_array_equal(factor.perm, factor.symbolic.col_perm)


def test_mixed_precision_and_updates():
    factor, C = gs.cholesky(GRID, ordering="natural", precision="mixed"), np.zeros((117, 1))
    check(GRID, factor, np.arange(117))
    C[[3, 4], 0] = 0.5
    factor.update(C)
    check(canonical(GRID + C @ C.T), factor, np.arange(117))


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldlt_with_exchanges(dtype, hermitian):
    """Blocks of order 2 have their columns side by side, and other columns stay in order if nothing is against it."""
    A = phased(gallery.kkt(60, 20), dtype, hermitian)
    for ordering, _ in orders(80):
        factor = gs.ldlt(A, ordering=ordering)
        check(A, factor, None)
        assert factor.inertia() == (60, 20, 0) if factor.hermitian else True
        assert sorted(factor.perm.tolist()) == list(range(80))
    swap = canonical(sp.block_diag([GRID, np.array([[0, 2.0], [2, 0]]), GRID]))
    factor = gs.ldlt(swap, ordering="natural")
    check(swap, factor, np.arange(236))
    assert factor.D[118, 117] == 2
    apart = sp.lil_array((6, 6))
    apart.setdiag([0, 3, 4, 5, 0, 6])
    apart[0, 4] = apart[4, 0] = 7
    factor = gs.ldlt(canonical(apart), ordering="natural")
    check(canonical(apart), factor, [0, 4, 1, 2, 3, 5])


@pytest.mark.parametrize("dtype", "fD")
@pytest.mark.parametrize("A", [random_matrix(), gallery.poisson(30, 30), gallery.rlc_mesh(9, 9)])
def test_lu(A, dtype):
    A = phased(canonical(A), dtype)
    n = A.shape[0]
    for ordering, order in orders(n):
        for pivoting in ("auto", "partial"):
            check_lu(A, gs.splu(A, ordering=ordering, pivoting=pivoting), order)
        factor = gs.analyze(A, ordering=ordering).factor(A.data)
        check_lu(A, factor, order)
        factor.refactor(2 * A.data)
        check_lu(2 * A, factor, order)
    for how in ({"permc_spec": "NATURAL"}, {"options": {"ColPerm": "NATURAL"}}):
        check_lu(A, gs.splu(A, **how), np.arange(n))


def check_lu(A, lu, order):
    n = A.shape[0]
    np.testing.assert_array_equal(np.argsort(lu.perm_c), order)
    assert sp.triu(lu.L, 1).nnz == sp.tril(lu.U, -1).nnz == 0
    eps = EPS[A.dtype.char]
    rows = np.argsort(lu.perm_r)
    assert abs(lu.L @ lu.U - A[rows][:, order]).max() < 1e3 * eps * abs(A).max()
    b = rhs(n, A.dtype)
    assert backward_error(A, lu.solve(b), b) < 1e3 * eps
    assert backward_error(A, lu.apply_Pc(lu.solve_U(lu.solve_L(lu.apply_Pr(b)))), b) < 1e4 * eps
