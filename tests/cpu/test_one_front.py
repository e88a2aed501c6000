"""Matrices of which almost nothing is zero: one front, nothing matched before."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, rhs


def full(n=60, dtype="d", seed=0, zeros=0.1):
    """Some entries are zero, the diagonal among them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype in "FD" else 0)
    A[rng.random((n, n)) < zeros] = 0
    np.fill_diagonal(A, 0)
    return sp.csc_array(A.astype(dtype))


def is_solved(lu, A):
    b = rhs(A.shape[0], A.dtype)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, lu.solve(b, trans), b) < 100 * EPS[A.dtype.char]


@pytest.mark.parametrize("dtype", list("fdFD"))
@pytest.mark.parametrize("n", [32, 60, 300])
def test_nothing_is_matched_and_all_rows_may_be_pivots(n, dtype):
    A = full(n, dtype)
    lu = gs.splu(A)
    core = lu.symbolic.parts()[1].core
    assert core.super_ptr.size == 2 and "matching" not in core.stages
    is_solved(lu, A)
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e3 * EPS[dtype] * abs(A).max()
    lu.refactor(full(n, dtype, seed=1, zeros=0).toarray()[A.nonzero()])
    assert lu.stats.n_reanalyzed == 0


def test_sparser_and_smaller_ones_are_matched():
    for A in (full(60, zeros=0.3), full(31)):
        assert "matching" in gs.splu(A).symbolic.parts()[1].core.stages


def hessenberg(n, seed=0):
    """Half of it, the diagonal above what is small enough to be no pivot."""
    A = np.triu(np.random.default_rng(seed).standard_normal((n, n)), -1)
    A[np.arange(1, n), np.arange(n - 1)] += 10
    return A


@pytest.mark.parametrize("n", [50, 200])
def test_half_of_the_entries_are_one_front_where_nothing_falls_apart(n):
    A = sp.csc_array(hessenberg(n))
    lu = gs.splu(A)
    core = lu.symbolic.parts()[1].core
    assert core.super_ptr.size == 2 and "matching" not in core.stages
    is_solved(lu, A)


def test_half_of_the_entries_are_no_front_where_little_is_to_be_done():
    triangle = np.triu(hessenberg(100))
    turned = hessenberg(100)[:, ::-1]  # half of the diagonal is missing
    for A in map(sp.csc_array, (triangle, turned, hessenberg(300))):
        lu = gs.splu(A)
        assert lu.symbolic.method == "column"
        is_solved(lu, A)
    assert lu.symbolic.ordering == "natural"  # in its own order nothing fills up


@pytest.mark.parametrize("side", ["rows", "columns", "both"])
def test_scales_of_many_sizes(side):
    rng = np.random.default_rng(0)
    sizes = [sp.diags_array(10.0 ** rng.integers(-12, 12, 60)) for _ in range(2)]
    A = full()
    if side != "columns":
        A = sizes[0] @ A
    if side != "rows":
        A = A @ sizes[1]
    A = sp.csc_array(A)
    lu = gs.splu(A)
    is_solved(lu, A)
    assert lu.stats.n_perturbed == 0


def test_what_is_remembered_suits_other_values_of_that_size():
    gs.cache_clear()
    A = full(zeros=0)
    for seed in range(4):
        other = A.copy()
        other.data[:] = np.random.default_rng(seed).standard_normal(A.nnz)
        is_solved(gs.splu(other), other)
        x = gs.spsolve(other, rhs(60))
        assert backward_error(other, x, rhs(60)) < 100 * EPS["d"]
    assert gs.cache_info().misses == 1
    huge = A * 1e40
    is_solved(gs.splu(huge), huge)


@pytest.mark.parametrize("what", ["zero column", "zero row", "one row twice", "all ones"])
def test_singular_ones_are_refused(what):
    A = full(zeros=0).toarray()
    np.fill_diagonal(A, 1)
    if what == "zero column":
        A[:, 7] = 0
    elif what == "zero row":
        A[7] = 0
    elif what == "one row twice":
        A[7] = A[8]
    else:
        A[:] = 1
    pattern = sp.csc_array(np.ones((60, 60)))
    with pytest.raises(RuntimeError, match="singular"):
        gs.splu(sp.csc_array((A.T.ravel(), pattern.indices, pattern.indptr)))
