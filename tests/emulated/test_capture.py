"""Calls with check="later" in graphs that the caller captures, on an emulated device: no host, nothing forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.timing import backward_error
from support import fake_cupy
from support.column_engines import harder
from support.emulated_device import memory_at
from support.fake_cupy import aligned
from support.ladder import measure_first
from support.small_matrices import EPS, canonical, phased, random_matrix, rhs, spd_matrix

pytestmark = pytest.mark.usefixtures("cupy")

ENGINES = ["supernodal", "glu", "sflu", "crisscross"]


class Newton:
    """One step of Newton's method a time step for A x + x^3 = sin(t / 50) b: kernels of the caller's, and a factor."""

    def __init__(self, engine, make=gs.splu):
        self.A = canonical(gallery.poisson(4, 4) + 0.1 * sp.eye_array(16))
        n = self.A.shape[0]
        self.factor = make(self.A, engine=engine)
        self.diagonal = np.flatnonzero(self.A.indices == np.repeat(np.arange(n), np.diff(self.A.indptr)))
        self.values, self.b = fake_cupy.asarray(self.A.data), rhs(n)
        self.x, self.residual, self.step = (fake_cupy.asarray(np.zeros(n)) for _ in range(3))
        self.time, self.spoilt = 0, {}

    def assemble(self):
        self.time += 1
        self.values[...] = self.A.data
        self.values[self.diagonal] += 3 * self.x**2
        self.values *= self.spoilt.get(self.time, 1.0)
        self.residual[...] = np.sin(self.time / 50) * self.b - self.A @ np.asarray(self.x) - self.x**3

    def update(self):
        self.x += self.step

    def capture(self, device):
        """One step."""
        self.factor.refactor_solve(self.values, self.residual, check="later", out=self.step)
        with device.capture() as graph:
            graph.call(self.assemble)
            self.factor.refactor_solve(self.values, self.residual, check="later", out=self.step)
            graph.call(self.update)
        return graph

    def run(self, steps):
        """The same by calls that wait; the solution after every step."""
        found = []
        for _ in range(steps):
            self.assemble()
            self.step[...] = self.factor.refactor_solve(self.values, self.residual)
            self.update()
            found.append(np.array(self.x))
        return found


@pytest.mark.parametrize(("engine", "steps"), [(engine, 1000 if engine == "supernodal" else 100) for engine in ENGINES])
def test_newton_with_no_host_in_it(device, engine, steps):
    newton, expected = Newton(engine), Newton(engine).run(steps)
    graph = newton.capture(device)
    device.counts.clear()
    for x in expected:
        graph.launch()
        assert newton.x.tobytes() == x.tobytes()
    assert not device.counts  # nothing was copied, allocated or waited for
    assert 0 < newton.factor.check() < 10 * EPS["d"]
    assert newton.factor.stats.n_refactor == steps + 1
    assert newton.factor.check() is None
    assert abs(newton.A @ x + x**3 - np.sin(newton.time / 50) * newton.b).max() < 1e-3


def test_what_is_captured_copies_and_waits_for_nothing(device):
    newton = Newton("supernodal")
    newton.capture(device)
    device.counts.clear()
    with device.capture():
        newton.factor.refactor_solve(newton.values, newton.residual, check="later", out=newton.step)
    assert not {"copy", "synchronize", "allocate", "replay", "move_status"} & set(device.counts)
    assert device.counts["dependent"] > 0


@pytest.mark.parametrize("side_first", [False, True])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("trans", "NTH")
def test_solves_and_refactorizations_of_their_own(device, dtype, trans, side_first):
    device.side_first = side_first
    A = phased(random_matrix(), dtype)
    factor, plain = gs.splu(A, engine="supernodal"), gs.splu(A, engine="supernodal")
    values, b = fake_cupy.asarray(A.data), fake_cupy.asarray(rhs(A.shape[0], dtype))
    x, op = fake_cupy.empty(b.shape, dtype), {"N": A, "T": A.T, "H": A.conj().T}[trans]
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
        assert backward_error(scale * op, np.asarray(x), np.asarray(b)) < 100 * EPS[dtype]
    assert factor.check() < 100 * EPS[dtype]


@pytest.mark.parametrize("columns", [(1,), (3,), (40,)])
def test_several_right_hand_sides(device, columns):
    A = spd_matrix()
    factor, plain = (gs.cholesky(A, engine="supernodal") for _ in range(2))
    values, b = fake_cupy.asarray(2 * A.data), fake_cupy.asarray(np.asfortranarray(rhs(A.shape[0], "d", columns)))
    x = fake_cupy.empty(b.shape, "d", order="F")
    factor.refactor_solve(values, b, check="later", out=x)
    x[...] = 0
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    graph.launch()
    plain.refactor(values)
    np.testing.assert_array_equal(x, plain.solve(b))
    assert factor.check() < 100 * EPS["d"]


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_values_in_the_order_of_the_caller_and_arrays_that_kernels_cannot_take(device):
    given = sp.csr_array(phased(random_matrix(), "D"))
    factor, plain = (gs.splu(given, engine="supernodal") for _ in range(2))
    values, b, x = aligned(given.data, 8), aligned(rhs(60, "D"), 8), aligned(rhs(60, "D"), 8)
    factor.refactor_solve(values, b, check="later", out=x)
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    for scale in (2, 3):
        values[...] = scale * given.data
        graph.launch()
        np.testing.assert_array_equal(x, plain.refactor_solve(values, b))
    assert factor.check() < 100 * EPS["d"]


def test_the_solution_over_the_right_hand_side(device):
    A = random_matrix()
    factor = gs.splu(A, engine="supernodal")
    b, x = rhs(A.shape[0]), fake_cupy.asarray(rhs(A.shape[0]))
    factor.solve(x, check="later", out=x)
    x[...] = b
    with device.capture() as graph:
        factor.solve(x, check="later", out=x)
    graph.launch()
    np.testing.assert_array_equal(x, factor.solve(b))
    assert factor.check() is None  # that call has looked


def test_two_factors_in_one_graph(device):
    A, K = random_matrix(), spd_matrix(60)
    lu, ch = gs.splu(A, engine="supernodal"), gs.cholesky(K, engine="supernodal")
    b, y, x = (fake_cupy.asarray(rhs(60)) for _ in range(3))
    values = fake_cupy.asarray(K.data)

    def step():
        lu.solve(b, check="later", out=y)
        ch.refactor_solve(values, y, check="later", out=x)

    step()
    with device.capture() as graph:
        step()
    for scale in (1.0, 4.0):
        values[...] = scale * K.data
        graph.launch()
        np.testing.assert_allclose(x, ch.solve(np.asarray(lu.solve(b))), rtol=1e-10)
        np.testing.assert_allclose(scale * K @ np.asarray(x), np.asarray(y), rtol=1e-10)
    assert lu.check() is ch.check() is None


def test_captured_and_plain_calls_take_turns(device):
    newton = Newton("supernodal")
    graph, b = newton.capture(device), rhs(16)
    for scale in (1.0, 2.0, 3.0):
        newton.spoilt[newton.time + 1] = scale
        graph.launch()
        held = sp.csc_array((np.array(newton.values), newton.A.indices, newton.A.indptr))
        assert backward_error(held, newton.factor.solve(b), b) < 100 * EPS["d"]  # of the replay's values
        assert abs((newton.factor.L @ newton.factor.U).trace()) > 0
        np.testing.assert_allclose(newton.factor.slogdet()[1], np.linalg.slogdet(held.toarray())[1])
        newton.factor.refactor(5 * newton.A.data)
        assert backward_error(5 * newton.A, newton.factor.solve(b), b) < 100 * EPS["d"]


def test_triangles_are_of_the_values_that_a_replay_left(device):
    newton = Newton("supernodal")
    graph = newton.capture(device)
    before = abs(newton.factor.U).max()
    newton.spoilt[1] = 64.0
    graph.launch()
    assert abs(newton.factor.U).max() > 32 * before


def test_an_update_is_of_the_values_held_before_a_replay(device):
    newton = Newton("supernodal")
    graph, U = newton.capture(device), rhs(16)
    updated = newton.factor.updated(U)
    held = sp.csc_array((np.array(newton.values), newton.A.indices, newton.A.indptr)) + np.outer(U, U)
    assert backward_error(sp.csc_array(held), updated.solve(newton.b), newton.b) < 100 * EPS["d"]
    graph.launch()
    with pytest.raises(RuntimeError, match="was refactored since"):
        updated.solve(newton.b)


# ---- what goes wrong


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_in_between_is_not_forgotten(device, engine):
    newton = Newton(engine)
    graph = newton.capture(device)
    newton.factor.check()
    newton.spoilt[30] = np.nan
    for step in range(60):
        graph.launch()
        if step == 29:
            newton.x[...] = 0
    with pytest.raises(gs.AccuracyError, match="first in refactorization 30 of 60"):
        newton.factor.check()
    assert newton.factor.check() is None
    graph.launch()
    assert newton.factor.check() < 10 * EPS["d"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_nan_at_the_end_leaves_no_values(device, engine):
    newton = Newton(engine)
    graph, b = newton.capture(device), rhs(16)
    newton.spoilt[3] = np.nan
    for _ in range(3):
        graph.launch()
    with pytest.raises(gs.NonFiniteError) as raised:
        newton.factor.solve(b)  # any call that waits looks
    assert "until it is refactored" in raised.value.__notes__[0]
    for call in (lambda: newton.factor.solve(b), lambda: newton.factor.L, newton.factor.slogdet):
        with pytest.raises(RuntimeError, match="holds no values"):
            call()
    with pytest.raises(RuntimeError, match="holds no values"):
        newton.factor.solve(newton.residual, check="later")
    with pytest.raises(gs.NonFiniteError):
        newton.factor.refactor(np.nan * newton.A.data)
    with pytest.raises(RuntimeError, match="holds no values"):
        newton.factor.solve(b)
    newton.factor.refactor(newton.A.data)
    assert backward_error(newton.A, newton.factor.solve(b), b) < 10 * EPS["d"]
    newton.x[...] = 0
    graph.launch()
    assert newton.factor.check() < 10 * EPS["d"]


def test_a_singular_matrix_at_the_end(device):
    newton = Newton("supernodal")
    graph = newton.capture(device)
    newton.spoilt[1] = 0.0
    graph.launch()
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        newton.factor.check()
    with pytest.raises(RuntimeError, match="holds no values"):
        newton.factor.solve(newton.b)


def test_a_matrix_that_is_not_definite(device):
    newton = Newton("supernodal", gs.cholesky)
    graph = newton.capture(device)
    newton.spoilt[1] = -1.0
    graph.launch()
    with pytest.raises(gs.NotPositiveDefiniteError):
        newton.factor.check()
    newton.spoilt[2] = -1.0
    for _ in range(2):
        newton.x[...] = 0
        graph.launch()
    with pytest.raises(gs.AccuracyError, match="first in refactorization 1 of 2"):
        newton.factor.check()


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_pivots_are_found_and_chosen_anew(device, engine):
    A = random_matrix(40)
    factor, bad = gs.splu(A, engine=engine), harder(A)
    values, b, x = fake_cupy.asarray(A.data), fake_cupy.asarray(rhs(40)), fake_cupy.asarray(rhs(40))
    factor.refactor_solve(values, b, check="later", out=x)
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    graph.launch()
    assert factor.check() < 100 * EPS["d"]
    values[...] = bad.data
    graph.launch()
    with pytest.raises(gs.AccuracyError, match="1 solutions since the last check cannot be trusted"):
        factor.check()
    assert backward_error(bad, factor.solve(np.asarray(b)), np.asarray(b)) < 100 * EPS["d"]
    assert factor.stats.n_repivoted > 0


def test_a_graph_of_other_pivots_is_not_taken_for_the_factor(device):
    A = random_matrix(40)
    factor, b, x = gs.splu(A, engine="sflu"), fake_cupy.asarray(rhs(40)), fake_cupy.asarray(rhs(40))
    values, bad = fake_cupy.asarray(A.data), harder(A)

    def capture():
        factor.refactor_solve(values, b, check="later", out=x)
        with device.capture() as graph:
            factor.refactor_solve(values, b, check="later", out=x)
        return graph

    graph, before = capture(), factor._core._recorded
    factor.refactor(bad.data)
    assert factor._core._recorded is not before
    for _ in range(2):
        graph.launch()
        with pytest.raises(gs.AccuracyError, match="capture it again"):
            factor.solve(np.asarray(b))
        assert backward_error(bad, factor.solve(np.asarray(b)), np.asarray(b)) < 100 * EPS["d"]
    values[...] = 2 * bad.data
    new = capture()
    spoilt, values[...] = np.array(values), np.nan
    for each in (new, graph):
        each.launch()
    with pytest.raises(gs.NonFiniteError) as raised:
        factor.check()
    assert "capture it again" in raised.value.__notes__[-1]
    values[...] = spoilt
    new.launch()
    assert factor.check() < 100 * EPS["d"]
    assert backward_error(2 * bad, np.asarray(x), np.asarray(b)) < 100 * EPS["d"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_inaccurate_solve_in_between_is_found(device, engine):
    newton = Newton(engine)
    graph = newton.capture(device)
    newton.factor.check()
    held = newton.factor._core._recorded.buffers.values

    def spoil():
        if newton.time == 7:
            memory_at(held.pointer, held.nbytes).view("d")[...] *= 1 + 1e-9

    b, x = fake_cupy.asarray(rhs(16)), fake_cupy.asarray(rhs(16))
    newton.factor.solve(b, check="later", out=x)
    with device.capture() as solve:
        newton.factor.solve(b, check="later", out=x)
    for _ in range(20):
        graph.launch()
        spoil()
        solve.launch()
    with pytest.raises(gs.AccuracyError, match=r"largest backward error is [1-9.]*e-10, of solution 1[56]\b"):
        newton.factor.check()
    graph.launch()
    solve.launch()
    assert newton.factor.check() < 10 * EPS["d"]


def test_as_many_steps_of_refinement_as_the_last_solve_that_waited(device, monkeypatch):
    newton = Newton("supernodal")
    b, x = fake_cupy.asarray(newton.b), fake_cupy.asarray(newton.b)

    def added():
        newton.factor.solve(b, check="later", out=x)
        device.counts.clear()
        with device.capture() as graph:
            newton.factor.solve(b, check="later", out=x)
        graph.launch()
        assert newton.factor.check() < 10 * EPS["d"]
        return device.counts.get("add_step", 0), device.counts.get("measure_residual_1", 0)

    assert added() == (0, 1)
    measure_first(monkeypatch, 50 * EPS["d"], 50 * EPS["d"])
    newton.factor.solve(newton.b)
    assert added() == (1, 2)
    newton.factor.solve(newton.b)
    assert added() == (0, 1)


def test_without_measuring_pivots_are_looked_at(device):
    A = random_matrix(40)
    factor, values = gs.splu(A, engine="supernodal", refine="never"), fake_cupy.asarray(A.data)
    b, x = fake_cupy.asarray(rhs(40)), fake_cupy.asarray(rhs(40))
    factor.refactor_solve(values, b, check="later", out=x)
    with device.capture() as graph:
        factor.refactor_solve(values, b, check="later", out=x)
    graph.launch()
    assert factor.check() is None
    assert backward_error(A, np.asarray(x), np.asarray(b)) < 100 * EPS["d"]
    values[...] = harder(A).data
    graph.launch()
    with pytest.raises(gs.AccuracyError):
        factor.check()


# ---- what cannot be captured


def test_calls_that_wait_are_refused_and_the_capture_goes_on(device):
    newton = Newton("supernodal")
    newton.capture(device)
    with device.capture() as graph:
        graph.call(newton.assemble)
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
        newton.factor.refactor_solve(newton.values, newton.residual, check="later", out=newton.step)
    graph.launch()
    assert newton.factor.check() < 10 * EPS["d"]


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
