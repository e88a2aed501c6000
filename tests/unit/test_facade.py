"""What users hold: LUFactor, CholeskyFactor, Symbolic, and the arguments that choose how they are made."""

import dataclasses
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu.options import Options

EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}


def random_matrix(n=60, dtype="d", seed=0, density=0.05):
    """Unsymmetric, with a dominant diagonal that row exchanges have hidden."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csc").astype(dtype)
    if A.dtype.kind == "c":
        A.data = A.data + 1j * rng.random(A.nnz).astype(A.real.dtype)
    A = A + sp.eye_array(n, dtype=A.dtype) * A.dtype.type(n * density + 1)
    return canonical(A[rng.permutation(n)])


def spd_matrix(n=50, dtype="d", seed=0):
    B = random_matrix(n, dtype, seed)
    A = sp.csc_array(B @ B.conj().T + sp.eye_array(n, dtype=B.dtype))
    return canonical((A + A.conj().T) / 2).astype(dtype)


def canonical(A):
    """CSC with sorted indices: SciPy's operations leave them in any order, and some sort them in place later."""
    A = sp.csc_array(A)
    A.sum_duplicates()
    return A


def backward_error(A, x, b):
    A = A.toarray() if sp.issparse(A) else A
    r = np.abs(A @ x - b).max(initial=0)
    return r / (np.abs(A).sum(axis=1).max() * np.abs(x).max(initial=0) + np.abs(b).max(initial=0))


def rhs(n, dtype="d", columns=(), seed=5):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((n, *columns))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    return b.astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("columns", [(), (1,), (3,), (40,)])
def test_solve_three_ways(dtype, columns):
    A, b = random_matrix(dtype=dtype), rhs(60, dtype, columns)
    lu = gs.splu(A)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        x = lu.solve(b, trans)
        assert (x.dtype, x.shape) == (b.dtype, b.shape)
        assert x.flags.f_contiguous
        assert backward_error(op, x, b) < 20 * EPS[dtype]


@pytest.mark.parametrize("dtype", "fdFD")
def test_factors_multiply_to_A(dtype):
    A = random_matrix(dtype=dtype)
    lu = gs.splu(A)
    assert lu.L is lu.L
    assert lu.U is lu.U
    difference = abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max()
    assert difference < 100 * EPS[dtype] * abs(A).max()
    assert (lu.L.diagonal() == 1).all()
    assert sp.triu(lu.L, 1).nnz == sp.tril(lu.U, -1).nnz == 0
    assert lu.nnz >= lu.L.nnz + lu.U.nnz - 60
    for factor in (lu.L, lu.U):
        assert factor.has_sorted_indices


@pytest.mark.parametrize(
    ("right", "left", "result"),
    [("F", "f", "F"), ("F", "d", "D"), ("D", "d", "D"), ("d", "D", "D"), ("f", "F", "F"), ("i", "d", "d")],
)
def test_right_hand_sides_of_another_kind(right, left, result):
    A = random_matrix(dtype=left)
    for b in (rhs(60, right), rhs(60, right, (3,))):
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = gs.splu(A).solve(b, trans)
            assert (x.dtype, x.shape) == (result, b.shape)
            assert backward_error(op, x, b) < 50 * EPS[left]


def test_complex_right_hand_side_must_fit_too():
    lu = gs.splu(random_matrix(dtype="f"))
    with pytest.raises(TypeError, match=r"Cannot cast array data from dtype\('complex128'\) to dtype\('complex64'\)"):
        lu.solve(rhs(60, "D"))
    with pytest.raises(ValueError, match="b is of incompatible size"):
        lu.solve(rhs(59, "F"))


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


