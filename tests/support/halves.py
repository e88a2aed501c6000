"""Schur complements and changes of low rank of factors on a device: bodies of tests in the emulator and on a GPU."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.timing import backward_error

from .small_matrices import EPS, rhs
from .solves import on_host


def check_schur(cupy, A, indices, **kind):
    """The factor of the rest, the complement and both halves where the values are."""
    symbolic = gs.analyze(A, schur=indices, engine="supernodal", **kind)
    M = A.toarray()
    inner = np.setdiff1d(np.arange(len(M)), indices)
    left = M[np.ix_(indices, inner)] @ np.linalg.inv(M[np.ix_(inner, inner)])
    expected = M[np.ix_(indices, indices)] - left @ M[np.ix_(inner, indices)]
    b, limit = rhs(len(M), A.dtype, (2,)), 1e4 * EPS[A.dtype.char]
    for put in (np.asarray, cupy.asarray):
        factor = symbolic.factor(put(A.data))
        assert factor.interior.engine == "supernodal" and factor.eliminated
        assert type(factor.schur) is type(put(b))
        np.testing.assert_allclose(on_host(factor.schur), expected, atol=limit * np.abs(expected).max())
        y = np.linalg.solve(expected, on_host(factor.condense(put(b)))).astype(A.dtype)
        x = factor.expand(put(y))
        assert type(x) is type(put(b))
        assert np.abs(M @ on_host(x) - b).max() < limit * np.abs(on_host(x)).max() * len(M)


def check_updated(A, make, engine):
    """Woodbury by the factor of an engine: solves in every way, the determinant, and a matrix that becomes singular."""
    factor = make(A, engine=engine)
    # Small, so that in single precision the capacitance matrix is far from what is refused.
    U, V = (rhs(A.shape[0], A.dtype, (3,), seed) / 10 for seed in (1, 2))
    updated = factor.updated(U, V)
    M, b = A.toarray() + U @ V.conj().T, rhs(A.shape[0], A.dtype)
    for trans, op in (("N", M), ("T", M.T), ("H", M.conj().T)):
        assert backward_error(op, updated.solve(b, trans), b) < 100 * EPS[A.dtype.char]
    np.testing.assert_allclose(updated.slogdet(), np.linalg.slogdet(M), rtol=1e4 * EPS[A.dtype.char])
    column, unit = A[:, [0]].toarray(), np.eye(len(M), 1, dtype=A.dtype)
    with pytest.raises(gs.IllConditionedUpdateError):
        factor.updated(-column, unit)  # leaves a column of zeros


def check_changes(A, C):
    """Updates and downdates of a factor that an engine holds; one that is refused leaves it as it was."""
    ch, M, b = gs.cholesky(A, engine="supernodal"), A.toarray(), rhs(A.shape[0], A.dtype)
    for change, sign in ((ch.update, 1), (ch.downdate, -1)):
        change(C)
        M = M + sign * C @ C.conj().T
        assert backward_error(M, ch.solve(b), b) < 100 * EPS[A.dtype.char]
        np.testing.assert_allclose(ch.logdet(), np.linalg.slogdet(M)[1], rtol=1e4 * EPS[A.dtype.char])
    with pytest.raises(gs.NotPositiveDefiniteError):
        ch.downdate(100 * C)
    assert backward_error(M, ch.solve(b), b) < 100 * EPS[A.dtype.char]
    ch.refactor(2 * A.data)
    assert backward_error(2 * A, ch.solve(b), b) < 100 * EPS[A.dtype.char]
    assert ch.engine == "supernodal"


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
