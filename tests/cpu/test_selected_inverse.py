"""Entries of the inverse, its diagonal and traces beside NumPy's dense inverse."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from support.analyses import analyze
from support.small_matrices import EPS, canonical, phased, random_matrix


def core_factor(A, method):
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    symbolic = analyze(ptr, ind.astype(np.int32), A.data, method=method)
    return _core.factor(symbolic, _core.canonical_from_columns(A.shape[0], ptr, ind), A.data)


def dense_inverse(A):
    return np.linalg.inv(A.toarray().astype("D" if A.dtype.kind == "c" else "d"))


def close(found, expected, dtype, factor=200):
    return abs(found - expected).max() <= factor * EPS[np.dtype(dtype).char] * abs(expected).max()


def stored(A):
    """Ones where A has entries, zeros that are stored among them."""
    return sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape).toarray()


def on_pattern(A):
    """Entry (j, i) of the inverse for each canonical entry (i, j) of A."""
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return dense_inverse(A)[columns, A.indices]


def block_triangular(dtype="d", seed=0):
    """Diagonal blocks of several sizes with entries above them, rows and columns in disorder."""
    rng = np.random.default_rng(seed)
    A = sp.block_diag([random_matrix(n, dtype, seed + n, 0.2) for n in (1, 25, 1, 1, 14, 30)], format="csc")
    n = A.shape[0]
    blocks = np.repeat(np.arange(6), (1, 25, 1, 1, 14, 30))
    above = sp.random_array((n, n), density=0.05, rng=rng, format="coo").astype(A.dtype)
    above.data *= blocks[above.row] < blocks[above.col]
    return canonical((A + above)[rng.permutation(n)][:, rng.permutation(n)])


MATRICES = {
    "unsymmetric": lambda dtype: random_matrix(90, dtype, density=0.05),
    "dense": lambda dtype: random_matrix(150, dtype, density=0.8),
    "block triangular": block_triangular,
    "mesh": lambda dtype: phased(gallery.poisson(19, 23), dtype, hermitian=True),
    "elasticity": lambda dtype: phased(gallery.elasticity(4, 3, 3), dtype, hermitian=True),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("method", ["column", "front"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_entries_on_the_pattern(name, method, dtype):
    A = MATRICES[name](dtype)
    lu = core_factor(A, method)
    assert lu.method == method
    assert close(lu.inverse_on_pattern(), on_pattern(A), dtype)
    A.data *= np.linspace(1, 1.5, A.nnz).astype(A.real.dtype)
    lu.refactor(A.data)  # compiles nodes of several columns
    assert lu.method == method
    assert close(lu.inverse_on_pattern(), on_pattern(A), dtype)


@pytest.mark.parametrize("name", ["mesh", "elasticity"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_entries_of_cholesky(name, dtype):
    A = MATRICES[name](dtype)
    Z = gs.cholesky(sp.tril(A)).selected_inverse()
    assert close(Z.toarray(), dense_inverse(A) * stored(A), dtype)
    assert abs(Z - Z.conj().T).max() == 0


@pytest.mark.parametrize("dtype", "fdFD")
def test_selected_inverse_has_the_pattern_that_was_asked_for(dtype):
    A = random_matrix(90, dtype, density=0.05)
    lu, inverse = gs.splu(A), dense_inverse(A)
    for pattern, has in (("A.T", stored(A).T), ("A", stored(A))):
        Z = lu.selected_inverse(pattern=pattern)
        assert (Z.format, Z.dtype, Z.shape, Z.nnz) == ("csc", A.dtype, A.shape, A.nnz)
        assert close(Z.toarray(), inverse * has, dtype)
    with pytest.raises(ValueError, match=r"pattern must be one of .* got 'B'"):
        lu.selected_inverse(pattern="B")


@pytest.mark.parametrize("dtype", "dF")
def test_diagonal_where_the_matrix_has_none_and_where_it_has(dtype):
    A = random_matrix(90, dtype, density=0.05)
    assert 0 < (A.diagonal() == 0).sum() < 90
    diagonal = gs.splu(A).inverse_diagonal()
    assert diagonal.dtype == A.dtype and diagonal.shape == (90,)
    assert close(diagonal, dense_inverse(A).diagonal(), dtype)


@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("density", [0, 0.02, 0.9])
def test_trace_inverse(dtype, density):
    A = random_matrix(90, dtype, density=0.05)
    lu = gs.splu(A)
    C = sp.random_array(A.shape, density=density, rng=np.random.default_rng(1), format="coo")
    for B in (A, 2 * A.T, C, C.tocsr() * 1j, C.toarray()):
        dense = B.toarray() if sp.issparse(B) else B
        expected = np.trace(dense_inverse(A) @ dense)
        size = np.sum(abs(dense_inverse(A)) * abs(dense.T))
        assert abs(lu.trace_inverse(B) - expected) <= 100 * EPS[dtype] * size
    with pytest.raises(ValueError, match=r"B has shape \(3, 3\)"):
        lu.trace_inverse(sp.eye_array(3))