@pytest.mark.parametrize("dtype", "fdFD")
def test_slogdet_and_rcond(dtype):
    A = random_matrix(30, dtype)
    lu = gs.splu(A)
    sign, logabsdet = lu.slogdet()
    expected = np.linalg.slogdet(A.toarray().astype("D" if dtype in "FD" else "d"))
    assert abs(sign - expected.sign) < 1e3 * EPS[dtype]
    assert abs(logabsdet - expected.logabsdet) < 1e4 * EPS[dtype]
    assert lu.slogdet().logabsdet == logabsdet
    exact = 1 / np.linalg.cond(A.toarray(), 1)
    assert exact * 0.99 <= lu.rcond() <= exact * 10


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("triangle", [sp.csc_array, sp.tril, sp.triu])
def test_cholesky(dtype, triangle):
    A = spd_matrix(dtype=dtype)
    ch = gs.cholesky(triangle(A))
    for columns in ((), (1,), (7,)):
        b = rhs(50, dtype, columns)
        x = ch.solve(b)
        assert (x.dtype, x.shape) == (b.dtype, b.shape)
        assert backward_error(A, x, b) < 50 * EPS[dtype]
        np.testing.assert_array_equal(ch(b), x)
    for trans, op in (("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, ch.solve(b, trans), b) < 50 * EPS[dtype]
    assert sp.triu(ch.L, 1).nnz == 0
    product = ch.L @ ch.L.conj().T
    assert abs(product - A[ch.perm][:, ch.perm]).max() < 100 * EPS[dtype] * abs(A).max()
    expected = np.linalg.slogdet(A.toarray())
    assert abs(ch.logdet() - expected.logabsdet) < 1e4 * EPS[dtype]
    assert ch.slogdet().sign == 1
    exact = 1 / np.linalg.cond(A.toarray(), 1)
    assert exact * 0.98 <= ch.rcond() <= exact * 10


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize(
    "triangle", [sp.csc_array, sp.tril, sp.triu, lambda A: sp.tril(A).tocsr(), lambda A: sp.triu(A).tocoo()]
)
def test_cholesky_refactor(dtype, triangle):
    A, b = spd_matrix(dtype=dtype), rhs(50, dtype)
    part = triangle(A)
    ch = gs.cholesky(part)
    D = sp.diags_array(np.linspace(1, 3, 50)).astype(A.dtype)
    new = canonical(D @ A @ D)
    scaled = triangle(new)
    assert scaled.nnz == part.nnz
    for values in (scaled.data, scaled, sp.tril(new), new):
        ch.refactor(part.data)
        ch.refactor(values)
        assert backward_error(new, ch.solve(b), b) < 50 * EPS["d"]
        assert abs(ch.L @ ch.L.conj().T - new[ch.perm][:, ch.perm]).max() < 100 * EPS["d"] * abs(new).max()


def test_cholesky_says_which_column():
    A = spd_matrix()
    A[23, 23] = -1
    with pytest.raises(gs.NotPositiveDefiniteError, match="column 23 of A has pivot") as caught:
        gs.cholesky(A, ordering=np.roll(np.arange(50), -24))
    assert caught.value.column == 23
    assert caught.value.pivot < 0
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.parametrize("how", ["indefinite", "NaN", "other pattern", "not Hermitian"])
def test_cholesky_refactor_leaves_the_old_factor(how):
    A, b = spd_matrix(), rhs(50)
    ch = gs.cholesky(A)
    before = ch.solve(b)
    bad, kind = A.copy(), gs.NonFiniteError
    if how == "indefinite":
        bad.data, kind = -A.data, gs.NotPositiveDefiniteError
    elif how == "NaN":
        bad.data[5] = np.nan
    elif how == "other pattern":
        bad, kind = sp.eye_array(50, format="csc"), gs.PatternMismatchError
    else:
        bad.data[1], kind = bad.data[1] + 1, gs.NotHermitianError
    with pytest.raises(kind):
        ch.refactor(bad)
    np.testing.assert_array_equal(ch.solve(b), before)
    ch.refactor(A.data)
    np.testing.assert_array_equal(ch.solve(b), before)


def test_cholesky_of_an_unsymmetric_matrix():
    with pytest.raises(gs.NotHermitianError, match="not Hermitian; pass one triangle only"):
        gs.cholesky(random_matrix())


@pytest.mark.parametrize("dtype", "dF")
def test_factors_pickle(dtype):
    for factor, n in ((gs.splu(random_matrix(dtype=dtype)), 60), (gs.cholesky(sp.tril(spd_matrix(dtype=dtype))), 50)):
        A = factor.symbolic
        b = rhs(n, dtype)
        factor.refactor(np.asarray(factor._core.values()) * factor.dtype.type(2)) if A._pattern.core.identity else None
        copy = pickle.loads(pickle.dumps(factor))
        assert type(copy) is type(factor)
        # the copy is factored afresh, which may sum in another order than the refactorization did
        tolerance = {"rtol": 100 * EPS[dtype], "atol": 100 * EPS[dtype]}
        np.testing.assert_allclose(copy.solve(b), factor.solve(b), **tolerance)
        np.testing.assert_allclose(copy.L.toarray(), factor.L.toarray(), **tolerance)


def test_symbolic():
    A, b = random_matrix(), rhs(60)
    sym = gs.analyze(A)
    assert (sym.n, sym.nnz, sym.shape, sym.structural_rank, sym.engine) == (60, A.nnz, (60, 60), 60, "cpu")
    assert not sym.cholesky
    assert sym.seconds["analyze"] > 0
    for s in (sym, pickle.loads(pickle.dumps(sym))):
        for scale in (1, 3):
            for values in (A.data * scale, A * scale, (A * scale).tocsr()):
                lu = s.factor(values)
                assert isinstance(lu, gs.LUFactor)
                assert backward_error(A * scale, lu.solve(b), b) < 50 * EPS["d"]
    assert sym.factor(A.data.astype("f")).dtype == np.float32
    assert sym.factor(A.data + 0j).dtype == np.complex128
    with pytest.raises(gs.PatternMismatchError):
        sym.factor(sp.eye_array(60, format="csc"))
    with pytest.raises(gs.NonFiniteError):
        sym.factor(A.data * np.nan)
    with pytest.raises(ValueError, match="values has 1 entries"):
        sym.factor([1.0])
    with pytest.raises(AttributeError):
        sym.nothing  # noqa: B018


def test_symbolic_of_cholesky():
    A, b = spd_matrix(), rhs(50)
    sym = pickle.loads(pickle.dumps(gs.analyze(sp.tril(A), cholesky=True)))
    ch = sym.factor(sp.tril(A).data * 2)
    assert isinstance(ch, gs.CholeskyFactor)
    assert backward_error(2 * A, ch.solve(b), b) < 50 * EPS["d"]


def test_structurally_singular():
    A = random_matrix().tolil()
    A[:, 3] = 0
    A = sp.csc_array(A)
    assert gs.analyze(A).structural_rank == 59
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.splu(A)
    assert "structural rank 59" in gs.explain(A)


@pytest.mark.parametrize("n", [0, 1])
def test_smallest(n):
    A = 4 * sp.eye_array(n, format="csc")
    for factor in (gs.splu(A), gs.cholesky(A)):
        assert factor.shape == (n, n)
        np.testing.assert_array_equal(factor.solve(np.ones(n)), np.full(n, 0.25))
        assert factor.solve(np.ones((n, 3))).shape == (n, 3)
        factor.refactor(A.data * 2)
        np.testing.assert_allclose(factor.solve(np.ones(n)), np.full(n, 0.125), rtol=1e-15)
        assert factor.L.shape == (n, n)
        assert factor.slogdet() == (1.0, pytest.approx(n * np.log(8.0)))
        assert factor.explain()
        pickle.loads(pickle.dumps(factor))
    assert gs.explain(A)


def test_stats_and_explain():
    A = random_matrix()
    lu = gs.splu(A)
    lu.solve(rhs(60))
    lu.refactor(A.data)
    stats = lu.stats
    assert stats.n_refactor == stats["n_refactor"] == 1
    assert stats.nnz == A.nnz
    assert stats.fill == lu.nnz / A.nnz
    assert {"canonicalize", "analyze", "factor", "refactor", "solve"} == set(stats.seconds)
    assert all(seconds >= 0 for seconds in stats.seconds.values())
    assert dict(pickle.loads(pickle.dumps(stats))) == dict(stats)
    assert "flops" in repr(stats)
    assert "flops" in dir(stats)
    with pytest.raises(AttributeError, match="stats has no 'flip'; it has engine, method"):
        stats.flip  # noqa: B018
    text = lu.explain()
    for word in (
        "60 x 60",
        "cpu: engine='auto' and this version of gpusplu has no GPU engine",
        "ordering",
        "accuracy",
    ):
        assert word in text
    assert "asked for by name" in gs.splu(A, engine="cpu").explain()
    for word in ("60 x 60", "structural rank 60", "predicted", "symmetry"):
        assert word in gs.explain(A)
    assert "100% of the off-diagonal" in gs.explain(spd_matrix(), cholesky=True)
    assert repr(lu).startswith("<LUFactor of 60 x 60, float64, nnz")
    assert repr(gs.analyze(A)).startswith("<Symbolic LU of 60 x 60")


def test_backward_error_is_that_of_the_last_solve():
    A, b = random_matrix(), rhs(60)
    lu = gs.splu(A, refine="always")
    x = lu.solve(b)
    assert lu.backward_error < 20 * EPS["d"]
    assert lu.backward_error == pytest.approx(backward_error(A, x, b), rel=0.5, abs=1e-17)


@pytest.mark.parametrize("name", ["glu", "sflu", "crisscross", "supernodal"])
@pytest.mark.parametrize("call", [gs.splu, gs.cholesky, gs.analyze, gs.explain])
def test_gpu_engines_raise_by_name(call, name):
    with pytest.raises(gs.EngineUnavailableError, match=f"engine='{name}' needs a GPU engine"):
        call(spd_matrix(), engine=name)


def test_unknown_engine_and_device():
    with pytest.raises(ValueError, match="engine='abacus' is not one of 'auto', 'cpu'"):
        gs.splu(spd_matrix(), engine="abacus")
    with pytest.raises(gs.EngineUnavailableError, match="device=0 needs a GPU engine"):
        gs.splu(spd_matrix(), device=0)
    assert gs.splu(spd_matrix(), device="cpu").engine == "cpu"


@pytest.mark.parametrize("option", ["ordering", "pivoting", "refine"])
def test_unknown_options(option):
    for value in ("best", 3, None):
        with pytest.raises(ValueError, match=rf"{option}(={value!r} is not one of 'auto'| must be one of 'auto')"):
            gs.splu(spd_matrix(), **{option: value})


@pytest.mark.parametrize("ordering", ["auto", "amd", "nd", "natural", "reversed"])
@pytest.mark.parametrize("pivoting", ["auto", "static", "partial"])
@pytest.mark.parametrize("refine", ["auto", "always", "never"])
def test_options_that_work(ordering, pivoting, refine):
    A, b = random_matrix(), rhs(60)
    chosen = np.arange(60)[::-1] if ordering == "reversed" else ordering
    lu = gs.splu(A, ordering=chosen, pivoting=pivoting, refine=refine)
    assert backward_error(A, lu.solve(b), b) < 1e3 * EPS["d"]
    assert lu.symbolic.ordering in {"auto": ("amd", "nd"), "reversed": ("user",)}.get(ordering, (ordering,))
    if ordering == "natural":
        np.testing.assert_array_equal(lu.perm_c, np.arange(60))
    ch = gs.cholesky(spd_matrix(), ordering=np.arange(50)[::-1] if ordering == "reversed" else ordering, refine=refine)
    assert backward_error(spd_matrix(), ch.solve(rhs(50)), rhs(50)) < 50 * EPS["d"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"permc_spec": "COLAMD"}, {}),
        ({"permc_spec": "natural"}, {"ordering": "natural"}),
        ({"diag_pivot_thresh": 0.0}, {"pivot_threshold": 0.0, "matching": False}),
        ({"diag_pivot_thresh": 0.5}, {"pivot_threshold": 0.5, "matching": False, "pivoting": "partial"}),
        ({"diag_pivot_thresh": 3}, {"pivot_threshold": 1.0, "matching": False, "pivoting": "partial"}),
        (
            {"diag_pivot_thresh": 0.5, "pivoting": "static"},
            {"pivot_threshold": 0.5, "matching": False, "pivoting": "static"},
        ),
        ({"options": {"DiagPivotThresh": 0.01}}, {"pivot_threshold": 0.01, "matching": False}),
        ({"options": {"SymmetricMode": True}}, {"matching": False}),
        ({"options": {"IterRefine": "double"}}, {"refine": "always"}),
        ({"options": {"IterRefine": "NOREFINE"}}, {}),
        ({"options": {"IterRefine": "SINGLE"}, "refine": "never"}, {"refine": "never"}),
        ({"options": {"ColPerm": "NATURAL"}, "permc_spec": "COLAMD"}, {"ordering": "natural"}),
    ],
)
def test_what_scipys_arguments_mean(given, expected):
    assert gs.splu(spd_matrix(), **given).symbolic._options == dataclasses.replace(Options(), **expected)


