"""Canonical CSC of any matrix, the map from its values, and completion of one triangle, against dense NumPy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common import matrix


def shuffled(n, nnz, dtype, seed=0):
    """A COO matrix with duplicates in random order."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n, (2, nnz))
    data = rng.integers(-9, 9, nnz).astype(dtype)
    if data.dtype.kind == "c":
        data += 1j * rng.integers(-9, 9, nnz)
    return sp.coo_array((data, (row, col)), shape=(n, n))


def as_format(A, name):
    """CSC and CSR that keep duplicates and disorder, unlike SciPy's conversions."""
    if name == "coo":
        return A
    major, minor = (A.col, A.row) if name == "csc" else (A.row, A.col)
    order = np.argsort(major, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(major, minlength=A.shape[0])))
    kind = sp.csc_array if name == "csc" else sp.csr_array
    return kind((A.data[order], minor[order], indptr), shape=A.shape)


def dense(pattern, canonical):
    return sp.csc_array((canonical, pattern.ind, pattern.ptr), shape=(pattern.n, pattern.n)).toarray()


def assert_canonical(pattern):
    assert pattern.ptr.dtype == np.int64
    assert pattern.ind.dtype == np.int32
    for first, last in itertools.pairwise(pattern.ptr):
        assert (np.diff(pattern.ind[first:last]) > 0).all()


@pytest.mark.parametrize("name", ["csc", "csr", "coo"])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("n", "nnz"), [(1, 3), (7, 0), (7, 60), (40, 100)])
def test_canonicalize_sums_and_sorts(name, dtype, index, n, nnz):
    A = as_format(shuffled(n, nnz, dtype), name)
    if name != "coo":
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    before = A.copy()
    pattern, data = matrix.canonicalize(matrix.read_matrix(A))
    assert_canonical(pattern)
    assert (pattern.n, pattern.size) == (n, nnz)
    np.testing.assert_array_equal(dense(pattern, pattern.gather(data)), A.toarray())
    # the map serves other values too
    A.data = A.data[::-1].copy()
    np.testing.assert_array_equal(dense(pattern, pattern.gather(A.data)), A.toarray())
    if name != "coo":
        np.testing.assert_array_equal(A.indices, before.indices)
        np.testing.assert_array_equal(A.indptr, before.indptr)


def test_values_of_bsr_are_in_block_order():
    A = sp.bsr_array(sp.csc_array(shuffled(8, 30, "d")), blocksize=(2, 2))
    pattern, data = matrix.canonicalize(matrix.read_matrix(A))
    assert pattern.size == A.data.size
    A.data *= 3
    np.testing.assert_array_equal(dense(pattern, pattern.gather(A.data.ravel())), A.toarray())


def test_canonical_csc_moves_nothing():
    A = sp.csc_array(shuffled(9, 20, "d"))
    A.sum_duplicates()
    pattern, data = matrix.canonicalize(A)
    assert pattern.gather(data) is data
    assert pattern.direct_map(data.dtype) == (True, None)
    assert not np.shares_memory(pattern.ind, A.indices)


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("name", ["csc", "csr", "coo"])
def test_direct_map_is_the_gather_of_the_core(dtype, name):
    A = as_format(sp.coo_array(sp.csc_array(shuffled(12, 50, dtype))), name)
    pattern, data = matrix.canonicalize(matrix.read_matrix(A))
    direct, source = pattern.direct_map(data.dtype)
    assert direct
    if source is not None:
        np.testing.assert_array_equal(data[source], pattern.gather(data))
    twice, data = matrix.canonicalize(shuffled(5, 60, dtype))  # a sum has none
    assert twice.direct_map(data.dtype) == (False, None)


@pytest.mark.parametrize("char", "?bBhHiq")
@pytest.mark.parametrize("name", ["coo", "csc", "csr"])
def test_duplicates_of_integers_are_added_as_scipy_does(char, name):
    """Of booleans they are one, and small integers wrap."""
    first, second = np.array([0, 1, 1, 2, 0, 0]), np.array([0, 1, 1, 2, 2, 2])
    data = np.array([1, 100, 29, 90, 2, 1]).astype(char)
    if name == "coo":
        A = sp.coo_array((data, (second, first)), shape=(3, 3))
    else:
        order, pointers = np.argsort(first, kind="stable"), np.array([0, 3, 5, 6])
        A = (sp.csc_array if name == "csc" else sp.csr_array)((data[order], second[order], pointers), shape=(3, 3))
    dense, b = A.toarray().astype(float), np.array([1.0, 2.0, 5.0])
    expected = np.linalg.solve(dense, b)
    lu = gs.analyze(A).factor(A)
    np.testing.assert_allclose(lu.solve(b.astype(lu.dtype)), expected, rtol=1e-5, atol=1e-7)
    if name != "coo":
        np.testing.assert_allclose(gs.spsolve(A, b), expected, rtol=1e-5, atol=1e-7)
    for values in (A.data, A):
        lu.refactor(values)
        np.testing.assert_allclose(lu.solve(b.astype(lu.dtype)), expected, rtol=1e-5, atol=1e-7)
    batch = gs.splu_batch(A, np.stack([A.data] * 2))
    np.testing.assert_allclose(batch.solve(b.astype(batch.dtype))[1], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("triangle", ["full", "lower", "upper", "diagonal"])
@pytest.mark.parametrize("name", ["csc", "csr", "coo"])
def test_hermitian_completes(dtype, triangle, name):
    A = shuffled(9, 40, dtype).toarray()
    A = A + A.conj().T
    part = {"full": A, "lower": np.tril(A), "upper": np.triu(A), "diagonal": np.diag(np.diag(A))}[triangle]
    M = sp.coo_array(part).asformat(name)
    pattern, data = matrix.canonicalize(matrix.read_matrix(M))
    whole = matrix.both_triangles(pattern, data, "cholesky")
    assert_canonical(whole)
    expected = part if triangle in ("full", "diagonal") else A
    np.testing.assert_array_equal(dense(whole, whole.gather(data)), expected)
    direct, source = whole.direct_map(data.dtype)
    if direct and source is not None:
        np.testing.assert_array_equal(data[source], whole.gather(data))
    assert direct or (dtype in "FD" and triangle in ("lower", "upper"))


def test_hermitian_tolerates_rounding_and_one_sided_zeros():
    A = np.array([[4.0, 1, 0], [1 + 1e-15, 4, 0], [0, 0, 4]])
    M = sp.csc_array(A)
    pattern, data = matrix.canonicalize(M)
    matrix.both_triangles(pattern, data, "cholesky")
    zeros = sp.coo_array((np.append(M.data, 0.0), (np.append(M.indices, 2), [0, 0, 1, 1, 2, 0])), shape=(3, 3))
    pattern, data = matrix.canonicalize(zeros)
    np.testing.assert_array_equal(dense(matrix.both_triangles(pattern, data, "cholesky"), pattern.gather(data)), A)


def test_mismatch_names_the_first_entry():
    A = sp.csc_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]]))
    B = sp.csc_array(np.array([[1.0, 0, 2], [6, 3, 0], [4, 0, 5]]))
    old, new = (matrix.canonicalize(M)[0] for M in (A, B))
    assert "entry (1, 0) is not in the factored pattern (6 entries against 5)" in str(matrix.pattern_mismatch(old, new))
    assert "entry (1, 0) of the factored pattern is missing (5" in str(matrix.pattern_mismatch(new, old))
    smaller = matrix.canonicalize(A[:2, :2])[0]
    assert "2 x 2, the factored one 3 x 3" in str(matrix.pattern_mismatch(old, smaller))
