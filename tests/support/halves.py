"""Schur complements and changes of low rank of factors on a device: bodies of tests in the emulator and on a GPU."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error

from .small_matrices import EPS, rhs, spd_matrix
from .solves import on_host


def near_definite(n, dtype="d"):
    """Unsymmetric, and regular without any of its unknowns."""
    A = spd_matrix(n, dtype)
    A.data *= np.random.default_rng(2).uniform(0.95, 1.05, A.nnz).astype(A.data.real.dtype)
    return A


def dense_schur(M, indices):
    inner = np.setdiff1d(np.arange(len(M)), indices)
    left = M[np.ix_(indices, inner)] @ np.linalg.inv(M[np.ix_(inner, inner)])
    return M[np.ix_(indices, indices)] - left @ M[np.ix_(inner, indices)]


def saddle_point(n, dtype="d"):
    """Hermitian with eigenvalues of both signs, regular without its last unknowns."""
    K, J = spd_matrix(n, dtype), sp.random_array((n // 3, n), density=0.2, rng=3).astype(dtype)
    J = J + sp.eye_array(n // 3, n, dtype=dtype)
    return sp.csc_array(sp.block_array([[K, J.conj().T], [J, None]]))


KINDS = {"lu": near_definite, "cholesky": spd_matrix, "ldlt": saddle_point}


def two_grids(kind):
    """One of which knows nothing of the interface, and two unknowns alone."""
    A = sp.csc_array(sp.block_diag([gallery.poisson(24, 24), gallery.poisson(11, 11), sp.eye_array(2)]))
    A.sort_indices()
    if kind == "lu":
        A.data *= np.random.default_rng(1).uniform(0.9, 1.1, A.nnz)
    if kind == "ldlt":
        A = sp.csc_array(A - sp.diags_array(np.where(np.arange(A.shape[0]) % 5 == 0, 9.0, 0.0)))
    return A, np.unique(np.r_[np.arange(3, 576, 24), 300:325, 410:420])


def analyzed(kind, A, indices, **options):
    return gs.analyze(A, cholesky=kind == "cholesky", ldlt=kind == "ldlt", schur=indices, **options)


def check_schur(cupy, A, indices, kind="lu", **options):
    """The complement, the factor of the rest and both halves where the values are, and those of other values."""
    symbolic = analyzed(kind, A, indices, engine="supernodal", **options)
    for put in (np.asarray, cupy.asarray):
        values = put(A.data.copy())
        factor = symbolic.factor(values)
        values *= 7  # the caller's
        check_halves(put, factor, A, indices)
        for scale in (2, 3):
            factor.refactor(put(scale * A.data))
        check_halves(put, factor, 3 * A, indices)
        again = pickle.loads(pickle.dumps(factor))
        np.testing.assert_allclose(
            on_host(again.schur), on_host(factor.schur), atol=abs(on_host(factor.schur)).max() * 1e3 * EPS[A.dtype.char]
        )
        with pytest.raises(gs.NonFiniteError):
            factor.refactor(put(A.data * np.array([*[1] * (A.nnz - 1), np.nan], A.dtype)))
        check_halves(put, factor, 3 * A, indices)


def check_halves(put, factor, A, indices):
    M = A.toarray()
    expected = dense_schur(M.astype("D" if M.dtype.kind == "c" else "d"), indices)
    b, limit = rhs(len(M), A.dtype, (2,)), 1e4 * EPS[A.dtype.char]
    assert factor.interior.engine == "supernodal" and factor.eliminated
    assert type(factor.schur) is type(put(b)) and factor.schur.dtype == A.dtype
    np.testing.assert_allclose(on_host(factor.schur), expected, atol=limit * np.abs(expected).max())
    y = np.linalg.solve(expected, on_host(factor.condense(put(b)))).astype(A.dtype)
    x = factor.expand(put(y))
    assert type(x) is type(put(b))
    assert np.abs(M @ on_host(x) - b).max() < limit * np.abs(M).max() * np.abs(on_host(x)).max() * len(M)


def check_widened(cupy, A, C):
    """A factor whose pattern an update widened takes values of the pattern that it was made of, wherever they are."""
    ch, b = gs.cholesky(A, engine="supernodal"), rhs(A.shape[0], A.dtype)
    entries = ch.nnz
    ch.update(C)
    assert ch.nnz != entries  # analysed anew, with the entries that came
    values = 3 * A.data
    for put in (np.asarray, cupy.asarray):
        x = ch.refactor_solve(put(values), put(b))
        assert type(x) is type(put(b))
        assert backward_error(3 * A, on_host(x), b) < 100 * EPS[A.dtype.char]
        ch.update(C)
    with pytest.raises(ValueError, match="pass check='now'"):
        ch.refactor(cupy.asarray(values), check="later")