@pytest.mark.parametrize(
    "perm", [[0, 1], [0] * 60, np.arange(60.0), np.arange(1, 61), -np.arange(60), [[0]], range(61)]
)
def test_bad_permutations(perm):
    with pytest.raises(ValueError, match=r"permutation of range\(60\)"):
        gs.splu(random_matrix(), ordering=perm)


def test_natural_contradicts_another_ordering():
    with pytest.raises(ValueError, match="permc_spec='NATURAL' contradicts ordering='nd'"):
        gs.splu(random_matrix(), permc_spec="NATURAL", ordering="nd")
    np.testing.assert_array_equal(
        gs.splu(random_matrix(), permc_spec="NATURAL", ordering="natural").perm_c, np.arange(60)
    )


def test_diag_pivot_thresh_is_superlus():
    A = sp.csc_array(random_matrix(density=0.2).toarray() * 0.3 + np.diag(np.full(60, 0.05)))
    multipliers = abs(gs.splu(A, diag_pivot_thresh=1.0).L).max()
    assert multipliers <= 1
    for extra in ({"permc_spec": "NATURAL"}, {"options": {"SymmetricMode": True}}, {}):
        A = spd_matrix()
        lu = gs.splu(A, diag_pivot_thresh=0.0, **extra)
        np.testing.assert_array_equal(lu.perm_r, lu.perm_c)
        assert backward_error(A, lu.solve(rhs(50)), rhs(50)) < 50 * EPS["d"]


