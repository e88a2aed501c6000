"""The factor behind the facade: right by default, and what it does when a fixed pivot order goes bad."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import _core
from gpusplu.common.timing import backward_error
from support.analyses import analyze, factor_canonical


def canonical(A, dtype=float):
    A = sp.csc_array(A, dtype=dtype)
    A.sum_duplicates()
    return A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data


def factor(A, *, method="auto", cholesky=False, dtype=float, ordering="auto", matching=True, **options):
    ptr, ind, values = canonical(A, dtype)
    symbolic = analyze(ptr, ind, values, method=method, cholesky=cholesky, ordering=ordering, matching=matching)
    return factor_canonical(
        symbolic, _core.canonical("csc", ptr.size - 1, ptr, ind.astype(np.int64)), values, **options
    )


def csc(parts, n):
    ptr, ind, values = parts
    return sp.csc_array((values, ind, ptr), shape=(n, n))


def grid(m, rng=None, unsymmetric=0.0):
    """Five-point matrix of an m x m grid, with random unsymmetric off-diagonal values on request."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(m, m))
    A = sp.csc_array(sp.kron(line, sp.eye_array(m)) + sp.kron(sp.eye_array(m), line))
    if rng is not None:
        A.data = A.data * (1 + unsymmetric * rng.standard_normal(A.nnz))
    return A


@pytest.mark.parametrize("method", ["column", "front"])
def test_refactor_repivots_when_the_old_pivots_go_bad(method):
    """Large entries move off the diagonal that was matched first: the old pivot order would lose all digits."""
    rng = np.random.default_rng(2)
    n = 300
    ring = np.roll(np.arange(n), 1)
    rows = np.concatenate([np.arange(n), ring, rng.integers(0, n, 4 * n)])
    cols = np.concatenate([np.arange(n), np.arange(n), rng.integers(0, n, 4 * n)])
    small = rng.uniform(0.5, 1.0, 4 * n) * 0.01

    def with_weights(diagonal, off_diagonal):
        values = np.concatenate([np.full(n, diagonal), np.full(n, off_diagonal), small])
        return sp.csc_array(sp.coo_array((values, (rows, cols)), shape=(n, n)))

    A, B = with_weights(1.0, 1e-3), with_weights(1e-14, 1.0)
    f = factor(A, method=method)
    f.refactor(B.data)
    b = rng.standard_normal(n)
    assert backward_error(B, f.solve(b), b) < 1e-14
    stats = f.stats()
    assert stats["n_reanalyzed"] + stats["n_repivoted"] >= 1


