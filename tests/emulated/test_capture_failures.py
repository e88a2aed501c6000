"""What goes wrong in graphs that the caller captures: a later call finds it, and says in which refactorization."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support import fake_cupy
from support.accuracy_policy import measure_first
from support.column_engines import harder
from support.emulated_device import memory_at
from support.newton import Newton
from support.small_matrices import EPS, random_matrix, rhs

pytestmark = pytest.mark.usefixtures("cupy")

ENGINES = ["supernodal", "glu", "sflu", "crisscross"]


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