def test_eight_threads_get_the_same_bits():
    A = random_matrix(400, density=0.02)
    for factor in (gs.splu(A), gs.splu(A, refine="always"), gs.cholesky(spd_matrix(400))):
        sides = [rhs(400, seed=k) for k in range(8)]
        factor.solve(sides[0])  # a fresh factor may still have to find out whether it needs refinement
        expected = [(factor.solve(b), factor.solve(b, "T")) for b in sides]
        wrong = []
        barrier = threading.Barrier(8)

        def work(k, factor=factor, expected=expected, wrong=wrong, barrier=barrier, sides=sides):
            barrier.wait()
            for repeat in range(20):
                j = (k + repeat) % 8
                if not (factor.solve(sides[j]) == expected[j][0]).all():
                    wrong.append((k, repeat))
                if not (factor.solve(sides[j], "T") == expected[j][1]).all():
                    wrong.append((k, repeat, "T"))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_threads_of_the_core_do_not_change_bits():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    A, b = random_matrix(400, density=0.02), rhs(400)
    x, threads = gs.splu(A).solve(b), gs._core.num_threads()
    with threadpoolctl.threadpool_limits(1):
        assert gs._core.num_threads() == 1
        np.testing.assert_array_equal(gs.splu(A).solve(b), x)
    info = [i for i in threadpoolctl.threadpool_info() if i["internal_api"] == "gpusplu"]
    assert [i["num_threads"] for i in info] == [gs._core.num_threads()] == [threads]
    with threadpoolctl.threadpool_limits(3, user_api="gpusplu"):
        assert gs._core.num_threads() == 3


