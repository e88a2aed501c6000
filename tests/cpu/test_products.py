"""Products, residuals and backward errors against dense arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import _core, _core_testing

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random_matrix(n, density, dtype, seed=0):
    rng = np.random.default_rng(seed)
    matrix = sp.csc_array(sp.random_array((n, n), density=density, rng=rng).astype(dtype))
    matrix.sort_indices()
    if np.iscomplexobj(matrix.data):
        matrix.data = matrix.data + 1j * rng.standard_normal(matrix.nnz).astype(matrix.data.real.dtype)
    return matrix


def arrays_of(matrix):
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def op_of(matrix, trans):
    return {"N": matrix, "T": matrix.T, "H": matrix.conj().T}[trans]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("nrhs", [1, 3])
def test_small(dtype, trans, n, nrhs):
    matrix = random_matrix(n, 0.2, dtype)
    rng = np.random.default_rng(1)
    x, b = rng.standard_normal((2, n, nrhs)).astype(dtype)
    dense = op_of(matrix.toarray(), trans)
    eps = np.finfo(dtype).eps
    y = _core_testing.multiply(*arrays_of(matrix), trans, x.ravel(order="F"))
    assert np.abs(y.reshape(nrhs, n).T - dense @ x).max(initial=0) < 100 * eps
    r, errors = _core_testing.residual(*arrays_of(matrix), trans, x.ravel(order="F"), b.ravel(order="F"))
    assert r.dtype == dtype
    assert np.abs(r.reshape(nrhs, n).T - (b - dense @ x)).max(initial=0) < 100 * eps
    norm = np.abs(dense).sum(axis=1).max(initial=0)
    assert _core_testing.norm_inf(*arrays_of(matrix), trans) == pytest.approx(norm, rel=1e-6)
    for k in range(nrhs if n else 0):
        size = norm * np.abs(x[:, k]).max() + np.abs(b[:, k]).max()
        assert errors[k] == pytest.approx(np.abs(b - dense @ x)[:, k].max() / size, rel=1e-4)


@pytest.mark.parametrize("trans", ["N", "T"])
def test_backward_error_of_special_values(trans):
    arrays = arrays_of(sp.csc_array(np.array([[2.0, 1.0], [0.0, 4.0]])))
    zero = np.zeros(2)
    assert _core_testing.residual(*arrays, trans, zero, zero)[1] == [0.0]
    for dtype in DTYPES:  # norms keep NaN wherever it is
        for n, place in ((1, 0), (9, 0), (9, 4), (9, 8)):
            eye = arrays_of(sp.csc_array(np.eye(n, dtype=dtype)))
            x = np.ones(n, dtype)
            x[place] = np.nan
            assert np.isnan(_core_testing.residual(*eye, trans, x, np.ones(n, dtype))[1][0])
    for bad, check in ((np.nan, np.isnan), (np.inf, lambda e: e == np.inf or np.isnan(e))):
        for place in (0, 1):
            x = np.ones(2)
            x[place] = bad
            assert check(_core_testing.residual(*arrays, trans, x, np.ones(2))[1][0])
            assert check(_core_testing.residual(*arrays, trans, np.ones(2), x)[1][0])


def test_bad_trans():
    with pytest.raises(ValueError, match="trans must be N, T, or H"):
        _core_testing.multiply(*arrays_of(sp.csc_array(np.eye(1))), "X", np.ones(1))


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(3)
    n, nnz = 30_000, 1_200_000
    rows, cols = rng.integers(0, n, (2, nnz)).astype(np.int32)
    values = rng.standard_normal(nnz) + 1j * rng.standard_normal(nnz)
    matrix = sp.csc_array(sp.coo_array((values, (rows, cols)), shape=(n, n)))
    matrix.sort_indices()
    return matrix


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_threads_do_not_change_a_bit(large, trans):
    matrix = large
    rng = np.random.default_rng(2)
    x, b = rng.standard_normal((2, 60_000)).astype(complex)
    before = _core_testing.num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            _core_testing.set_num_threads(threads)
            r, errors = _core_testing.residual(*arrays_of(matrix), trans, x, b)
            results.append((r.tobytes(), errors, _core_testing.norm_inf(*arrays_of(matrix), trans)))
    finally:
        _core_testing.set_num_threads(before)
    assert results[0] == results[1] == results[2]
    assert np.abs(r[:30_000] - (b[:30_000] - op_of(matrix, trans) @ x[:30_000])).max() < 1e-11


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 40, 700])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_outer_products_on_a_pattern(dtype, n, count):
    matrix = random_matrix(n, 0.5, dtype)  # of 700 unknowns it is enough for several threads
    ptr, ind, _ = arrays_of(matrix)
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((2, count, n)).astype(dtype)
    entries = np.full(matrix.nnz, np.nan, dtype)
    _core.outer_entries(ptr, ind, left.ravel(), right.ravel(), entries)
    columns = np.repeat(np.arange(n), np.diff(ptr))
    expected = (right.T @ left)[ind, columns] if n and count else np.zeros(matrix.nnz)
    np.testing.assert_allclose(entries, expected, atol=20 * np.finfo(dtype).eps)


def test_outer_products_on_what_is_no_pattern():
    ptr, two = np.array([0, 1, 2]), np.ones(2)
    for row in (-1, 2):
        with pytest.raises(ValueError, match="a row is outside of the matrix"):
            _core.outer_entries(ptr, np.array([0, row], np.int32), two, two, np.empty(2))
    with pytest.raises(ValueError, match="right has 1 entries, not 2"):
        _core.outer_entries(ptr, np.array([0, 1], np.int32), two, np.ones(1), np.empty(2))
