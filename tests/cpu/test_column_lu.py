"""The column LU by itself: against dense arithmetic and SciPy, one pathology a test."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

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
    return getattr(_core_testing, f"ColumnLU_{A.dtype.char}")(
        A.indptr.astype(np.int64),
        A.indices.astype(np.int32),
        identity if row_perm is None else np.asarray(row_perm, dtype=np.int32),
        identity if col_perm is None else np.asarray(col_perm, dtype=np.int32),
        np.asarray([0, n] if blocks is None else blocks, dtype=np.int32),
        np.asarray(row_scale, dtype=float),
        np.asarray(col_scale, dtype=float),
    )


def analysed(A, scaled=False):
    """Block triangular form with reverse Cuthill-McKee inside the blocks: any valid analysis will do here."""
    pattern = sp.csr_array(sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape))
    matching = csgraph.maximum_bipartite_matching(pattern, perm_type="row")
    B = pattern[matching]
    n_blocks, label = csgraph.connected_components(B, directed=True, connection="strong")
    # topological order of the components: an edge i -> j (entry in row i, column j) puts i's block first
    coo = sp.coo_array(B)
    graph = sp.csr_array((np.ones(coo.nnz), (label[coo.row], label[coo.col])), shape=(n_blocks, n_blocks))
    graph.setdiag(0)
    graph.eliminate_zeros()
    incoming, order = graph.astype(bool).astype(int).sum(axis=0), []
    ready = [k for k in range(n_blocks) if incoming[k] == 0]
    while ready:
        k = ready.pop()
        order.append(k)
        for j in graph.indices[graph.indptr[k] : graph.indptr[k + 1]]:
            incoming[j] -= 1
            if incoming[j] == 0:
                ready.append(j)
    place = np.empty(n_blocks, dtype=int)
    place[order] = np.arange(n_blocks)
    rcm = np.empty(len(label), dtype=int)
    rcm[csgraph.reverse_cuthill_mckee(B)] = np.arange(len(label))
    col_perm = np.lexsort((rcm, place[label]))
    sizes = np.bincount(place[label], minlength=n_blocks)
    scales = {}
    if scaled:
        largest = abs(A).max(axis=1).toarray().ravel()
        scales["row_scale"] = np.exp2(-np.round(np.log2(largest)))
        largest = (sp.diags_array(scales["row_scale"]) @ abs(A)).max(axis=0).toarray().ravel()
        scales["col_scale"] = np.exp2(-np.round(np.log2(largest)))
    return column_lu(A, matching[col_perm], col_perm, np.concatenate([[0], np.cumsum(sizes)]), **scales)


def solve(lu, A, b, trans="N"):
    rhs = np.ascontiguousarray(np.atleast_2d(b.T), dtype=A.dtype)
    x = np.empty_like(rhs)
    lu.solve(rhs, x, trans)
    return x.T.reshape(b.shape)


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


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("n_rhs", [1, 3, 17])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solves_in_every_type_and_orientation(dtype, n_rhs, trans):
    A = random_matrix(150, 0.03, dtype=dtype)
    lu = analysed(A, scaled=True)
    assert lu.factor(A.data)["status"] == "ok"
    rng = np.random.default_rng(1)
    b = rng.standard_normal((150, n_rhs)) + (1j * rng.standard_normal((150, n_rhs)) if dtype in "FD" else 0)
    b = b.astype(dtype)
    for _ in range(2):
        x = solve(lu, A, b, trans)
        assert backward_error(TRANS[trans](A), x, b) < 30 * np.finfo(dtype).eps
        assert lu.refactor(A.data)["status"] == "ok"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threshold", [0.0, 0.001, 0.1, 1.0])
def test_factors_multiply_to_the_permuted_matrix(dtype, threshold):
    A = random_matrix(120, 0.04, seed=3, dtype=dtype)
    tolerance = 500 * np.finfo(dtype).eps
    for scaled in (False, True):
        lu = analysed(A, scaled)
        info = lu.factor(A.data, threshold)
        check_factors(lu, A, tolerance)
        if threshold > 0:  # |re| + |im| may exceed the modulus by sqrt(2)
            assert info["max_multiplier"] <= 2 / threshold
        assert lu.refactor(A.data)["status"] == "ok"
        check_factors(lu, A, tolerance)


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


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_column_of_zeros_is_singular(dtype):
    A = random_matrix(30, 0.1, dtype=dtype)
    A.data[A.indptr[7] : A.indptr[8]] = 0
    col_perm = np.random.default_rng(0).permutation(30)
    lu = column_lu(A, col_perm, col_perm)
    info = lu.factor(A.data)
    assert (info["status"], info["column"]) == ("singular", 7)
    with pytest.raises(RuntimeError, match="factor"):
        lu.refactor(A.data)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_reported(bad):
    A = random_matrix(40, 0.1)
    lu = column_lu(A)
    values = A.data.copy()
    values[A.nnz // 2] = bad
    assert lu.factor(values)["status"] == "not_finite"
    assert lu.factor(A.data)["status"] == "ok"
    assert lu.refactor(values)["status"] == "not_finite"
    assert lu.refactor(A.data)["status"] == "ok"  # the failure left nothing behind
    b = np.ones(40)
    assert backward_error(A, solve(lu, A, b), b) < 1e-15


def test_refactor_agrees_with_factor_and_follows_new_values():
    A = random_matrix(300, 0.02, seed=2)
    lu = analysed(A, scaled=True)
    first = lu.factor(A.data)
    L, U = extracted(lu, 300)
    again = lu.refactor(A.data)
    L2, U2 = extracted(lu, 300)
    assert abs(L - L2).max() < 1e-12 * abs(L).max() and abs(U - U2).max() < 1e-12 * abs(U).max()
    for key in ("min_pivot", "max_pivot", "pivot_growth", "max_multiplier"):
        assert again[key] == pytest.approx(first[key], rel=1e-9)
    B = A.copy()
    B.data *= np.random.default_rng(9).uniform(0.5, 1.5, B.nnz)
    assert lu.refactor(B.data)["status"] == "ok"
    check_factors(lu, B, 1e-13)


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


def test_wide_nodes_of_a_dense_matrix():
    for n in (1, 2, 3, 5, 8, 13, 40):
        A = sp.csc_array(np.random.default_rng(n).standard_normal((n, n)))
        lu = column_lu(A)
        lu.factor(A.data, 1.0)
        lu.refactor(A.data)
        check_factors(lu, A, 1e-14)


def test_threads_do_not_change_a_bit(real_matrix):
    A = real_matrix("case_ACTIVSg10k_nrjac")
    A.sort_indices()
    order = csgraph.reverse_cuthill_mckee(sp.csr_array(A))
    b, results = np.ones(A.shape[0]), []
    try:
        for threads in (1, 2, 3):
            _core_testing.set_num_threads(threads)
            lu = column_lu(A, order, order)
            lu.factor(A.data)
            for _ in range(3):
                assert lu.refactor(A.data)["status"] == "ok"
            results.append(solve(lu, A, b))
    finally:
        _core_testing.set_num_threads(0)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


@pytest.mark.parametrize("ends", [1, 2])
def test_threads_do_not_change_a_bit_of_chains(ends):
    """A line that is eliminated from one end is a chain, which one thread factors; from both it is two, one each."""
    n = 20_000
    rng = np.random.default_rng(ends)
    A = sp.csc_array(sp.diags_array([rng.random(n - 1), 3 + rng.random(n), rng.random(n - 1)], offsets=[-1, 0, 1]))
    order = np.arange(n, dtype=np.int32)
    if ends == 2:
        order = np.r_[order[: n // 2], order[: n // 2 - 1 : -1]].reshape(2, -1).T.ravel().copy()
    b, results = np.ones(n), []
    try:
        for threads in (1, 2, 3):
            _core_testing.set_num_threads(threads)
            lu = column_lu(A, order, order)
            lu.factor(A.data)
            for _ in range(3):
                assert lu.refactor(2 * A.data)["status"] == "ok"
            results.append(solve(lu, A, b))
    finally:
        _core_testing.set_num_threads(0)
    assert backward_error(2 * A, results[0], b) < 1e-15
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_a_team_reports_the_same_failure_and_recovers(real_matrix):
    A = real_matrix("case_ACTIVSg10k_nrjac")
    A.sort_indices()
    order = csgraph.reverse_cuthill_mckee(sp.csr_array(A))
    lu = column_lu(A, order, order)
    lu.factor(A.data)
    bad = A.data.copy()
    column = lu.col_perm()[A.shape[0] // 3]
    bad[A.indptr[column] : A.indptr[column + 1]] = 0
    try:
        _core_testing.set_num_threads(1)
        expected = lu.refactor(bad)
        _core_testing.set_num_threads(2)
        for _ in range(3):
            assert lu.refactor(bad) == expected and expected["status"] in ("singular", "bad_growth")
        assert lu.refactor(A.data)["status"] == "ok"
    finally:
        _core_testing.set_num_threads(0)
    b = np.ones(A.shape[0])
    assert backward_error(A, solve(lu, A, b), b) < 1e-12


@pytest.mark.parametrize("name", ["arc130", "add20", "rajat19", "bp_1000", "adder_dcop_05", "memplus"])
def test_real_matrices(real_matrix, name):
    A = real_matrix(name)
    A.sort_indices()
    lu = analysed(A, scaled=True)
    assert lu.factor(A.data)["status"] == "ok"
    assert lu.refactor(A.data)["status"] == "ok"
    b = A @ np.ones(A.shape[0])
    for trans in "NT":
        assert backward_error(TRANS[trans](A), solve(lu, A, b, trans), b) < 1e-14


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 24),
    density=st.floats(0, 0.6),
    seed=st.integers(0, 10**6),
    threshold=st.sampled_from([0.001, 0.1, 1.0]),
    dtype=st.sampled_from(DTYPES),
)
def test_any_pattern(n, density, seed, threshold, dtype):
    A = random_matrix(n, density, seed, dtype)
    lu = analysed(A, scaled=bool(seed % 2))
    assert lu.factor(A.data, threshold)["status"] == "ok"
    check_factors(lu, A, 2000 * np.finfo(dtype).eps / min(threshold, 0.1))
    assert lu.refactor(A.data)["status"] == "ok"
    check_factors(lu, A, 2000 * np.finfo(dtype).eps / min(threshold, 0.1))


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