class Device:
    """Stands for a CuPy array or matrix: host data behind get()."""

    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


Device.__module__ = "cupyx.scipy.sparse"


def test_cupy_goes_to_the_host_and_back(monkeypatch):
    cupy = types.ModuleType("cupy")
    cupy.asarray = lambda x, order=None: Device(x)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    A, b = random_matrix(), rhs(60)
    lu = gs.splu(Device(A))
    for trans, op in (("N", A), ("T", A.T)):
        assert backward_error(op, lu.solve(Device(b), trans).host, b) < 50 * EPS["d"]
    lu.refactor(Device(A.data * 2))
    lu.refactor(Device(A * 2))
    assert backward_error(2 * A, lu.solve(Device(b)).host, b) < 50 * EPS["d"]
    assert backward_error(A, gs.spsolve(Device(A), Device(b)).host, b) < 50 * EPS["d"]
    assert backward_error(A, gs.factorized(Device(A))(b), b) < 50 * EPS["d"]
    S = spd_matrix()
    assert backward_error(S, gs.cholesky(Device(S))(Device(rhs(50))).host, rhs(50)) < 50 * EPS["d"]


def test_linalg_has_everything_that_scipy_has():
    import scipy.sparse.linalg as spla

    for name in spla.__all__:
        assert hasattr(gs.linalg, name)
    assert gs.linalg.gmres is spla.gmres
    assert gs.linalg.spilu is spla.spilu
    assert gs.linalg.splu is gs.splu
    assert {"gmres", "splu", "cholesky"} <= set(dir(gs.linalg))
    with pytest.raises(AttributeError, match=r"module 'gpusplu.linalg' has no attribute 'nothing', nor has scipy"):
        gs.linalg.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gs.nothing  # noqa: B018
    assert set(gs.__all__) <= set(dir(gs))
    for name in gs.__all__:
        assert getattr(gs, name) is not None


def test_import_is_light():
    code = (
        "import sys, time; import numpy; start = time.perf_counter(); import gpusplu; t = time.perf_counter() - start; "
        "assert not {'cupy', 'scipy.sparse'} & set(sys.modules), 'imports too much'; assert t < 0.3, t; "
        "import gpusplu.install; assert callable(gpusplu.install); import gpusplu.linalg as spla; spla.splu; spla.cg"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
