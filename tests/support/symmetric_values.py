"""Values that are not those of a Hermitian or symmetric matrix, on the host and on devices: bodies of tests."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error

from .small_matrices import EPS, canonical, phased, rhs, spd_matrix
from .solves import on_host

STATUS = gs.BatchStatus


def indefinite(dtype="d", hermitian=True):
    """A grid with eigenvalues of both signs; complex ones with entries of all phases."""
    return phased(canonical(gallery.poisson(8, 7) - 3.1 * sp.eye_array(56)), dtype, hermitian)


def made(kind, dtype="d", hermitian=True):
    """How a factor of this kind is made, and a matrix for it."""
    if kind == "cholesky":
        return gs.cholesky, spd_matrix(dtype=dtype)
    return gs.ldlt, indefinite(dtype, hermitian)


def columns_of(A):
    return np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))


def off_diagonal(A, below):
    """Where the first entry below the diagonal, or above it, is in A.data."""
    beside = A.indices > columns_of(A) if below else A.indices < columns_of(A)
    return int(np.flatnonzero(beside)[0])


def spoilt(A, how, size=0.25):
    """Values of A that are not symmetric any more, by `size` of the largest one."""
    values = A.data.copy()
    largest = abs(values).max()
    if how == "imaginary diagonal":
        values[np.flatnonzero(A.indices == columns_of(A))[3]] += 1j * size * largest
    else:
        values[off_diagonal(A, how == "below")] += size * largest
    return values


def ways_to_spoil(dtype, hermitian=True):
    return ["below", "above"] + ["imaginary diagonal"] * (hermitian and np.dtype(dtype).kind == "c")


def nearly(A, units):
    """Values of A, one of which differs from its counterpart by so many units of the precision of the largest one."""
    return spoilt(A, "below", units * EPS[A.dtype.char])


def right_hand_side(A):
    return rhs(A.shape[0], A.dtype)


# ---- on a device


def supernodal(kind, A, **options):
    return {"cholesky": gs.cholesky, "ldlt": gs.ldlt}[kind](A, engine="supernodal", **options)


def check_holds(factor, A):
    b = right_hand_side(A)
    assert backward_error(A, on_host(factor.solve(b)), b) < 200 * EPS[A.dtype.char]


def check_values_on_the_device(cupy, kind, dtype):
    """Calls that nobody waited for raise with the next one, and others at once; the values before are held again."""
    _, A = made(kind, dtype)
    factor, b = supernodal(kind, A), cupy.asarray(right_hand_side(A))
    for how in ways_to_spoil(dtype):
        bad = cupy.asarray(spoilt(A, how))
        factor.refactor(bad)
        with pytest.raises(gs.NotHermitianError, match=f"{kind}: A"):
            factor.solve(b)
        check_holds(factor, A)
        with pytest.raises(gs.NotHermitianError, match=f"{kind}: A"):
            factor.refactor_solve(bad, b)
        check_holds(factor, A)
        factor.refactor(bad)
        with pytest.raises(gs.NotHermitianError):
            factor.refactor(cupy.asarray(2 * A.data))
        check_holds(factor, A)
    factor.refactor(cupy.asarray(nearly(A, 900)))
    factor.solve(b)


def check_deferred_calls(cupy, kind):
    """With check="later" the values before are gone; an error in between is not forgotten."""
    _, A = made(kind)
    factor, b = supernodal(kind, A), cupy.asarray(right_hand_side(A))
    good, bad = cupy.asarray(A.data), cupy.asarray(spoilt(A, "below"))
    for values in (good, good, bad):
        factor.refactor_solve(values, b, check="later")
    with pytest.raises(gs.NotHermitianError, match=f"{kind}: A") as raised:
        factor.check()
    assert "until it is refactored" in raised.value.__notes__[0]
    with pytest.raises(RuntimeError, match="holds no values"):
        factor.solve(b)
    for values in (good, bad, good):
        factor.refactor(values, check="later")
        factor.solve(b, check="later")
    with pytest.raises(gs.AccuracyError, match="Hermitian or symmetric matrix, first in refactorization 2 of 3"):
        factor.check()
    check_holds(factor, A)
    factor.refactor(bad)  # to be waited for
    factor.solve(b, check="later")
    with pytest.raises(gs.NotHermitianError):
        factor.check()
    check_holds(factor, A)


def check_batches(put, A, count):
    """Systems whose values are not Hermitian are flagged, and the others have the bits that they have without them."""
    values = np.stack([(1 + k / 8) * A.data for k in range(count)]).astype(A.dtype)
    bad, failed = values.copy(), [1, count - 1] + [2] * (A.dtype.kind == "c")
    for system, how in zip(failed, ways_to_spoil(A.dtype), strict=True):
        bad[system] *= spoilt(A, how) / A.data
    right = np.setdiff1d(np.arange(count), failed)
    b = put(np.stack([right_hand_side(A)] * count))
    batch = gs.cholesky_batch(A, put(values), engine="supernodal")
    expected = on_host(batch.solve(b))
    for ask in (lambda: batch.refactor(put(bad)) or batch.solve(b), lambda: batch.refactor_solve(put(bad), b)):
        x = on_host(ask())
        assert np.flatnonzero(batch.status == STATUS.NOT_HERMITIAN).tolist() == sorted(failed)
        assert np.isnan(x[failed]).all()
        np.testing.assert_array_equal(x[right], expected[right])
    batch.refactor(put(values))
    np.testing.assert_array_equal(on_host(batch.solve(b)), expected)
    with pytest.raises(gs.BatchError, match="not hermitian"):
        gs.cholesky_batch(A, put(bad), engine="supernodal", errors="raise")


def check_deferred_batches(cupy):
    A, count = spd_matrix(), 34
    values = cupy.asarray(np.stack([A.data] * count))
    bad, b = values.copy(), cupy.asarray(np.stack([right_hand_side(A)] * count))
    bad[3] = cupy.asarray(spoilt(A, "below"))
    bad[33] = cupy.asarray(spoilt(A, "above"))
    batch = gs.cholesky_batch(A, values, engine="supernodal")
    x = on_host(batch.refactor_solve(bad, b, check="later"))
    assert np.flatnonzero(np.isnan(x).all(axis=1)).tolist() == [3, 33]
    assert np.flatnonzero(np.isinf(batch.check())).tolist() == [3, 33]
    assert np.flatnonzero(batch.status == STATUS.NOT_HERMITIAN).tolist() == [3, 33]
    batch.refactor_solve(bad, b, check="later")
    batch.refactor_solve(values, b, check="later")
    batch.check()
    assert np.flatnonzero(batch.status == STATUS.UNTRUSTED).tolist() == [3, 33]
