"""Calls of batches with check="later", captured and not, on an emulated device: no host, and nothing forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support import batch_newton, fake_cupy
from support.batch_newton import BatchNewton
from support.emulated_device import memory_at
from support.lockstep import CHOLESKY, LU, right_hand_sides, systems, transposed
from support.small_matrices import EPS, canonical, random_matrix

pytestmark = pytest.mark.usefixtures("cupy")

KINDS = pytest.mark.parametrize("make", [gs.splu_batch, gs.cholesky_batch])
STATUS = gs.BatchStatus


class Newton(BatchNewton):
    def __init__(self, count=3, make=gs.splu_batch, spoilt=None, **options):
        A = canonical(gallery.poisson(3, 3) + 0.1 * sp.eye_array(9))
        super().__init__(fake_cupy.asarray, A, count, make, **options)
        self.time, self.spoilt = 0, spoilt or {}

    def assemble(self):
        self.time += 1
        x = np.asarray(self.x)
        self.values[...] = self.given
        self.values[:, self.diagonal] += 3 * x**2
        self.values[self.spoilt.get(self.time, [])] = np.nan
        self.residual[...] = [np.sin(self.time / 50) * self.b[s] - self.matrix(s) @ x[s] for s in range(self.count)]
        self.residual -= x**3

    def update(self):
        self.x += self.step

    def capture(self, device):
        """Replays of a step, after one that was not captured."""
        self.solve()
        self.batch.check()

        def body(call):
            call(self.assemble)
            self.solve()
            call(self.update)

        return captured(device, body)


def captured(device, body):
    """Replays of what `body`, which takes kernels of the caller's, asks of the device."""
    with device.capture() as graph:
        body(graph.call)

    def launch(times=1):
        for _ in range(times):
            graph.launch()

    return launch


@pytest.mark.parametrize(("make", "steps"), [(gs.splu_batch, 100), (gs.cholesky_batch, 100)])
def test_newton_with_no_host_in_it(device, make, steps):
    newton = Newton(make=make)
    launch, expected = newton.capture(device), Newton(make=make).waited_for(steps)
    device.counts.clear()
    launch()
    assert not device.counts  # nothing was copied, allocated or waited for
    batch_newton.check_steps(newton, lambda steps: launch(steps - 1), expected, steps)


def test_nothing_is_copied_or_waited_for(device):
    """Captured or not."""
    newton = Newton()
    newton.capture(device)
    for ask in (newton.solve, lambda: captured(device, lambda call: newton.solve())):
        device.counts.clear()
        ask()
        assert not {"copy", "synchronize", "allocate", "replay"} & set(device.counts)
        assert device.counts["gather_lanes"] == 2 and device.counts["accumulate_lanes"] == 1


def test_systems_that_were_spoilt_in_between(device):
    newton, steps = Newton(spoilt={5: [1]}), 8
    expected = Newton().waited_for(steps)
    batch_newton.check_spoilt_systems(newton, newton.capture(device), expected, 5, [1], steps)


def test_calls_that_wait_are_refused_and_the_capture_goes_on(device):
    newton = Newton()
    newton.solve()
    batch_newton.check_calls_that_wait(newton, lambda step: captured(device, lambda call: step()))


@pytest.mark.parametrize(
    ("make", "dtype"),
    [(gs.splu_batch, "d"), (gs.splu_batch, "F"), (gs.cholesky_batch, "f"), (gs.cholesky_batch, "D")],
)
def test_solves_and_refactorizations_of_their_own(device, make, dtype):
    A = (LU if make is gs.splu_batch else CHOLESKY)["poisson"](dtype)
    made, given = systems(A, 3)
    values, b = fake_cupy.asarray(given), fake_cupy.asarray(right_hand_sides(A, 3))
    batch, plain = (make(A, values, engine="supernodal") for _ in range(2))
    x = fake_cupy.empty(b.shape, dtype)
    batch.refactor(values, check="later")
    batch.solve(b, check="later", out=x)
    refactor = captured(device, lambda call: batch.refactor(values, check="later"))
    solves = [captured(device, lambda call, t=trans: batch.solve(b, t, check="later", out=x)) for trans in "NTH"]
    values *= 2
    refactor()
    plain.refactor(values)
    for trans, solve in enumerate(solves):
        solve()
        assert x.tobytes() == plain.solve(b, "NTH"[trans]).tobytes()
        for k, M in enumerate(made):
            assert backward_error(2 * transposed(M, trans), np.asarray(x[k]), np.asarray(b[k])) < 100 * EPS[dtype]
    assert (batch.check() < 100 * EPS[dtype]).all()
    np.testing.assert_allclose(batch.slogdet()[1], plain.slogdet()[1])
    assert np.array_equal(batch.canonical(1), given[1] * 2)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_values_in_the_order_of_the_caller(device):
    A = sp.csr_array(random_matrix(30, "D"))
    values, b = fake_cupy.asarray(np.array([A.data, 2 * A.data])), fake_cupy.asarray(right_hand_sides(A, 2))
    batch = gs.splu_batch(A, values, engine="supernodal")
    expected = np.asarray(batch.solve(b))
    x = batch.refactor_solve(values, b, check="later")
    assert type(x) is fake_cupy.ndarray and x.tobytes() == expected.tobytes()
    launch = captured(device, lambda call: batch.refactor_solve(values, b, check="later", out=x))
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
def test_systems_that_fail_are_flagged_and_the_others_untouched(device, make):
    A, good, spoilt, status = failing(make)
    values, b = fake_cupy.asarray(good), fake_cupy.asarray(right_hand_sides(A, 6))
    batch = make(A, values, engine="supernodal")
    expected, others = np.asarray(batch.solve(b)), [0, 1, 3, 5]
    x = batch.refactor_solve(values, b, check="later")
    launch = captured(device, lambda call: batch.refactor_solve(values, b, check="later", out=x))
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


def test_an_inaccurate_solution_in_between_is_found(device):
    newton = Newton(count=3)
    launch, held = newton.capture(device), newton.batch._numeric._batch._memory["values"]
    x = fake_cupy.asarray(newton.b)
    newton.batch.solve(fake_cupy.asarray(newton.b), check="later", out=x)
    newton.batch.check()
    b = fake_cupy.asarray(newton.b)
    solve = captured(device, lambda call: newton.batch.solve(b, check="later", out=x))
    launch(3)
    memory_at(held.pointer, held.nbytes).view("d")[1::32] *= 1 + 1e-2 * np.sin(np.arange(held.nbytes // 256))
    memory_at(newton.batch._numeric._batch._memory["factor"].pointer, 256).view("d")[1] *= 3
    solve()
    launch(3)
    error = newton.batch.check()
    assert error[1] > 1e-6 and (error[[0, 2]] < 10 * EPS["d"]).all()
    assert newton.batch.status.tolist() == [0, STATUS.UNTRUSTED, 0]


# ---- what is refused


@pytest.mark.parametrize("kind", ["refactor", "solve", "refactor_solve"])
def test_a_first_call_cannot_be_captured(device, kind):
    newton = Newton()
    call = {
        "refactor": lambda: newton.batch.refactor(newton.values, check="later"),
        "solve": lambda: newton.batch.solve(newton.residual, check="later", out=newton.step),
        "refactor_solve": newton.solve,
    }[kind]
    with device.capture(), pytest.raises(RuntimeError, match="make the same call once before"):
        call()
    assert not newton.batch.status.any()
    call()
    captured(device, lambda kernels: call())()
    newton.batch.check()
    assert not newton.batch.status.any()


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
