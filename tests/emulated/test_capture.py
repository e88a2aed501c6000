"""Deferred calls, and graphs that the caller captures, on a device, emulated or not: no host, and nothing forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support import fake_cupy
from support.column_engines import bordered, harder
from support.emulated_device import memory_at
from support.fake_cupy import aligned
from support.newton import Newton
from support.small_matrices import EPS, dtypes, phased, random_matrix, rhs, spd_matrix
from support.solves import on_host


@pytest.fixture
def device(device, cupy):
    return device


ENGINES = pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])


class Step:
    """A factor, arrays on the device, and a refactorization with a solve that was made once and can be captured."""

    def __init__(self, A, engine="supernodal", make=gs.splu, columns=(), **options):
        self.A, self.factor = A, make(A, engine=engine, **options)
        self.values = fake_cupy.asarray(A.data)
        self.b = fake_cupy.asarray(np.asfortranarray(rhs(A.shape[0], A.dtype, columns)))
        self.x = fake_cupy.asarray(self.b)
        self()

    def __call__(self):
        self.factor.refactor_solve(self.values, self.b, check="later", out=self.x)

    def captured(self, device):
        with device.capture() as graph:
            self()
        return graph

    def error(self, A):
        return backward_error(A, np.asarray(self.x), np.asarray(self.b))


# ---- without a capture


def test_a_step_is_one_launch_and_the_host_does_not_wait(device):
    step = Step(random_matrix())
    for _ in range(3):  # arrays that come again are used where they lie
        step()
    device.counts.clear()
    step()
    assert device.counts == {"replay": 1}
    np.testing.assert_array_equal(step.x, step.factor.solve(np.asarray(step.b)))
    assert step.factor.stats.n_refactor == 5


def test_a_deferred_solve_after_values_that_a_call_would_have_waited_for(device):
    """It has the status of the refactorization, and the values before come back."""
    step = Step(random_matrix())
    x, spoilt = np.array(step.factor.solve(step.b)), fake_cupy.asarray(step.A.data)
    spoilt[7] = np.nan
    step.factor.refactor(spoilt)
    step.factor.solve(step.b, check="later")
    with pytest.raises(gs.NonFiniteError):
        step.factor.check()
    np.testing.assert_array_equal(step.factor.solve(step.b), x)
    step.factor.refactor(fake_cupy.asarray(2 * step.A.data))
    step.factor.solve(step.b, check="later")
    assert step.factor.check() < 100 * EPS["d"] and step.factor.stats.n_refactor == 2


def test_values_that_the_processor_has_to_solve_with(device):
    """Pivots that a device cannot choose: a deferred call raises before it does anything; the next values are fine."""
    step = Step(random_matrix(40))
    step.factor.refactor(harder(step.A).data)
    step.factor.solve(step.b)
    assert step.factor.stats.n_repivoted > 0
    with pytest.raises(RuntimeError, match="need the pivots of the CPU engine"):
        step.factor.solve(step.b, check="later")
    step()
    assert step.factor.check() < 100 * EPS["d"] and step.error(step.A) < 100 * EPS["d"]


# ---- captured


@ENGINES
def test_newton_with_no_host_in_it(backend, captured, engine):
    steps = 100
    newton, expected = Newton(backend.asarray, engine), Newton(backend.asarray, engine).run(steps)
    launch = newton.capture(captured)
    counts = getattr(newton.factor.parts()[0].commands.program.device, "counts", {})
    counts.clear()
    for x in expected:
        launch()
        if engine == "glu":  # whose sums differ in their last bits on a GPU
            np.testing.assert_allclose(on_host(newton.x), x, rtol=1e-9, atol=1e-12)
        else:
            assert on_host(newton.x).tobytes() == x.tobytes()
    assert not counts  # nothing was copied, allocated or waited for
    assert 0 < newton.factor.check() < 100 * EPS["d"]
    assert newton.factor.stats.n_refactor == steps + 1 and newton.factor.check() is None


def test_what_is_captured_copies_and_waits_for_nothing(device):
    step = Step(random_matrix())
    device.counts.clear()
    step.captured(device)
    assert not {"copy", "synchronize", "allocate", "replay", "move_status"} & set(device.counts)
    assert device.counts["dependent"] > 0


@pytest.mark.parametrize("order", ["first", "last", 1])
@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("trans", "NTH")
def test_solves_and_refactorizations_of_their_own(device, dtype, trans, order):
    device.order = order
    step, plain = Step(phased(random_matrix(), dtype)), gs.splu(phased(random_matrix(), dtype), engine="supernodal")
    A, factor, values, b, x = step.A, step.factor, step.values, step.b, step.x
    factor.refactor(values, check="later")
    factor.solve(b, trans, check="later", out=x)
    with device.capture() as refactor:
        factor.refactor(values, check="later")
    with device.capture() as solve:
        assert factor.solve(b, trans, check="later", out=x) is x
    for scale in (2, 3):
        values[...] = scale * A.data
        refactor.launch()
        solve.launch()
        plain.refactor(values)
        assert x.tobytes() == plain.solve(b, trans).tobytes()
        assert step.error(scale * {"N": A, "T": A.T, "H": A.conj().T}[trans]) < 100 * EPS[dtype]
    assert factor.check() < 100 * EPS[dtype]


@pytest.mark.parametrize("columns", [(1,), (3,), (40,)])
def test_several_right_hand_sides(device, columns):
    step, plain = (Step(spd_matrix(), make=gs.cholesky, columns=columns) for _ in range(2))
    graph = step.captured(device)
    step.values *= 2
    graph.launch()
    plain.factor.refactor(step.values)
    np.testing.assert_array_equal(step.x, plain.factor.solve(step.b))


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_values_in_the_order_of_the_caller_and_arrays_that_kernels_cannot_take(device):
    given = sp.csr_array(random_matrix())
    step, plain = (Step(given) for _ in range(2))
    step.values, step.b, step.x = (aligned(array, 8) for array in (step.values, step.b, step.x))
    step()
    graph = step.captured(device)
    for scale in (2, 3):
        step.values[...] = scale * given.data
        graph.launch()
        np.testing.assert_array_equal(step.x, plain.factor.refactor_solve(step.values, step.b))
    assert step.factor.check() < 100 * EPS["d"]


def test_the_solution_over_the_right_hand_side(device):
    step = Step(random_matrix())
    step.factor.solve(step.x, check="later", out=step.x)
    step.x[...] = step.b
    with device.capture() as graph:
        step.factor.solve(step.x, check="later", out=step.x)
    graph.launch()
    np.testing.assert_array_equal(step.x, step.factor.solve(np.asarray(step.b)))
    assert step.factor.check() is None  # that call has read the status


def test_two_factors_in_one_graph(device):
    first, second = Step(random_matrix()), Step(spd_matrix(60), make=gs.cholesky)
    second.b = first.x
    first.factor.solve(first.b, check="later", out=first.x)
    with device.capture() as graph:
        first.factor.solve(first.b, check="later", out=first.x)
        second()
    for scale in (1.0, 4.0):
        second.values[...] = scale * second.A.data
        graph.launch()
        np.testing.assert_allclose(scale * second.A @ np.asarray(second.x), np.asarray(first.x), rtol=1e-10)
        np.testing.assert_allclose(first.A @ np.asarray(first.x), np.asarray(first.b), rtol=1e-10)
    assert first.factor.check() < 1e-14 and second.factor.check() < 1e-14


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_captured_and_plain_calls_take_turns(backend, captured, make):
    newton = Newton(backend.asarray, "supernodal", make)
    launch, b = newton.capture(captured), rhs(16)
    for times in (1, 10, 2):
        launch(times)
        held = sp.csc_array((on_host(newton.values), newton.A.indices, newton.A.indptr))
        assert backward_error(held, newton.factor.solve(b), b) < 100 * EPS["d"]  # of the replay's values
        np.testing.assert_allclose(newton.factor.slogdet()[1], np.linalg.slogdet(held.toarray())[1])
        updated = newton.factor.updated(b)
        newton.factor.refactor(5 * newton.A.data)
        assert backward_error(5 * newton.A, newton.factor.solve(b), b) < 100 * EPS["d"]
        with pytest.raises(RuntimeError, match="was refactored since"):
            updated.solve(b)
    assert on_host(newton.x).tobytes() == Newton(backend.asarray, "supernodal", make).run(13)[-1].tobytes()


def test_an_update_is_of_the_values_held_before_a_replay(backend, captured):
    newton, U = Newton(backend.asarray, "supernodal"), rhs(16)
    launch = newton.capture(captured)
    updated = newton.factor.updated(U)
    held = sp.csc_array((on_host(newton.values), newton.A.indices, newton.A.indptr)) + np.outer(U, U)
    assert backward_error(sp.csc_array(held), updated.solve(U), U) < 100 * EPS["d"]
    launch()
    with pytest.raises(RuntimeError, match="was refactored since"):
        updated.solve(U)


# ---- what goes wrong: a later call finds it, and says in which refactorization


@ENGINES
def test_a_nan_in_between_is_not_forgotten(backend, captured, engine):
    newton = Newton(backend.asarray, engine)
    launch = newton.capture(captured)
    newton.factor.check()
    launch(29)
    newton.spoilt[...] = np.nan
    launch()
    newton.spoilt[...], newton.x[...] = 1, 0
    launch(30)
    with pytest.raises(gs.AccuracyError, match="first in refactorization 30 of 60"):
        newton.factor.check()
    assert newton.factor.check() is None
    launch()
    assert newton.factor.check() < 100 * EPS["d"]


@ENGINES
def test_a_nan_at_the_end_leaves_no_values(backend, captured, engine):
    newton = Newton(backend.asarray, engine)
    launch, b = newton.capture(captured), rhs(16)
    launch(2)
    newton.spoilt[...] = np.nan
    launch()
    with pytest.raises(gs.NonFiniteError) as raised:
        newton.factor.solve(b)  # any call that waits reads the status
    assert "until it is refactored" in raised.value.__notes__[0]
    for call in (
        lambda: newton.factor.solve(b),
        lambda: newton.factor.L,
        newton.factor.slogdet,
        lambda: newton.factor.solve(newton.residual, check="later"),
    ):
        with pytest.raises(RuntimeError, match="holds no values"):
            call()
    with pytest.raises(gs.NonFiniteError):
        newton.factor.refactor(np.nan * newton.A.data)
    with pytest.raises(RuntimeError, match="holds no values"):
        newton.factor.solve(b)
    newton.factor.refactor(newton.A.data)
    assert backward_error(newton.A, newton.factor.solve(b), b) < 10 * EPS["d"]
    newton.spoilt[...], newton.x[...] = 1, 0
    launch()
    assert newton.factor.check() < 100 * EPS["d"]


@pytest.mark.parametrize(
    ("make", "by", "error"), [(gs.splu, 0.0, RuntimeError), (gs.cholesky, -1.0, gs.NotPositiveDefiniteError)]
)
def test_values_without_a_factor(backend, captured, make, by, error):
    newton = Newton(backend.asarray, "supernodal", make)
    launch = newton.capture(captured)
    newton.spoilt[...] = by
    launch()
    with pytest.raises(error, match=r"exactly singular|not positive definite"):
        newton.factor.check()
    with pytest.raises(RuntimeError, match="holds no values"):
        newton.factor.solve(rhs(16))
    for each in (by, 1):
        newton.spoilt[...], newton.x[...] = each, 0
        launch()
    with pytest.raises(gs.AccuracyError, match=r"of 2 solutions|1 of 2"):
        newton.factor.check()


def test_values_that_are_not_hermitian(device):
    step = Step(spd_matrix(), make=gs.cholesky)
    graph, good, bad = step.captured(device), step.A.data, step.A.data.copy()
    bad[1] += abs(bad).max()
    for values, error, match in (
        ([good, bad, good], gs.AccuracyError, "first in refactorization 3 of 4"),
        ([bad], gs.NotHermitianError, "Hermitian"),
    ):
        for each in values:
            step.values[...] = each
            graph.launch()
        with pytest.raises(error, match=match):
            step.factor.check()
    step.values[...] = good
    graph.launch()
    assert step.factor.check() < 1e-14


@ENGINES
@pytest.mark.parametrize("refine", ["auto", "never"])
def test_bad_pivots_are_found_and_chosen_again(device, engine, refine):
    step = Step(random_matrix(40), engine, refine=refine)
    graph, bad = step.captured(device), harder(step.A)
    graph.launch()
    error = step.factor.check()
    assert error is None if refine == "never" else error < 100 * EPS["d"]
    step.values[...] = bad.data
    graph.launch()
    with pytest.raises(gs.AccuracyError, match="1 solutions since the last check cannot be trusted"):
        step.factor.check()
    b = np.asarray(step.b)
    assert backward_error(bad, step.factor.solve(b), b) < 1e-9 and step.factor.stats.n_repivoted > 0


def test_a_graph_of_other_pivots_is_not_taken_for_the_factor(device):
    step = Step(random_matrix(40), "sflu")
    graph, bad, b = step.captured(device), harder(step.A), np.asarray(step.b)
    step.factor.refactor(bad.data)
    assert step.factor.stats.n_repivoted == 1
    for _ in range(2):
        graph.launch()
        with pytest.raises(gs.AccuracyError, match="capture it again"):
            step.factor.solve(b)
        assert backward_error(bad, step.factor.solve(b), b) < 100 * EPS["d"]
    step.values[...] = 2 * bad.data
    step()
    new, good = step.captured(device), np.array(step.values)
    step.values[...] = np.nan
    for each in (new, graph):
        each.launch()
    with pytest.raises(gs.NonFiniteError) as raised:
        step.factor.check()
    assert "capture it again" in raised.value.__notes__[-1]
    step.values[...] = good
    new.launch()
    assert step.factor.check() < 100 * EPS["d"] and step.error(2 * bad) < 100 * EPS["d"]


@pytest.mark.parametrize(
    ("engine", "long_rows"), [*((engine, False) for engine in ("supernodal", "glu", "crisscross")), ("sflu", True)]
)
def test_an_inaccurate_solve_in_between_is_found(device, engine, long_rows):
    step = Step(bordered("d", 200) if long_rows else random_matrix(), engine)
    graph = step.captured(device)
    step.factor.check()
    held = step.factor._core.commands.buffers.values
    b, x = fake_cupy.asarray(step.b), fake_cupy.asarray(step.b)
    step.factor.solve(b, check="later", out=x)
    with device.capture() as solve:
        step.factor.solve(b, check="later", out=x)
    for number in range(20):
        graph.launch()
        if number == 6:
            memory_at(held.pointer, held.nbytes).view("d")[...] *= 1 + 1e-9
        solve.launch()
    with pytest.raises(gs.AccuracyError, match=r"largest backward error is [1-9.]*e-10, of solution 1[56]\b"):
        step.factor.check()
    graph.launch()
    solve.launch()
    assert step.factor.check() < 10 * EPS["d"]


# ---- what cannot be captured


def test_calls_that_wait_are_refused_and_the_capture_goes_on(backend, captured):
    newton = Newton(backend.asarray, "supernodal")
    newton.solve()

    def body(kernels):
        for call in (
            lambda: newton.factor.solve(newton.residual),
            lambda: newton.factor.refactor(newton.values),
            lambda: newton.factor.refactor_solve(newton.values, newton.residual),
            newton.factor.check,
            lambda: newton.factor.stats,
            lambda: newton.factor.L,
        ):
            with pytest.raises(RuntimeError, match="the current stream is captured"):
                call()
        newton.body(kernels)

    captured(body)(3)
    assert newton.factor.check() < 100 * EPS["d"]


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_first_call_cannot_be_captured(device, columns):
    A = random_matrix()
    factor, b = gs.splu(A, engine="supernodal"), fake_cupy.asarray(np.asfortranarray(rhs(60, "d", columns)))
    with device.capture(), pytest.raises(RuntimeError, match="make the same call once before"):
        factor.solve(b, check="later", out=fake_cupy.empty(b.shape, "d", order="F"))
    x = factor.solve(b, check="later")
    with device.capture() as graph:
        factor.solve(b, check="later", out=x)
    graph.launch()
    assert factor.check() < 100 * EPS["d"]
