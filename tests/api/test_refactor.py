"""refactor(): new values in the caller's own order, and values that are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix

ORDERS = {
    "csc": lambda A: sp.csc_array(A),
    "csr": lambda A: sp.csr_array(A),
    "coo": lambda A: sp.coo_array(A),
    "bsr": lambda A: sp.bsr_array(A, blocksize=(2, 2)),
    "csr_matrix": lambda A: sp.csr_matrix(A),
}


@pytest.mark.filterwarnings("ignore:splu converted")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", "fD")
def test_refactor_takes_values_in_the_order_of_A_data(order, dtype):
    A = ORDERS[order](random_matrix(dtype=dtype))
    lu, b = gs.splu(A), rhs(60, dtype)
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        A.data = (A.data * (1 + 0.1 * rng.random(A.data.shape))).astype(A.dtype)
        lu.refactor(A.data)
        assert backward_error(A, lu.solve(b), b) < 50 * EPS[dtype]
        product = (lu.L @ lu.U)[lu.perm_r][:, lu.perm_c].toarray()
        assert abs(product - A.toarray()).max() < 100 * EPS[dtype] * abs(A.data).max()
    assert lu.stats.n_refactor == 2


@pytest.mark.filterwarnings("ignore:splu converted")
@pytest.mark.parametrize("order", ["coo", "csc", "csr"])
def test_refactor_sums_duplicates(order):
    A = sp.coo_array(random_matrix())
    rng = np.random.default_rng(3)
    shuffle = rng.permutation(2 * A.nnz)
    row, col = np.tile(A.row, 2)[shuffle], np.tile(A.col, 2)[shuffle]
    data = np.tile(A.data / 2, 2)[shuffle]
    if order == "coo":
        D = sp.coo_array((data, (row, col)), shape=A.shape)
    else:
        major, minor = (col, row) if order == "csc" else (row, col)
        by_major = np.argsort(major, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(major, minlength=60)))
        D = (sp.csc_array if order == "csc" else sp.csr_array)((data[by_major], minor[by_major], indptr), A.shape)
    lu, b = gs.splu(D), rhs(60)
    D.data = D.data * (1 + rng.random(D.data.size))
    lu.refactor(D.data)
    assert backward_error(D, lu.solve(b), b) < 50 * EPS["d"]


@pytest.mark.filterwarnings("ignore:splu converted")
def test_refactor_takes_a_matrix_in_any_format():
    A = random_matrix()
    b = rhs(60)
    for make in ORDERS.values():
        lu = gs.splu(A)
        M = make(A * 3.0)
        if M.format == "bsr":
            M = sp.csc_array(M)
            M.eliminate_zeros()
        lu.refactor(M)
        assert backward_error(3 * A, lu.solve(b), b) < 50 * EPS["d"]
    lu.refactor((A * 2).toarray())
    assert backward_error(2 * A, lu.solve(b), b) < 50 * EPS["d"]


def test_refactor_upcasts_and_takes_lists():
    A = random_matrix()
    lu, b = gs.splu(A), rhs(60)
    lu.refactor(A.data.astype("f"))
    assert backward_error(A.astype("f"), lu.solve(b), b) < 50 * EPS["d"]
    lu.refactor(list(A.data * 2))
    assert backward_error(2 * A, lu.solve(b), b) < 50 * EPS["d"]
    lu.refactor(np.repeat(A.data, 2)[::2])
    assert backward_error(A, lu.solve(b), b) < 50 * EPS["d"]


def test_refactor_does_not_lose_precision():
    A = random_matrix(dtype="f")
    lu = gs.splu(A)
    for values in (A.data.astype("d"), A.astype("d"), A.data.astype("F")):
        with pytest.raises(TypeError, match="Cannot cast array data"):
            lu.refactor(values)


def spoiled(A, how):
    """What to hand to refactor, and the exception and text it must give."""
    if how == "NaN" or how == "Inf":
        values = A.data.copy()
        values[17] = np.nan if how == "NaN" else -np.inf
        row, col = A.tocoo().row[17], A.tocoo().col[17]
        return values, gs.NonFiniteError, rf"A\[{row}, {col}\] is (nan|-inf)"
    if how == "NaN in a matrix":
        M = A.copy()
        M.data[17] = np.nan
        return M, gs.NonFiniteError, r"\] is nan"
    if how == "singular":
        return np.zeros_like(A.data), RuntimeError, "Factor is exactly singular"
    if how == "too few":
        return A.data[:-1], ValueError, f"{A.nnz - 1} entries, A.data had {A.nnz}"
    if how == "complex":
        return A.data + 1j, TypeError, "Cannot cast array data"
    if how == "other pattern":
        M = A.tolil()
        row, col = np.argwhere(A.toarray() == 0)[5]
        M[row, col] = 1
        return sp.csc_array(M), gs.PatternMismatchError, rf"entry \({row}, {col}\) is not in the factored pattern"
    if how == "missing entry":
        M = A.copy()
        M.data[0] = 0
        M.eliminate_zeros()
        return M, gs.PatternMismatchError, "of the factored pattern is missing"
    if how == "smaller":
        return A[:59, :59], gs.PatternMismatchError, "59 x 59, the factored one 60 x 60"
    if how == "dense, other pattern":
        full = A.toarray()
        row, col = np.argwhere(full == 0)[5]
        full[row, col] = 1
        return full, gs.PatternMismatchError, rf"entry \({row}, {col}\) is not in the factored pattern"
    assert how == "rectangular"
    return A[:, :59], ValueError, "can only factor square matrices"


HOWS = (
    "NaN",
    "Inf",
    "NaN in a matrix",
    "singular",
    "too few",
    "complex",
    "other pattern",
    "dense, other pattern",
    "missing entry",
    "smaller",
    "rectangular",
)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("pivoting", ["auto", "partial"])
def test_bad_values_leave_the_old_factor(how, pivoting):
    A = random_matrix()
    lu, b = gs.splu(A, pivoting=pivoting), rhs(60)
    before = lu.solve(b)
    bad, kind, text = spoiled(A, how)
    with pytest.raises(kind, match=text):
        lu.refactor(bad)
    np.testing.assert_array_equal(lu.solve(b), before)
    assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 100 * EPS["d"] * abs(A).max()
    lu.refactor(A.data * 2)
    assert backward_error(2 * A, lu.solve(b), b) < 50 * EPS["d"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "call", [gs.splu, gs.cholesky, gs.factorized, gs.analyze, gs.explain, lambda A: gs.spsolve(A, rhs(50))]
)
def test_values_that_are_not_finite_are_refused(call, value):
    A = spd_matrix()
    A.data[3] = value
    with pytest.raises(gs.NonFiniteError, match=r"A\[\d+, 0\] is (nan|inf); all values of A must be finite"):
        call(A)


def test_L_and_U_are_renewed_by_refactor():
    A = random_matrix()
    lu = gs.splu(A)
    L, U = lu.L, lu.U
    lu.refactor(A.data * 2)
    assert lu.U is not U
    np.testing.assert_allclose(lu.U.toarray(), 2 * U.toarray(), atol=1e-12)
    np.testing.assert_allclose(lu.L.toarray(), L.toarray(), atol=1e-12)
