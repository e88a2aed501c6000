"""Calls with check="later" in graphs that the caller captures, on an emulated device: no host, nothing forgotten."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support import fake_cupy
from support.fake_cupy import aligned
from support.newton import Newton
from support.small_matrices import EPS, phased, random_matrix, rhs, spd_matrix

pytestmark = pytest.mark.usefixtures("cupy")

ENGINES = ["supernodal", "glu", "sflu", "crisscross"]


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


@pytest.mark.parametrize("order", ["first", "last", 1])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("trans", "NTH")
def test_solves_and_refactorizations_of_their_own(device, dtype, trans, order):
    device.order = order
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
