"""Narrow staircases, as boundary value problems have them, are factored in their own order."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, rhs


def staircase(steps=40, size=4, dtype="d", seed=0, density=1.0):
    """Almost block diagonal: each step couples the unknowns of two neighbours, the last rows those of both ends."""
    rng = np.random.default_rng(seed)
    n = size * (steps + 1)
    A = np.zeros((n, n), dtype)

    def full(*shape):
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype in "FD" else 0)
        return np.where(rng.random(shape) < density, values, 0)

    for k in range(steps):
        A[k * size : (k + 1) * size, k * size : (k + 2) * size] = full(size, 2 * size)
    A[-size:, :size], A[-size:, -size:] = full(size, size), full(size, size)
    return sp.csc_array(A)


def core_of(lu):
    return lu.symbolic.parts()[1].core


def is_left(lu):
    return core_of(lu).ordering == "natural" and "matching" not in core_of(lu).stages


def is_solved(lu, A):
    b = rhs(A.shape[0], A.dtype)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, lu.solve(b, trans), b) < 100 * EPS[A.dtype.char]


@pytest.mark.parametrize("dtype", list("fdFD"))
@pytest.mark.parametrize("size", [2, 4, 6])
def test_staircases_keep_their_order(dtype, size):
    A = staircase(size=size, dtype=dtype)
    lu = gs.splu(A)
    assert is_left(lu)
    is_solved(lu, A)
    assert (lu.perm_c == np.arange(A.shape[0])).all()
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e3 * EPS[dtype] * abs(A).max()


@pytest.mark.parametrize("seed", range(10))
def test_no_more_fills_up_than_is_said(seed):
    A = staircase(size=5, seed=seed, density=0.8)
    lu = gs.splu(A)
    if is_left(lu):
        assert lu.L.nnz <= core_of(lu).lnz
        assert lu.L.nnz + lu.U.nnz <= 3 * A.nnz + A.shape[0]
    is_solved(lu, A)


def test_what_is_no_staircase_is_matched():
    A = staircase()
    n = A.shape[0]
    rng = np.random.default_rng(0)
    mixed = A[rng.permutation(n)][:, rng.permutation(n)]
    arrow = A.tolil()
    arrow[0] = arrow[:, 0] = 1  # near the diagonal it is, but everything fills up
    sizes = A * (10.0 ** rng.integers(-6, 6, n))[:, None]
    for B in (mixed, sp.csc_array(arrow), sp.csc_array(sizes), staircase(10)):
        B = sp.csc_array(B)
        lu = gs.splu(B)
        assert not is_left(lu)
        is_solved(lu, B)
    analyzed = gs.analyze(A)  # for any values and batches
    assert analyzed.ordering != "natural"


def test_no_pivot_in_a_column():
    A = staircase()
    without, zeros = A.tolil(), A.copy()
    without[:, 50] = 0
    zeros.data[zeros.indptr[50] : zeros.indptr[51]] = 0
    for B in (sp.csc_array(without), zeros):
        with pytest.raises(RuntimeError, match="exactly singular"):
            gs.splu(B)


def test_what_is_remembered_suits_values_of_rows_that_are_alike():
    gs.cache_clear()
    A = staircase()
    assert is_left(gs.splu(A))
    other = A.copy()
    other.data = staircase(seed=1).data
    again = gs.splu(other)
    assert again.symbolic.call == 1
    is_solved(again, other)
    rows = 10.0 ** np.random.default_rng(0).integers(-8, 8, A.shape[0])
    for index in (np.int32, np.int64):
        scaled = sp.csc_array(A * rows[:, None])
        scaled.indices, scaled.indptr = scaled.indices.astype(index), scaled.indptr.astype(index)
        lu = gs.splu(scaled)
        assert not is_left(lu)
        is_solved(lu, scaled)


def test_new_values_are_taken():
    A = staircase()
    lu = gs.splu(A)
    for seed in range(1, 6):
        B = A.copy()
        B.data = staircase(seed=seed).data
        lu.refactor(B.data)
        is_solved(lu, B)
