"""JAX on a device: arrays by DLPack, and compiled programs (bodies in support/jax_checks.py)."""

import numpy as np
import pytest

from gpusplu.common.timing import backward_error

pytest.importorskip("jax.numpy", reason="needs JAX: pip install gpusplu[jax]")

import gpusplu as gs
from support import jax_checks
from support.jax_checks import gj, jax, jnp
from support.jax_checks import nothing_goes_to_the_host as begin  # noqa: F401 (a fixture)
from support.jaxes import System

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def with_cupy(cupy):
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no device")
    yield
    jax.clear_caches()
    jax_checks.device.STORE.clear()


def test_arrays_stay_on_the_device():
    one = System(n=200)
    lu = gs.splu(one.A, engine="supernodal")
    x = lu.solve(one.b)
    assert isinstance(x, jax.Array)
    assert x.devices() == one.b.devices()
    assert backward_error(one.dense, np.asarray(x), np.asarray(one.b)) < 1e-15
    lu.refactor(2 * one.values)
    assert abs(2 * np.asarray(lu.solve(one.b)) - np.asarray(x)).max() < 1e-12
    assert gs.spsolve(one.A, one.b).devices() == one.b.devices()


@pytest.mark.parametrize("dtype", ["d", "D"])
def test_steps_of_descent(begin, dtype):  # noqa: F811
    jax_checks.steps_of_descent(System(n=200, dtype=dtype), begin)


def test_without_jit():
    """Each primitive is a program of its own."""
    one = System(n=50)
    loss = jax_checks.squares(lambda values, b: gj.spsolve(one.matrix(values), b))
    found, count = jax_checks.factorizations(lambda: jax.grad(loss, (0, 1))(one.values, one.b))
    assert count == 1
    assert all(array.devices() == one.b.devices() for array in found)
    assert jax_checks.all_close(found, jax_checks.gradients_of(one)[1](one.values, one.b))


def test_one_matrix_in_a_scan():
    jax_checks.one_matrix_in_a_scan(System(n=50))


def test_matrices_in_a_scan(begin):  # noqa: F811
    jax_checks.matrices_in_a_scan(System(n=50), begin)


def test_wrong_guesses(begin):  # noqa: F811
    jax_checks.wrong_guesses(System(n=50), begin)


def test_threads():
    jax_checks.threads(System(n=50))


def test_several_right_hand_sides():
    jax_checks.several_right_hand_sides(System(n=50, nrhs=3))


@pytest.mark.parametrize(("values_too", "b_too"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("nrhs", [None, 2])
def test_batches(values_too, b_too, nrhs):
    jax_checks.batches(System(n=50, nrhs=nrhs), values_too, b_too)


def test_values_that_have_no_factor():
    jax_checks.values_that_have_no_factor(System(n=50))


@pytest.mark.parametrize("layout", ["bcsr", "bcoo"])
def test_traced_patterns(layout):
    jax_checks.traced_patterns(System(n=50, layout=layout))


def test_determinants():
    jax_checks.determinants(System(n=50))


def test_factorized_keeps_its_factor(begin):  # noqa: F811
    one = System(n=50)
    solve = gj.factorized(one.A)
    begin()
    compiled = jax.jit(lambda solve, b: solve(b))
    for scale in (1.0, 2.0):
        x, count = jax_checks.factorizations(lambda scale=scale: compiled(solve, scale * one.b))
        assert count == 0
        assert x.devices() == one.b.devices()
        assert jax_checks.close(x, np.linalg.solve(one.dense, scale * np.asarray(one.b)), 1e-9)


def test_work_of_xla_before_and_after():
    """All of it is in one stream: what XLA computes for a solve is there, and what it does with the solution waits."""
    one = System(n=300)
    turn = jnp.asarray(np.linalg.qr(one.draw(1500, 1500))[0])

    def chain(solve, turn, b):
        for _ in range(5):
            for _ in range(3):
                turn = turn @ turn
            b = solve(one.values * (1 + turn[0, 0]), b + turn[:300, 0])
        return b

    ours = jax.jit(lambda turn: chain(lambda values, b: gj.spsolve(one.matrix(values), b), turn, one.b))
    dense = jax.jit(lambda turn: chain(lambda values, b: jnp.linalg.solve(one.full(values), b), turn, one.b))
    for k in range(10):
        other = jnp.roll(turn, k, axis=1)
        assert jax_checks.close(ours(other), dense(other), 1e-7)
