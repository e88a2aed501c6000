"""Calls of batches with check="later", captured and not, on a device, emulated or not: no host, nothing forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support import fake_cupy
from support.emulated_device import memory_at
from support.lockstep import CHOLESKY, LU, right_hand_sides, systems, transposed
from support.newton import Newton
from support.small_matrices import EPS, canonical, random_matrix
from support.solves import on_host

KINDS = pytest.mark.parametrize("make", [gs.splu_batch, gs.cholesky_batch])
STATUS = gs.BatchStatus


@pytest.fixture
def device(device, cupy):
    return device


def newton_steps(put, count=3, make=gs.splu_batch):
    return Newton(put, "supernodal", make, count=count)


@KINDS
def test_newton_with_no_host_in_it(backend, captured, make):
    newton, expected = newton_steps(backend.asarray, 40, make), newton_steps(backend.asarray, 40, make).run(50)[-1]
    launch, before = newton.capture(captured), gs.factorization_count()
    launch(50)
    assert on_host(newton.x).tobytes() == expected.tobytes()
    error = newton.factor.check()
    assert error.shape == (40,) and (error > 0).all() and (error < 100 * EPS["d"]).all()
    assert not newton.factor.status.any() and gs.factorization_count() == before
    assert np.isnan(newton.factor.check()).all()


def test_nothing_is_copied_or_waited_for(device, cupy, captured):
    """Captured or not."""
    newton = newton_steps(cupy.asarray)
    launch = newton.capture(captured)
    for ask in (newton.solve, lambda: captured(lambda call: newton.solve())):
        device.counts.clear()
        ask()
        assert not {"copy", "synchronize", "allocate", "replay"} & set(device.counts)
        assert device.counts["gather_lanes"] == 2 and device.counts["accumulate_lanes"] == 1
    device.counts.clear()
    launch(2)
    assert not device.counts


def test_systems_that_were_spoilt_in_between(backend, captured):
    """Programs that continue with the results get a status."""
    newton, expected, others = newton_steps(backend.asarray), newton_steps(backend.asarray).run(8)[-1], [0, 2]
    launch = newton.capture(captured)
    launch(4)
    newton.spoilt[1] = np.nan
    launch()
    x = on_host(newton.x)
    assert np.isnan(x[1]).all() and np.isfinite(x[others]).all()
    newton.spoilt[1], newton.x[1] = 1, 0
    launch(3)
    assert on_host(newton.x)[others].tobytes() == expected[others].tobytes()
    error, status = newton.factor.check(), newton.factor.status
    assert np.isinf(error[1]) and (error[others] < 100 * EPS["d"]).all()
    assert status.tolist() == [0, STATUS.UNTRUSTED, 0]
    launch()
    assert (newton.factor.check() < 100 * EPS["d"]).all() and not newton.factor.status.any()


def test_calls_that_wait_are_refused_and_the_capture_goes_on(backend, captured):
    newton = newton_steps(backend.asarray)
    newton.solve()
    before = newton.factor.status, gs.factorization_count()

    def body(kernels):
        for call in (
            lambda: newton.factor.solve(newton.residual),
            lambda: newton.factor.refactor(newton.values),
            lambda: newton.factor.refactor_solve(newton.values, newton.residual),
            newton.factor.check,
            newton.factor.slogdet,
            lambda: newton.factor.status,
        ):
            with pytest.raises(RuntimeError, match="the current stream is captured"):
                call()
        newton.solve()

    launch = captured(body)
    assert gs.factorization_count() == before[1] + 3  # of the call that was captured
    launch(2)
    assert (newton.factor.check() < 100 * EPS["d"]).all()
    assert np.array_equal(newton.factor.status, before[0])


@pytest.mark.parametrize(
    ("make", "dtype"),
    [(gs.splu_batch, "d"), (gs.splu_batch, "F"), (gs.cholesky_batch, "f"), (gs.cholesky_batch, "D")],
)
def test_solves_and_refactorizations_of_their_own(backend, captured, make, dtype):
    A = (LU if make is gs.splu_batch else CHOLESKY)["poisson"](dtype)
    made, given = systems(A, 3)
    values, b = backend.asarray(given), backend.asarray(right_hand_sides(A, 3))
    batch, plain = (make(A, values, engine="supernodal") for _ in range(2))
    x = backend.asarray(np.zeros(b.shape, dtype))
    batch.refactor(values, check="later")
    batch.solve(b, check="later", out=x)
    refactor = captured(lambda call: batch.refactor(values, check="later"))
    solves = [captured(lambda call, t=trans: batch.solve(b, t, check="later", out=x)) for trans in "NTH"]
    values *= 2
    refactor()
    plain.refactor(values)
    for trans, solve in enumerate(solves):
        solve()
        assert on_host(x).tobytes() == on_host(plain.solve(b, "NTH"[trans])).tobytes()
        for k, M in enumerate(made):
            assert backward_error(2 * transposed(M, trans), on_host(x)[k], on_host(b)[k]) < 100 * EPS[dtype]
    assert (batch.check() < 100 * EPS[dtype]).all()
    np.testing.assert_allclose(batch.slogdet()[1], plain.slogdet()[1])
    assert np.array_equal(batch.canonical(1), given[1] * 2)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_values_in_the_order_of_the_caller(device, captured):
    A = sp.csr_array(random_matrix(30, "D"))
    values, b = fake_cupy.asarray(np.array([A.data, 2 * A.data])), fake_cupy.asarray(right_hand_sides(A, 2))
    batch = gs.splu_batch(A, values, engine="supernodal")
    expected = np.asarray(batch.solve(b))
    x = batch.refactor_solve(values, b, check="later")
    assert type(x) is fake_cupy.ndarray and x.tobytes() == expected.tobytes()
    launch = captured(lambda call: batch.refactor_solve(values, b, check="later", out=x))
    values *= 4
    launch()
    np.testing.assert_allclose(x, expected / 4, rtol=1e-10)
    assert (batch.check() < 100 * EPS["d"]).all()


# ---- what becomes of systems


def failing(make):
    """Values of 6 systems, of which the third has no factor and the fifth is not finite, and what that is."""
    A = CHOLESKY["poisson"]("d")
    _, values = systems(A, 6)
    spoilt = values.copy()
    spoilt[2] *= 0
    spoilt[4, 7] = np.nan
    status = [0, 0, STATUS.SINGULAR if make is gs.splu_batch else STATUS.NOT_DEFINITE, 0, STATUS.NOT_FINITE, 0]
    return A, values, spoilt, status


@KINDS
def test_systems_that_fail_are_flagged_and_the_others_untouched(device, captured, make):
    A, good, spoilt, status = failing(make)
    values, b = fake_cupy.asarray(good), fake_cupy.asarray(right_hand_sides(A, 6))
    batch = make(A, values, engine="supernodal")
    expected, others = np.asarray(batch.solve(b)), [0, 1, 3, 5]
    x = batch.refactor_solve(values, b, check="later")
    launch = captured(lambda call: batch.refactor_solve(values, b, check="later", out=x))
    values[...] = spoilt
    launch()
    assert np.isnan(x).all(axis=1).tolist() == [kind > 0 for kind in status]
    assert x[others].tobytes() == expected[others].tobytes()
    assert batch.status.tolist() == status  # without a check
    assert np.isinf(batch.check()).tolist() == [kind > 0 for kind in status]
    values[...] = good
    launch()
    assert x.tobytes() == expected.tobytes()
    assert (batch.check() < 100 * EPS["d"]).all() and not batch.status.any()


@pytest.mark.parametrize("refine", ["auto", "never"])
def test_doubts_last_until_somebody_was_told(device, refine):
    A, good, spoilt, _ = failing(gs.splu_batch)
    b = fake_cupy.asarray(right_hand_sides(A, 6))
    batch = gs.splu_batch(A, good, engine="supernodal", refine=refine)
    for values in (good, spoilt, good):
        batch.refactor_solve(fake_cupy.asarray(values), b, check="later")
    flagged = [0, 0, STATUS.UNTRUSTED, 0, STATUS.UNTRUSTED, 0]
    assert batch.status.tolist() == flagged and batch.stats.untrusted == 2
    batch.solve(b)
    assert batch.status.tolist() == flagged
    assert np.isinf(batch.check()).tolist() == [kind > 0 for kind in flagged]
    assert batch.status.tolist() == flagged
    batch.solve(b, check="later")
    assert (batch.check() < 100 * EPS["d"]).all() and not batch.status.any()


def test_systems_that_need_other_pivots(device):
    """Their solutions are not to be trusted, and the next call that waits mends them."""
    A = canonical(sp.eye_array(60) * 10 + sp.random_array((60, 60), density=0.1, rng=np.random.default_rng(2)))
    values = np.array([A.data] * 4)
    values[2, A.indices == np.repeat(np.arange(60), np.diff(A.indptr))] *= 1e-14
    b = fake_cupy.asarray(right_hand_sides(A, 4))
    batch = gs.splu_batch(A, np.array([A.data] * 4), engine="supernodal")
    batch.refactor_solve(fake_cupy.asarray(values), b, check="later")
    batch.check()
    assert batch.status.tolist() == [0, 0, STATUS.UNTRUSTED, 0]
    x = np.asarray(batch.solve(b))
    assert batch.status.tolist() == [0, 0, STATUS.REPIVOTED, 0]
    M = sp.csc_array((values[2], A.indices, A.indptr), shape=A.shape)
    assert backward_error(M, x[2], np.asarray(b[2])) < 100 * EPS["d"]
    batch.solve(b, check="later")  # the device has no pivots but its own
    batch.check()
    assert batch.status.tolist() == [0, 0, STATUS.UNTRUSTED, 0]


def test_an_inaccurate_solution_in_between_is_found(device, captured):
    newton = newton_steps(fake_cupy.asarray)
    launch, held = newton.capture(captured), newton.factor._numeric._batch._memory["values"]
    x = fake_cupy.asarray(newton.arrays[3])
    newton.factor.solve(fake_cupy.asarray(newton.arrays[3]), check="later", out=x)
    newton.factor.check()
    b = fake_cupy.asarray(newton.arrays[3])
    solve = captured(lambda call: newton.factor.solve(b, check="later", out=x))
    launch(3)
    memory_at(held.pointer, held.nbytes).view("d")[1::32] *= 1 + 1e-2 * np.sin(np.arange(held.nbytes // 256))
    memory_at(newton.factor._numeric._batch._memory["factor"].pointer, 256).view("d")[1] *= 3
    solve()
    launch(3)
    error = newton.factor.check()
    assert error[1] > 1e-6 and (error[[0, 2]] < 10 * EPS["d"]).all()
    assert newton.factor.status.tolist() == [0, STATUS.UNTRUSTED, 0]


# ---- what is refused


@pytest.mark.parametrize("kind", ["refactor", "solve", "refactor_solve"])
def test_a_first_call_cannot_be_captured(device, captured, kind):
    newton, step = newton_steps(fake_cupy.asarray), fake_cupy.asarray(np.zeros((3, 16)))
    call = {
        "refactor": lambda: newton.factor.refactor(newton.values, check="later"),
        "solve": lambda: newton.factor.solve(newton.residual, check="later", out=step),
        "refactor_solve": newton.solve,
    }[kind]
    with device.capture(), pytest.raises(RuntimeError, match="make the same call once before"):
        call()
    assert not newton.factor.status.any()
    call()
    captured(lambda kernels: call())()
    newton.factor.check()
    assert not newton.factor.status.any()


def test_batches_that_take_no_such_calls(device):
    """Those of which the systems take turns, and values that have to be summed."""
    A, b = random_matrix(20), fake_cupy.asarray(np.ones((40, 20)))
    values = np.array([A.data] * 40)
    some = gs.splu_batch(A, values[:32], engine="supernodal").stats.bytes
    in_pieces = gs.splu_batch(A, values, engine="supernodal", device_memory=some)
    with pytest.raises(TypeError, match="one after another"):
        in_pieces.solve(b, check="later")
    twice = sp.coo_array((np.ones(4), ([0, 0, 1, 1], [0, 0, 1, 0])), shape=(2, 2))
    batch = gs.splu_batch(twice, np.ones((2, 4)), engine="supernodal")
    with pytest.raises(TypeError, match="sum duplicates"):
        batch.refactor(fake_cupy.asarray(np.ones((2, 4))), check="later")
