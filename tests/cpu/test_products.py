"""Products, residuals and backward errors against dense arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import _core_testing

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
