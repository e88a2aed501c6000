"""Maximum product matching, and its scaling, against SciPy's dense and sparse oracles."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csgraph

from gpusplu import _core_testing

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def arrays(A):
    A = sp.csc_array(A)
    return A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data


def without_zeros(A):
    A = sp.csc_array(A, copy=True)
    A.eliminate_zeros()
    return A


def check_matching(A, row_of_col):
    """row_of_col names entries of A, each row at most once."""
    matched = np.flatnonzero(row_of_col >= 0)
    assert np.unique(row_of_col[matched]).size == matched.size
    pattern = sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    assert all(pattern[row_of_col[j], j] for j in matched)
    return matched.size


def match(A, least=0.499):
    """Runs the matching and checks everything that must hold for every matrix; `least` bounds matched moduli."""
    A = sp.csc_array(A)
    n = A.shape[0]
    rank, row_of_col, row_scale, col_scale = _core_testing.max_product_matching(*arrays(A))
    assert row_of_col.dtype == np.int32 and row_scale.dtype == col_scale.dtype == np.float64
    entries = without_zeros(A)
    assert check_matching(entries, row_of_col) == rank
    assert rank == (csgraph.structural_rank(sp.csr_array(entries)) if n else 0)
    for scale in (row_scale, col_scale):
        assert scale.shape == (n,) and np.all(np.frexp(scale)[0] == 0.5)
    if rank < n:
        assert np.all(row_scale == 1) and np.all(col_scale == 1)
    elif n:
        modulus = np.abs(entries.data.astype(np.complex128))
        cols = np.repeat(np.arange(n), np.diff(entries.indptr))
        scaled = modulus * row_scale[entries.indices] * col_scale[cols]
        # scales beyond the range of the type are cut off, which leaves no entry larger than it was, or than 1
        top = 2.0 ** (np.finfo(A.dtype).maxexp - 2)
        stopped = np.isin(row_scale[entries.indices], (top, 1 / top)) | np.isin(col_scale[cols], (top, 1 / top))
        assert scaled[~stopped].max(initial=0) <= 2.001
        assert np.all(scaled / 2.001 <= np.maximum(1, modulus))
        assert scaled[(entries.indices == row_of_col[cols]) & ~stopped].min(initial=1) >= least
    return row_of_col


def log_product(A, row_of_col):
    return np.log2(np.abs(A.toarray()[row_of_col, np.arange(A.shape[0])])).sum()


def check_optimal(A):
    row_of_col = match(A)
    dense = np.abs(sp.csc_array(A).toarray())
    cost = np.full(dense.shape, 1e9)
    cost[dense > 0] = -np.log2(dense[dense > 0])
    rows, cols = linear_sum_assignment(cost)
    if cost[rows, cols].max() < 1e9:
        assert log_product(A, row_of_col) >= -cost[rows, cols].sum() - 3e-5 * A.shape[0]


def random_matrix(seed, n, density, spread, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = (
        sp.random_array((n, n), density=density, random_state=rng, format="csc")
        + sp.eye_array(n, format="csc")[rng.permutation(n)]
    )
    A.data = np.exp(spread * rng.standard_normal(A.nnz)) * rng.choice([-1, 1], A.nnz)
    A = A.astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        A.data *= np.exp(2j * np.pi * rng.random(A.nnz)).astype(dtype)
    return sp.csc_array(A)


@pytest.mark.parametrize("value", [1.0, -3.0, 1e-310, 1e308, 2.0**-1074])
def test_one_by_one(value):
    assert match(sp.csc_array([[value]])).tolist() == [0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.03, 0.1, 0.5])
@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0])
def test_optimal(dtype, density, spread):
    for seed in range(4):
        check_optimal(random_matrix(seed, 40, density, spread, dtype))


def test_spd_diagonal_is_kept():
    B = random_matrix(5, 50, 0.1, 2.0)
    A = sp.csc_array(B @ B.T + 1e-3 * sp.eye_array(50))
    assert np.array_equal(match(A), np.arange(50))


def test_hard_to_match():
    """A saddle point matrix in random units: searches get long, and the costs are rounded to whole bits."""
    k = 50
    laplace = sp.diags_array([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], offsets=[-1, 0, 1])
    laplace = sp.kronsum(laplace, laplace)
    step = sp.diags_array([np.ones(k), -np.ones(k - 1)], offsets=[0, -1])
    gradient = [sp.kron(sp.eye_array(k), step), sp.kron(step, sp.eye_array(k))]
    A = sp.block_array(
        [[laplace, None, gradient[0]], [None, laplace, gradient[1]], [gradient[0].T, gradient[1].T, None]]
    )
    rng = np.random.default_rng(0)
    scale = [sp.diags_array(10.0 ** rng.uniform(-3, 3, A.shape[0])) for _ in range(2)]
    A = sp.csc_array(scale[0] @ A @ scale[1])
    row_of_col = match(A, least=0.249)
    assert np.array_equal(row_of_col, match(A, least=0.249))


@st.composite
def square(draw):
    n = draw(st.integers(1, 12))
    entries = draw(
        st.lists(
            st.tuples(
                st.integers(0, n - 1),
                st.integers(0, n - 1),
                st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 1e-20, 1e20, 1e-320, 7e-5]),
            ),
            max_size=4 * n,
        )
    )
    unique = {(i, j): v for i, j, v in entries}
    rows, cols = np.array(list(unique), dtype=int).reshape(-1, 2).T
    return sp.csc_array(sp.coo_array((np.array(list(unique.values())), (rows, cols)), shape=(n, n)))


@given(square())
@settings(max_examples=150, deadline=None)
def test_any_matrix(A):
    check_optimal(A)


@given(square())
@settings(max_examples=150, deadline=None)
def test_any_pattern_of_ones(A):
    A.data[:] = 1
    match(A)


def test_long_paths():
    """Every column but the last takes its diagonal, and the last one has to shift them all."""
    n = 3000
    A = sp.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, 1]).tolil()
    A[n - 1, n - 1] = 0
    A[0, n - 1] = 1
    A[n - 1, 0] = 1
    A = without_zeros(A.T.tocsc())
    assert check_matching(A, match(A)) == n


@pytest.mark.parametrize("name", ["arc130", "rajat19", "bp_1000", "mbeacxc", "young1c", "bayer10", "memplus"])
def test_real(real_matrix, name):
    A = real_matrix(name)
    row_of_col = match(A)
    if A.shape[0] < 1500:
        check_optimal(A)
    assert np.array_equal(row_of_col, match(A))
