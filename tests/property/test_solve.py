"""hypothesis: any pattern, values, dtype, index dtype, format, right-hand sides and trans: small backward error, or
SciPy's error where A is singular."""

import warnings

import numpy as np
import scipy.sparse as sp
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import gpusplu as gs
from property.hard.verdict import is_singular_to_precision

FORMATS = ("csc", "csr", "coo")
LIMIT = {char: 1e3 * float(np.finfo(char).eps) for char in "fdFD"}


@st.composite
def matrices(draw, dtypes="fdFD"):
    """Square matrices with empty rows, duplicates, cancellation, wide ranges and both index dtypes."""
    n = draw(st.integers(1, 24))
    count = draw(st.integers(0, 4 * n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    row, col = rng.integers(0, n, (2, count))
    data = draw_values(draw, rng, count)
    diagonal = draw(st.sampled_from(("none", "permuted", "dominant")))
    if diagonal != "none":
        place = rng.permutation(n) if diagonal == "permuted" else np.arange(n)
        row, col = np.append(row, place), np.append(col, np.arange(n))
        large = rng.standard_normal(n) if diagonal == "permuted" else np.full(n, 1 + abs(data).sum())
        data = np.append(data, large)
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "c":
        data = data * np.exp(1j * rng.random(data.size))
    order = rng.permutation(data.size)
    A = sp.coo_array((data[order].astype(dtype), (row[order], col[order])), shape=(n, n))
    return with_format(A, draw(st.sampled_from(FORMATS)), draw(st.sampled_from((np.int32, np.int64))))


def draw_values(draw, rng, count):
    kind = draw(st.sampled_from(("normal", "integers", "wide", "ones")))
    if kind == "normal":
        return rng.standard_normal(count)
    if kind == "integers":
        return rng.integers(-3, 4, count).astype(float)
    if kind == "wide":
        return rng.standard_normal(count) * 10.0 ** rng.integers(-8, 9, count)
    return np.ones(count)


def with_format(A, name, index):
    """A in CSC or CSR with its duplicates and disorder, or COO."""
    if name == "coo":
        A.coords = tuple(c.astype(index) for c in A.coords)
        return A
    major, minor = (A.col, A.row) if name == "csc" else (A.row, A.col)
    order = np.argsort(major, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(major, minlength=A.shape[0])))
    made = (sp.csc_array if name == "csc" else sp.csr_array)((A.data[order], minor[order], indptr), shape=A.shape)
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def right_hand_sides(seed, n, columns, dtype):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((n,) if columns is None else (n, columns))
    if dtype.kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    return b.astype(dtype)


def assert_small_error(M, x, b, limit):
    """Column by column: ||b - M x|| <= limit (||M|| ||x|| + ||b||)."""
    M, x, b = M.astype("D"), x.astype("D"), b.astype("D")
    residual = abs(b - M @ x).max(axis=0, initial=0)
    size = abs(M).sum(axis=1).max() * abs(x).max(axis=0, initial=0) + abs(b).max(axis=0, initial=0)
    assert (residual <= limit * size).all(), float((residual / size).max())


def factored(A, **options):
    """splu(A), or None after checking that A really is singular to working precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        try:
            return gs.splu(A, **options)
        except RuntimeError as error:
            assert_singular(error)
            assert_ill_conditioned(A)
            return None


def assert_singular(error):
    assert str(error) == "Factor is exactly singular"


def assert_ill_conditioned(A):
    """Before an answer may be missing or not finite."""
    event("singular to working precision")
    assert is_singular_to_precision(A.toarray())


@settings(max_examples=150, deadline=None)
@given(
    A=matrices(),
    columns=st.sampled_from((None, 0, 1, 2, 9)),
    trans=st.sampled_from("NTH"),
    seed=st.integers(0, 1000),
    options=st.fixed_dictionaries(
        {
            "ordering": st.sampled_from(("auto", "amd", "nd", "natural")),
            "pivoting": st.sampled_from(("auto", "partial")),
            "diag_pivot_thresh": st.sampled_from((None, 0.001, 0.1, 1.0)),
            "refine": st.sampled_from(("auto", "always")),
        }
    ),
)
def test_splu(A, columns, trans, seed, options):
    lu = factored(A, **options)
    assume(lu is not None)
    dense = A.toarray()
    b = right_hand_sides(seed, A.shape[0], columns, A.dtype)
    x = lu.solve(b, trans)
    assert (x.dtype, x.shape) == (b.dtype, b.shape)
    if not np.isfinite(x).all():
        return assert_ill_conditioned(A)
    op = {"N": dense, "T": dense.T, "H": dense.conj().T}[trans]
    assert_small_error(op, x, b, LIMIT[A.dtype.char])
    product = (lu.L @ lu.U)[lu.perm_r][:, lu.perm_c].toarray()
    assert abs(product - dense).max() <= LIMIT[A.dtype.char] * (abs(lu.L) @ abs(lu.U)).max()


@settings(max_examples=100, deadline=None)
@given(A=matrices(), triangle=st.sampled_from(("full", "lower", "upper")), seed=st.integers(0, 1000))
def test_cholesky(A, triangle, seed):
    dense = A.toarray().astype("D" if A.dtype.kind == "c" else "d")
    H = dense @ dense.conj().T
    H = (H + H.conj().T) / 2 + np.eye(A.shape[0]) * max(abs(H).max(), 1) * 1e-3
    H = H.astype(A.dtype)
    M = {"full": H, "lower": np.tril(H), "upper": np.triu(H)}[triangle]
    ch = gs.cholesky(sp.csc_array(M).asformat(A.format))
    b = right_hand_sides(seed, A.shape[0], 3, A.dtype)
    assert_small_error(H, ch.solve(b), b, LIMIT[A.dtype.char])
    product = (ch.L @ ch.L.conj().T).toarray()
    assert abs(product - H[ch.perm][:, ch.perm]).max() <= LIMIT[A.dtype.char] * abs(H).max()


@settings(max_examples=60, deadline=None)
@given(A=matrices(), columns=st.sampled_from((None, 1, 3)), sparse=st.booleans(), seed=st.integers(0, 1000))
def test_spsolve(A, columns, sparse, seed):
    b = right_hand_sides(seed, A.shape[0], columns, A.dtype)
    rhs = sp.csc_array(b) if sparse and columns == 3 else b
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x = gs.spsolve(A, rhs)
        except RuntimeError as error:
            assert sp.issparse(rhs)
            assert_singular(error)
            return
    x = x.toarray() if sp.issparse(x) else x
    if any("singular" in str(w.message) for w in caught):
        assert np.isnan(x).all()
        return assert_ill_conditioned(A)
    if not np.isfinite(x).all():
        return assert_ill_conditioned(A)
    assert_small_error(A.toarray(), x, b[:, 0] if columns == 1 else b, LIMIT[A.dtype.char])
