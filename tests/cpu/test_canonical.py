"""Any arrays -> canonical columns and the value map, against SciPy's own conversions."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusplu import _core
from gpusplu.common import matrix as layers

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random_values(rng, size, dtype):
    """Small integers, so that sums are exact in every dtype and order."""
    values = rng.integers(-8, 9, size).astype(dtype)
    return values + 1j * rng.integers(-8, 9, size).astype(dtype) if np.iscomplexobj(values) else values


def canonical_of(layout, n, rows, cols, index_dtype):
    """Canonical of coordinates given in `layout`, and the order in which that layout stores them."""
    rows, cols = rows.astype(index_dtype), cols.astype(index_dtype)
    if layout == "coo":
        return _core.canonical("coo", n, rows, cols), np.arange(len(rows))
    outer, inner = (cols, rows) if layout == "csc" else (rows, cols)
    order = np.argsort(outer, kind="stable")  # inner indices stay in random order, duplicates included
    ptr = np.concatenate([[0], np.cumsum(np.bincount(outer, minlength=n))]).astype(index_dtype)
    return _core.canonical(layout, n, ptr, inner[order]), order


def same_pattern(one, other):
    return np.array_equal(one.ptr, other.ptr) and np.array_equal(one.ind, other.ind)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["csc", "csr", "coo"]),
    st.sampled_from([np.int32, np.int64]),
    st.sampled_from(DTYPES),
    st.integers(0, 12),
    st.integers(0, 60),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_every_layout(layout, index_dtype, dtype, n, nnz, distinct, seed):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, max(n, 1), (2, nnz if n else 0))
    if distinct:
        cells = rng.permutation(np.unique(rows * n + cols))
        rows, cols = cells // max(n, 1), cells % max(n, 1)
    values = random_values(rng, len(rows), dtype)
    canonical, order = canonical_of(layout, n, rows, cols, index_dtype)
    expected = sp.csc_array(sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=(n, n)))
    expected.sort_indices()
    assert canonical.n == n and canonical.nvalues == len(rows)
    assert np.array_equal(canonical.ptr, expected.indptr) and canonical.ptr.dtype == np.int64
    assert np.array_equal(canonical.ind, expected.indices) and canonical.ind.dtype == np.int32
    assert (len(canonical.source_ptr) == 0) == (canonical.nnz == len(rows))

    dense = np.zeros((n, n), dtype)
    np.add.at(dense, (rows, cols), values)
    gathered = canonical.gather(values[order])
    assert gathered.dtype == dtype
    columns = np.repeat(np.arange(n), np.diff(canonical.ptr))
    assert np.array_equal(gathered, dense[canonical.ind, columns])

    again = _core.canonical("csc", n, canonical.ptr, canonical.ind.astype(np.int64))
    assert again.identity and len(again.source) == 0 and same_pattern(again, canonical)
    assert np.array_equal(again.gather(gathered), gathered)
    copy = pickle.loads(pickle.dumps(canonical))
    assert np.array_equal(copy.gather(values[order]), gathered) and same_pattern(copy, canonical)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_canonical_columns_are_told_from_others(index_dtype):
    ptr = np.array([0, 0, 3, 3, 5, 7, 7], dtype=index_dtype)
    canonical = np.array([0, 2, 5, 1, 5, 5, 5], dtype=index_dtype)
    canonical[5] = 4
    assert _core.canonical("csc", 6, ptr, canonical).identity
    for place, value in ((1, 0), (1, 5), (2, 2), (4, 1), (4, 0), (6, 4), (5, 5), (6, 3)):
        other = canonical.copy()
        other[place] = value
        assert not _core.canonical("csc", 6, ptr, other).identity, (place, value)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_index_out_of_range(index_dtype, bad, place):
    ptr, ind = np.array([0, 2, 4, 5], index_dtype), np.array([0, 1, 1, 2, 2], index_dtype)
    ind[place] = bad
    other = np.zeros(5, index_dtype)
    with pytest.raises(ValueError, match=rf"^row index {bad} at position {place} is outside of 0 \.\. 2$"):
        _core.canonical("csc", 3, ptr, ind)
    with pytest.raises(ValueError, match=rf"^column index {bad} at position {place}"):
        _core.canonical("csr", 3, ptr, ind)
    with pytest.raises(ValueError, match=rf"^row index {bad} at position {place}"):
        _core.canonical("coo", 3, ind, other)
    with pytest.raises(ValueError, match=rf"^column index {bad} at position {place}"):
        _core.canonical("coo", 3, other, ind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["csc", "csr", "coo"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("duplicates", [False, True])
def test_mirrored_triangle(dtype, layout, lower, duplicates):
    rng = np.random.default_rng(0)
    n = 9
    rows, cols = np.nonzero(np.tri(n) * (rng.random((n, n)) < 0.5) + np.eye(n))
    if duplicates:
        rows, cols = np.tile(rows, 2), np.tile(cols, 2)
    if not lower:
        rows, cols = cols, rows
    values = random_values(rng, len(rows), dtype)
    values[rows == cols] = values[rows == cols].real
    canonical, order = canonical_of(layout, n, rows, cols, np.int32)
    assert canonical.triangle == ("lower" if lower else "upper")
    full = canonical.mirrored()
    half = np.zeros((n, n), dtype)
    np.add.at(half, (rows, cols), values)
    expected = half + half.conj().T - np.diag(np.diag(half))
    matrix = sp.csc_array((full.gather(values[order]), full.ind, full.ptr), shape=(n, n))
    assert matrix.has_canonical_format and full.triangle == "full"
    assert full.nnz == 2 * canonical.nnz - n
    assert np.array_equal(matrix.toarray(), expected)


def test_diagonal_and_empty_are_full():
    eye = _core.canonical("csc", 3, np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32))
    assert eye.triangle == "full" and eye.mirrored().identity
    assert _core.canonical("csc", 0, np.zeros(1, np.int32), np.zeros(0, np.int32)).triangle == "full"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 5, 5000, 900_000])
def test_all_finite(dtype, size):
    values = np.full(size, np.finfo(dtype).max, dtype)
    assert _core.all_finite(values)
    for place in {0, size // 2, size - 1} if size else ():
        for bad in (np.nan, np.inf, -np.inf, *([complex(0, np.nan)] if np.iscomplexobj(values) else [])):
            spoiled = values.copy()
            spoiled[place] = bad
            assert not _core.all_finite(spoiled)


@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetry_traits(dtype):
    rng = np.random.default_rng(2)
    n = 30
    dense = random_values(rng, n * n, dtype).reshape(n, n) * (rng.random((n, n)) < 0.15)

    def traits(matrix):
        matrix = sp.csc_array(matrix)
        matrix.sort_indices()
        return _core.symmetry_traits(matrix.indptr.astype(np.int64), matrix.indices, matrix.data.astype(dtype))

    def expected(matrix):
        off = matrix.copy()
        np.fill_diagonal(off, 0)
        pairs, count = ((off != 0) & (off.T != 0)).sum(), (off != 0).sum()
        diagonal = np.diag(matrix)
        scale = np.abs(matrix).max(initial=0) or 1
        return {
            "pattern_symmetry": pairs / count if count else 1,
            "symmetric_error": np.abs(matrix - matrix.T).max(initial=0) / scale,
            "hermitian_error": np.abs(matrix - matrix.conj().T).max(initial=0) / scale,
            "positive_diagonal": bool(((diagonal.real > 0) & (diagonal.imag == 0)).all()),
            "diagonally_dominant": bool((np.abs(diagonal) >= np.abs(off).sum(axis=0)).all()),
        }

    hermitian = dense + dense.conj().T
    np.fill_diagonal(hermitian, 0)
    dominant = hermitian + np.diag(np.abs(hermitian).sum(axis=0) + 1)
    cases = [dense, dense + dense.T, hermitian, dominant, dominant - 2 * np.eye(n), 1j * dominant, np.eye(n), 0 * dense]
    for matrix in cases:
        if np.iscomplexobj(matrix) and not np.issubdtype(dtype, np.complexfloating):
            continue
        assert traits(matrix) == pytest.approx(expected(matrix), rel=1e-6)
    rows, cols = np.nonzero(hermitian == 0)
    for i, j in zip(rows[::9], cols[::9], strict=True):  # one entry without a partner, above or below the diagonal
        lone = hermitian.copy()
        lone[i, j] = 99
        assert traits(lone) == pytest.approx(expected(lone), rel=1e-6)
    assert traits(dominant)["positive_diagonal"] and traits(dominant)["diagonally_dominant"]


def test_threads_do_not_change_anything(threads):
    rng = np.random.default_rng(3)
    n, nnz = 50_000, 900_000
    rows, cols = rng.integers(0, n, (2, nnz)).astype(np.int32)
    values, results = rng.standard_normal(nnz), []
    for count in (1, 2, 5):
        threads(count)
        canonical = _core.canonical("coo", n, rows, cols)
        gathered = canonical.gather(values)
        traits = _core.symmetry_traits(canonical.ptr, canonical.ind, gathered)
        results.append((canonical.ptr, canonical.ind, canonical.source, canonical.source_ptr, gathered, traits))
    for result in results[1:]:
        assert result[-1] == results[0][-1]
        assert all(np.array_equal(a, b) for a, b in zip(result[:-1], results[0][:-1], strict=True))


def shuffled(n, nnz, dtype, seed=0):
    """A COO matrix with duplicates in random order."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n, (2, nnz))
    data = rng.integers(-9, 9, nnz).astype(dtype)
    if data.dtype.kind == "c":
        data += 1j * rng.integers(-9, 9, nnz)
    return sp.coo_array((data, (row, col)), shape=(n, n))


