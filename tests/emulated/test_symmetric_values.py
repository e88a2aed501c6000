"""New values that are not symmetric, of engines on an emulated device: from the host, on the device, and deferred."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support import fake_cupy
from support.emulated_host import EmulatedHost
from support.small_matrices import canonical, spd_matrix
from support.solves import check_error_comes_later
from support.symmetric_values import (
    check_batches,
    check_deferred_batches,
    check_deferred_calls,
    check_holds,
    check_values_on_the_device,
    made,
    nearly,
    right_hand_side,
    spoilt,
    supernodal,
)

pytestmark = pytest.mark.usefixtures("cupy")

KINDS = pytest.mark.parametrize("kind", ["cholesky", "ldlt"])
STATUS = gs.BatchStatus
PUTS = pytest.mark.parametrize("put", [np.asarray, fake_cupy.asarray], ids=["host", "device"])


@KINDS
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array, "duplicates"])
def test_values_from_the_host(device, kind, dtype, form):
    _, A = made(kind, dtype)
    given = repeated(A) if form == "duplicates" else form(A)
    factor = supernodal(kind, given)
    factor.refactor(2 * given.data)
    for k in range(3):
        bad = given.data.copy()
        off = np.flatnonzero(given.tocoo().row != given.tocoo().col)[k]
        bad[off] += 3 * abs(A.data).max()
        for ask in (lambda: factor.refactor(bad), lambda: factor.refactor_solve(bad, right_hand_side(A))):  # noqa: B023
            with pytest.raises(gs.NotHermitianError, match=f"^{kind}: A.* so A is not Hermitian"):
                ask()
            check_holds(factor, canonical(2 * A))
    factor.refactor(given.data)
    check_holds(factor, A)


def repeated(A):
    coo = sp.coo_array(A)
    return sp.coo_array((np.r_[coo.data, coo.data] / 2, (np.r_[coo.row, coo.row], np.r_[coo.col, coo.col])))


@KINDS
@pytest.mark.parametrize("dtype", "dF")
def test_values_on_the_device(device, cupy, kind, dtype):
    check_values_on_the_device(cupy, kind, dtype)


def test_the_error_comes_with_the_next_call(device, cupy):
    A = spd_matrix()
    error = pytest.raises(gs.NotHermitianError)
    check_error_comes_later(cupy, supernodal("cholesky", A), A, spoilt(A, "above"), error, np.asarray)


@PUTS
@pytest.mark.parametrize("dtype", "fdFD")
def test_rounding_is_none_of_it(device, put, dtype):
    A = spd_matrix(dtype=dtype)
    factor = supernodal("cholesky", A)
    factor.refactor(put(nearly(A, 900)))
    factor.solve(right_hand_side(A))
    factor.refactor(put(A.data))
    check_holds(factor, A)
    check_refused_by_a_step(factor, put(nearly(A, 1100)), right_hand_side(A))
    check_holds(factor, A)


def check_refused_by_a_step(factor, values, b, match="Hermitian"):
    """By the refactorization, or by the solve after it where that is what waits."""

    def step():
        factor.refactor(values)
        factor.solve(b)

    with pytest.raises(gs.NotHermitianError, match=match):
        step()


@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array])
def test_values_of_less_precision(device, form):
    """What the host has looked at by their own precision the device does not look at again."""
    A = form(spd_matrix())
    factor = supernodal("cholesky", A)
    single = canonical(A, "f")
    values = nearly(single, 900)
    for given in (sp.csc_array((values, single.indices, single.indptr), shape=A.shape), A.data.astype("f")):
        factor.refactor(given)
        factor.solve(np.ones(50))
    assert factor.stats.n_refactor == 2


@pytest.mark.parametrize("triangle", [sp.tril, sp.triu])
def test_one_triangle(device, cupy, triangle):
    part = canonical(triangle(spd_matrix(dtype="D")))
    factor = supernodal("cholesky", part)
    for put in (np.asarray, cupy.asarray):
        factor.refactor(put(2 * part.data))
        check_refused_by_a_step(factor, put(spoilt(part, "imaginary diagonal")), np.ones(50), "the conjugate of")
        assert abs(factor.slogdet().logabsdet - gs.cholesky(2 * part).slogdet().logabsdet) < 1e-9


@KINDS
def test_calls_that_nobody_waits_for(device, cupy, kind):
    check_deferred_calls(cupy, kind)


def test_captured_calls(device, cupy):
    A = spd_matrix()
    factor, b = supernodal("cholesky", A), cupy.asarray(right_hand_side(A))
    values, x = cupy.asarray(A.data), cupy.empty(50, "d")
    factor.refactor_solve(values, b, check="later", out=x)
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    graph.launch()
    assert factor.check() < 1e-14
    values[...] = spoilt(A, "below")
    graph.launch()
    values[...] = A.data
    graph.launch()
    with pytest.raises(gs.AccuracyError, match="first in refactorization 1 of 2"):
        factor.check()
    values[...] = spoilt(A, "above")
    graph.launch()
    with pytest.raises(gs.NotHermitianError):
        factor.check()
    values[...] = A.data
    graph.launch()
    assert factor.check() < 1e-14


@KINDS
@PUTS
def test_mixed_precision(device, kind, put):
    _, A = made(kind)
    factor = supernodal(kind, A, precision="mixed")
    factor.refactor(put(nearly(A, 900)))
    factor.refactor(put(A.data))
    for bad in (nearly(A, 1100), spoilt(A, "above")):
        with pytest.raises(gs.NotHermitianError, match=f"{kind}: A"):
            factor.refactor(put(bad))
        check_holds(factor, A)
    assert factor.stats.precision == "mixed"


@KINDS
def test_schur_complements(device, cupy, kind):
    _, A = made(kind)
    symbolic = gs.analyze(A, cholesky=kind == "cholesky", ldlt=kind == "ldlt", schur=[3, 17, 30], engine="supernodal")
    for put in (np.asarray, cupy.asarray):
        halves = symbolic.factor(put(A.data))
        before = halves.schur.copy()
        for how in ("below", "above"):
            with pytest.raises(gs.NotHermitianError):
                halves.refactor(put(spoilt(A, how)))
            assert np.array_equal(halves.schur, before)
        halves.refactor(put(2 * A.data))


@PUTS
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("count", [5, 40])
def test_batches(device, put, dtype, count):
    check_batches(put, spd_matrix(dtype=dtype), count)


@pytest.mark.parametrize("dtype", "dF")
def test_batches_are_as_strict_as_factors(device, cupy, dtype):
    A = spd_matrix(dtype=dtype)
    values = np.stack([nearly(A, units) for units in (0, 900, 1100, 0, 900)])
    batch = gs.cholesky_batch(A, cupy.asarray(values), engine="supernodal")
    assert np.flatnonzero(batch.status == STATUS.NOT_HERMITIAN).tolist() == [2]


def test_batches_that_nobody_waits_for(device, cupy):
    check_deferred_batches(cupy)


def test_batches_on_several_devices(monkeypatch, cupy):
    A, count = spd_matrix(), 70
    EmulatedHost([4] * 2).install(monkeypatch)
    values = np.stack([A.data] * count)
    values[69] = spoilt(A, "below")
    for put in (np.asarray, cupy.asarray):
        batch = gs.cholesky_batch(A, put(values), engine="supernodal", device=[0, 1])
        assert np.flatnonzero(batch.status).tolist() == [69]
        assert batch.status[69] == STATUS.NOT_HERMITIAN