def test_fronts_that_cannot_be_certified_fall_back_to_partial_pivoting():
    """Without matching, zero diagonals leave the fronts no pivots of their own."""
    rng = np.random.default_rng(3)
    K = grid(6)
    n = K.shape[0]
    B = sp.random_array((n, n // 2), density=0.2, rng=rng, format="csc")
    B = B + sp.eye_array(n, n // 2)
    A = sp.csc_array(sp.block_array([[K, B], [B.T, None]]))
    f = factor(A, method="front", matching=False, ordering="amd")
    b = rng.standard_normal(A.shape[0])
    assert backward_error(A, f.solve(b), b) < 1e-14


@pytest.mark.parametrize("fresh", [True, False])
def test_column_lu_is_certified_whatever_the_threshold(fresh):
    """With a threshold that accepts any pivot, and on pivots that were kept, partial pivoting comes to help."""
    rng = np.random.default_rng(0)
    n = 30
    A = rng.uniform(-1, 1, (n, n))
    A[np.arange(n), np.arange(n)] *= 1e-14
    f = factor(A if fresh else A + 4 * np.eye(n), method="column", ordering="natural", pivot_threshold=0.0)
    if not fresh:
        f.refactor(sp.csc_array(A).data)
    b = np.ones(n)
    assert backward_error(A, f.solve(b), b) < 1e-14
    assert f.stats()["n_repivoted"] == (1 if fresh else 2)
    assert np.array_equal(f.col_perm, np.arange(n))  # the caller's


@pytest.mark.parametrize("seed", [4, 6, 8, 11])
def test_after_fronts_pivots_are_first_sought_as_columns_seek_them(seed):
    """A larger threshold costs fill, and fronts failed because they look in a part of each column only."""
    A = grid(12)
    A.data = np.random.default_rng(seed).choice([-1.0, 1.0], A.nnz)
    f, columns = factor(A, method="front"), factor(A, method="column")
    assert f.stats()["n_repivoted"] == 1
    assert f.lower()[0][-1] == columns.lower()[0][-1]
    b = np.ones(144)
    assert backward_error(A, f.solve(b), b) < 1e-14


def test_a_nearly_singular_laplacian_stays_with_fronts():
    """The last pivot is small because the matrix is so: it is not perturbed, and pivots need not be chosen anew."""
    line = sp.diags_array([-np.ones(29), np.r_[1.0, np.full(28, 2.0), 1.0], -np.ones(29)], offsets=[-1, 0, 1])
    A = sp.csc_array(sp.kron(line, sp.eye_array(30)) + sp.kron(sp.eye_array(30), line) + 1e-12 * sp.eye_array(900))
    f = factor(A, method="front")
    b = np.random.default_rng(7).standard_normal(900)
    assert backward_error(A, f.solve(b), b) < 1e-14
    stats = f.stats()
    assert stats["min_pivot"] < 1e-9
    assert stats["n_perturbed"] == stats["n_repivoted"] == 0


def measured(f, count, trans=0):
    """Of so many solves, which ones measure their backward errors."""
    rng = np.random.default_rng(count)
    found, before = [], f.backward_error
    for k in range(count):
        f.solve(rng.standard_normal(f.symbolic.n), trans)
        now = f.backward_error
        if now != before:
            found.append(k)
        before = now
    return found


def fair(seed):
    """A matrix whose errors are bounded by some hundred times the precision."""
    rng, n = np.random.default_rng(seed), 400
    diagonal = rng.uniform(0.1, 2, n) * 10.0 ** rng.integers(-1, 2, n)
    return sp.csc_array(sp.random_array((n, n), density=0.02, rng=rng) + sp.diags_array(diagonal))


def test_solves_are_measured_by_samples_where_the_bound_is_fair():
    A, eps, rng = fair(5), np.finfo(float).eps, np.random.default_rng(0)
    f = factor(A, method="front")
    assert 16 * eps < f.stats()["error_bound"] < eps ** (2 / 3)
    assert measured(f, 36) == [0, 1, 2, 3, 15, 31]  # the fifth was the known system
    f.refactor(A.data * 1.25)
    assert measured(f, 13) == [11]
    assert f.stats()["n_refinement"] == 0
    always = factor(A, method="front", refine="always")
    assert measured(always, 8) == list(range(8))
    assert measured(factor(grid(12, rng, 0.1), method="front"), 8) == [0]  # a good bound
    rows = np.logspace(0, 8, 400)  # no two of neighbours differ much
    f = factor(sp.diags_array(rows) @ grid(20, rng, 0.3) @ sp.diags_array(1 / rows), method="front")
    assert f.stats()["error_bound"] > eps ** (2 / 3)
    assert measured(f, 20) == list(range(20))


def test_nothing_follows_from_a_solve_that_had_to_be_refined():
    A = fair(5)
    f = factor(A, method="front")
    f.solve(A @ np.random.default_rng(0).choice((-1.0, 1.0), 400))
    assert f.stats()["n_refinement"] > 0
    assert measured(f, 18) == [0, 1, 2, 3, 15]


def test_nothing_follows_from_solutions_that_hide_errors():
    """Right-hand sides as they come make some unknowns much larger than others, beside which errors do not show."""
    f = factor(fair(18), method="front")
    assert measured(f, 18) == [0, 1, 2, 3, 15]
    assert measured(f, 4, 1) == [0, 1, 2, 3] and f.stats()["n_refinement"] > 0  # of the known system
    assert measured(f, 18, 1) == list(range(18))
    assert measured(f, 4) == []


def test_samples_begin_anew_where_the_bound_is_worse():
    A = fair(5)
    f = factor(A, method="front")
    measured(f, 4)
    before = f.stats()["error_bound"]
    f.refactor(A.data * (1 + 3 * np.random.default_rng(0).random(A.nnz)))
    assert f.stats()["error_bound"] > 3 * before and f.stats()["n_reanalyzed"] == 0
    assert measured(f, 6)[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [0, 1e-310])
def test_nothing_follows_from_a_solution_of_zeros(size):
    f = factor(grid(12, np.random.default_rng(0), 0.1), method="front")
    f.solve(np.full(144, size))
    assert measured(f, 8) == [0]