def dense(pattern, canonical):
    return sp.csc_array((canonical, pattern.ind, pattern.ptr), shape=(pattern.n, pattern.n)).toarray()


def test_values_of_bsr_are_in_block_order():
    A = sp.bsr_array(sp.csc_array(shuffled(8, 30, "d")), blocksize=(2, 2))
    pattern, data = layers.canonicalize(layers.read_matrix(A))
    assert pattern.size == A.data.size
    A.data *= 3
    np.testing.assert_array_equal(dense(pattern, pattern.gather(A.data.ravel())), A.toarray())


def test_hermitian_tolerates_rounding_and_one_sided_zeros():
    A = np.array([[4.0, 1, 0], [1 + 1e-15, 4, 0], [0, 0, 4]])
    M = sp.csc_array(A)
    pattern, data = layers.canonicalize(M)
    layers.both_triangles(pattern, data, "cholesky")
    zeros = sp.coo_array((np.append(M.data, 0.0), (np.append(M.indices, 2), [0, 0, 1, 1, 2, 0])), shape=(3, 3))
    pattern, data = layers.canonicalize(zeros)
    np.testing.assert_array_equal(dense(layers.both_triangles(pattern, data, "cholesky"), pattern.gather(data)), A)


def test_mismatch_names_the_first_entry():
    A = sp.csc_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]]))
    B = sp.csc_array(np.array([[1.0, 0, 2], [6, 3, 0], [4, 0, 5]]))
    old, new = (layers.canonicalize(M)[0] for M in (A, B))
    assert "entry (1, 0) is not in the factored pattern (6 entries against 5)" in str(layers.pattern_mismatch(old, new))
    assert "entry (1, 0) of the factored pattern is missing (5" in str(layers.pattern_mismatch(new, old))
    smaller = layers.canonicalize(A[:2, :2])[0]
    assert "2 x 2, the factored one 3 x 3" in str(layers.pattern_mismatch(old, smaller))
