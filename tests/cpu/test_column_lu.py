"""The column LU by itself: against dense arithmetic and SciPy, one pathology a test."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core_testing
from gpusplu.common.timing import backward_error

DTYPES = "fdFD"
TRANS = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}


def random_matrix(n, density, seed=0, dtype="d", diagonal=True):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csc")
    A.data = rng.uniform(-1, 1, A.nnz)
    if dtype in "FD":
        A = A + 1j * sp.csc_array((rng.uniform(-1, 1, A.nnz), A.indices, A.indptr), shape=A.shape)
    if diagonal:
        A = A + sp.diags_array(rng.uniform(1, 2, n) * rng.choice([-1, 1], n))
    A = sp.csc_array(A).astype(dtype)
    A.sum_duplicates()
    A.sort_indices()
    return A


def column_lu(A, row_perm=None, col_perm=None, blocks=None, row_scale=(), col_scale=()):
    n = A.shape[0]
    identity = np.arange(n, dtype=np.int32)
    return _core_testing.column_lu(
        A.dtype.char,
        A.indptr.astype(np.int64),
        A.indices.astype(np.int32),
        identity if row_perm is None else np.asarray(row_perm, dtype=np.int32),
        identity if col_perm is None else np.asarray(col_perm, dtype=np.int32),
        np.asarray([0, n] if blocks is None else blocks, dtype=np.int32),
        np.asarray(row_scale, dtype=float),
        np.asarray(col_scale, dtype=float),
    )


def solve(lu, A, b, trans="N"):
    return lu.solve(b.astype(A.dtype).ravel(order="F"), trans).reshape(b.shape, order="F")


def extracted(lu, n):
    return tuple(sp.csc_array(part[::-1], shape=(n, n)) for part in (lu.lower(), lu.upper()))


def check_factors(lu, A, tolerance):
    n = A.shape[0]
    L, U = extracted(lu, n)
    rows, cols = lu.row_perm(), lu.col_perm()
    assert sorted(rows) == sorted(cols) == list(range(n))
    assert (L.diagonal() == 1).all()
    assert sp.triu(L, 1).nnz == 0 and sp.tril(U, -1).nnz == 0
    assert np.array_equal(U.diagonal(), lu.diagonal())
    for factor in (L, U):
        assert all((np.diff(factor.indices[a:b]) > 0).all() for a, b in pairwise(factor.indptr))
    difference = abs(L @ U - A[rows][:, cols]).max()
    assert difference <= tolerance * (abs(L) @ abs(U)).max()


def test_block_triangular_form_keeps_entries_above_the_blocks():
    rng = np.random.default_rng(0)
    blocks = [0, 1, 2, 12, 13, 40, 41]
    dense = np.triu(rng.uniform(-1, 1, (41, 41)) * (rng.random((41, 41)) < 0.3))
    for a, b in pairwise(blocks):
        dense[a:b, a:b] = rng.uniform(-1, 1, (b - a, b - a)) + 3 * np.eye(b - a)
    A = sp.csc_array(dense)
    row_scale, col_scale = np.exp2(rng.integers(-3, 4, 41)), np.exp2(rng.integers(-3, 4, 41))
    lu = column_lu(A, blocks=blocks, row_scale=row_scale, col_scale=col_scale)
    assert lu.factor(A.data, 1.0)["status"] == "ok"
    check_factors(lu, A, 1e-14)
    for trans in "NT":
        b = rng.standard_normal((41, 2))
        assert backward_error(TRANS[trans](A), solve(lu, A, b, trans), b) < 1e-15


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scaled", [False, True])
def test_blocks_of_order_1(dtype, scaled):
    rng = np.random.default_rng(3)
    A = sp.csc_array(sp.triu(random_matrix(30, 0.3, dtype=dtype), format="csc"))
    A.sort_indices()
    scales = [np.exp2(rng.integers(-3, 4, 30)) for _ in range(2)] if scaled else ((), ())
    lu = column_lu(A, blocks=range(31), row_scale=scales[0], col_scale=scales[1])
    info = lu.factor(A.data, 1.0)
    scaled_by = np.outer(*scales) if scaled else np.ones((30, 30))
    pivots = abs(A.toarray() * scaled_by).diagonal()
    assert (info["status"], info["flops"], info["max_multiplier"]) == ("ok", 0, 0)
    if dtype in "fd":
        assert (info["min_pivot"], info["max_pivot"]) == (pivots.min(), pivots.max())
    assert (lu.nnz_lower, lu.nnz_upper) == (30, A.nnz)
    check_factors(lu, A, 10 * np.finfo(dtype).eps)
    lu.refactor(2 * A.data)
    b = rng.standard_normal(30).astype(dtype)
    assert backward_error(2 * A, solve(lu, A, b, "N"), b) < 10 * np.finfo(dtype).eps
    for bad, status in ((0, "singular"), (np.inf, "not_finite"), (np.nan, "not_finite"), (1e-320, "not_finite")):
        values = A.data.astype("D" if dtype in "FD" else "d")
        values[A.indptr[18] - 1] = bad if dtype in "dD" or bad != 1e-320 else 1e-45
        info = lu.factor(values.astype(dtype), 1.0)
        assert (info["status"], info["column"]) == (status, 17), bad


def test_refactor_reports_a_stale_pivot_order():
    A = random_matrix(60, 0.1, seed=4)
    lu = column_lu(A)
    lu.factor(A.data)
    values = A.data.copy()
    pivot = lu.row_perm()[0]
    values[A.indptr[0] : A.indptr[1]][A.indices[A.indptr[0] : A.indptr[1]] == pivot] = 1e-9
    info = lu.refactor(values)
    assert info["status"] == "bad_growth" and info["max_multiplier"] > 1e3
    values[A.indptr[0] : A.indptr[1]][A.indices[A.indptr[0] : A.indptr[1]] == pivot] = 0
    info = lu.refactor(values)
    assert (info["status"], info["column"]) == ("singular", 0)
    assert lu.factor(values)["status"] == "ok"


@pytest.mark.parametrize("ends", [1, 2])
def test_threads_do_not_change_a_bit_of_chains(ends, threads):
    """A line that is eliminated from one end is a chain, which one thread factors; from both it is two, one each."""
    n = 20_000
    rng = np.random.default_rng(ends)
    A = sp.csc_array(sp.diags_array([rng.random(n - 1), 3 + rng.random(n), rng.random(n - 1)], offsets=[-1, 0, 1]))
    order = np.arange(n, dtype=np.int32)
    if ends == 2:
        order = np.r_[order[: n // 2], order[: n // 2 - 1 : -1]].reshape(2, -1).T.ravel().copy()
    b, results = np.ones(n), []
    for count in (1, 2, 3):
        threads(count)
        lu = column_lu(A, order, order)
        lu.factor(A.data)
        for _ in range(3):
            assert lu.refactor(2 * A.data)["status"] == "ok"
        results.append(solve(lu, A, b))
    assert backward_error(2 * A, results[0], b) < 1e-15
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def grid_in_strips(side):
    """The five-point pattern of a grid, with its columns of points by halves: each is above those it divides."""
    columns = sorted(range(side), key=lambda k: (k + 1) & -(k + 1))
    order = np.concatenate([np.arange(side) * side + k for k in columns])
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    return sp.csc_array(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))[order][:, order]


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_share_solves(dtype, threads):
    """Two large blocks, each with entries above it, between small ones."""
    rng = np.random.default_rng(0)
    grid = grid_in_strips(24)
    n, blocks = 2 * 576 + 6, [0, 1, 2, 578, 579, 580, 1156, 1157, 1158]
    A = sp.block_diag([sp.eye_array(2), grid, sp.eye_array(2), grid, sp.eye_array(2)], format="csc")
    A = sp.csc_array(A + sp.triu(sp.random_array((n, n), density=0.002, rng=rng), 1)).astype(dtype)
    A.sort_indices()
    A.data[:] = rng.uniform(-1, 1, A.nnz) + (1j * rng.uniform(-1, 1, A.nnz) if dtype in "FD" else 0)
    A.setdiag(8)
    order = np.arange(n, dtype=np.int32)
    lu = column_lu(A, order, order, blocks)
    assert lu.factor(A.data)["status"] == lu.refactor(A.data)["status"] == "ok"
    for nrhs in (1, 5, 20):
        b = rng.standard_normal((n, nrhs)).astype(dtype)
        for trans in TRANS:
            found = []
            for count in (1, 2, 3, 16):
                threads(count)
                found += [solve(lu, A, b, trans) for _ in range(5)]
            assert backward_error(TRANS[trans](A), found[0], b) < 10 * np.finfo(dtype).eps
            assert all(x.tobytes() == found[0].tobytes() for x in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_refactor_sees_multipliers_inside_a_node(dtype):
    """Columns taken together keep their part of L in a dense block."""
    A = sp.csc_array(np.array([[4, 1, 1, 1], [1, 4, 1, 1], [1, 1, 4, 1], [1, 1, 1, 4]], dtype))
    lu = column_lu(A)
    assert lu.factor(A.data)["max_multiplier"] == lu.refactor(A.data)["max_multiplier"] == 0.25
    A[0, 0] = 1e-5
    info = lu.refactor(A.data)
    assert info["status"] == "bad_growth"
    assert info["max_multiplier"] > 9e4


def sparse_circuit(n, dtype):
    """A tree with some chords, where a tenth of the edges have one direction: hardly any fill, and several blocks."""
    rng = np.random.default_rng(n)
    tail = np.r_[np.arange(1, n), rng.integers(0, n, n // 16)]
    head = np.r_[rng.integers(0, np.arange(1, n)), rng.integers(0, n, n // 16)]
    both = rng.random(tail.size) < 0.9
    rows, cols = np.r_[tail, head[both]], np.r_[head, tail[both]]
    values = rng.uniform(-1, 1, rows.size) + (1j * rng.uniform(-1, 1, rows.size) if dtype in "FD" else 0)
    off = sp.coo_array((values, (rows, cols)), shape=(n, n))
    return sp.csc_array(off + sp.diags_array(abs(off).sum(axis=0) + 1)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [300, 1500])
def test_many_refactorizations_give_the_same_bits(dtype, n):
    """After some of them the core may compute a very sparse factor entry by entry."""
    A = sparse_circuit(n, dtype)
    rng = np.random.default_rng(1)
    values = [A.data * rng.uniform(0.9, 1.1, A.nnz).astype(A.data.real.dtype) for _ in range(3)]
    early, late = gs.splu(A, engine="cpu"), gs.splu(A, engine="cpu")
    for k in range(40):
        late.refactor(values[k % 3])
    for new in values:
        early.refactor(new)
        late.refactor(new)
        for one, other in ((early.L, late.L), (early.U, late.U)):
            assert np.array_equal(one.indices, other.indices) and np.array_equal(one.data, other.data)
        b = np.ones(n, dtype)
        assert np.array_equal(early.solve(b), late.solve(b))
    with pytest.raises(RuntimeError, match="singular"):
        late.refactor(np.zeros_like(A.data))
    late.refactor(values[0])
    early.refactor(values[0])
    assert np.array_equal(early.solve(b), late.solve(b))
