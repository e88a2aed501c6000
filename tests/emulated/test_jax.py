"""Compiled programs of gpusplu.jax on a device: XLA's own on this processor, the factors in the emulator."""

import gc
import weakref

import numpy as np
import pytest

import gpusplu as gs
from support import jax_checks
from support.jax_checks import device as on_device
from support.jax_checks import nothing_goes_to_the_host  # noqa: F401 (a fixture)
from support.jax_on_device import programs_on_device
from support.jaxes import System, gj, jax, jnp
from support.small_matrices import dtypes


@pytest.fixture(autouse=True)
def compiled_for_the_device(device, cupy, monkeypatch):
    with programs_on_device(monkeypatch):
        yield


@pytest.fixture
def begin(nothing_goes_to_the_host, cupy):  # noqa: F811
    return lambda: nothing_goes_to_the_host((cupy.ndarray, "get"), (cupy.ndarray, "set"))


def test_steps_of_descent(begin):
    jax_checks.steps_of_descent(System(n=20), begin)


def test_without_jit(monkeypatch):
    """Each primitive is a program of its own, compiled once."""
    monkeypatch.setattr(gj.primitives.Jax, "is_on_device", lambda *_: True)
    one = System(n=20)
    gradient = jax.grad(jax_checks.squares(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1))
    expected = jax_checks.gradients_of(one)[1]
    for values in (one.values, 2 * one.values):
        sites = next(gj.foreign._numbers)
        found, count = jax_checks.factorizations(lambda values=values: gradient(values, one.b))
        assert count == 1
        assert jax_checks.all_close(found, expected(values, one.b))
    assert next(gj.foreign._numbers) == sites + 1
    with jax.disable_jit():
        assert jax_checks.all_close(gradient(one.values, one.b), expected(one.values, one.b))


def test_a_step_waits_as_often_as_calls_of_factors(device):
    """One graph and one wait for refactoring and solving, and one for the adjoint."""
    one = System(n=20)
    ours, _ = jax_checks.gradients_of(one)
    values = [one.values * (1 + 0.01 * k) for k in range(4)]
    for each in values[:3]:
        jax.block_until_ready(ours(each, one.b))
    device.counts.clear()
    jax.block_until_ready(ours(values[3], one.b))
    assert (device.counts["replay"], device.counts["synchronize"]) == (2, 2)


def test_one_matrix_in_a_scan():
    jax_checks.one_matrix_in_a_scan(System(n=20))


def test_matrices_in_a_scan(begin):
    jax_checks.matrices_in_a_scan(System(n=20), begin)


def test_wrong_guesses(begin):
    jax_checks.wrong_guesses(System(n=20), begin)


def test_threads():
    jax_checks.threads(System(n=20))


@pytest.mark.parametrize("dtype", dtypes("dD"))
def test_several_right_hand_sides(dtype):
    jax_checks.several_right_hand_sides(System(n=20, nrhs=3, dtype=dtype))


@pytest.mark.parametrize(
    ("values_too", "b_too", "nrhs"), [(True, True, None), (True, True, 2), (True, False, 2), (False, True, None)]
)
def test_batches(values_too, b_too, nrhs):
    jax_checks.batches(System(n=12, nrhs=nrhs), values_too, b_too)


def test_values_that_have_no_factor():
    jax_checks.values_that_have_no_factor(System(n=20))


@pytest.mark.parametrize("layout", ["bcsr", "bcoo"])
def test_traced_patterns(layout):
    jax_checks.traced_patterns(System(n=20, layout=layout))


def test_padding():
    one = System(n=12, layout="bcoo")
    index = jnp.concatenate([one.A.indices, jnp.full((2, 2), 12, one.A.indices.dtype)])
    solve = jax.jit(lambda values: gj.spsolve(type(one.A)((values, index), shape=one.A.shape), one.b))
    x = solve(jnp.concatenate([one.values, jnp.array([3.0, jnp.nan])]))
    np.testing.assert_allclose(x, np.linalg.solve(one.dense, one.b), rtol=1e-9)


def test_determinants():
    jax_checks.determinants(System(n=12))


def test_what_is_forgotten():
    one = System(n=12, seed=3)
    solve = jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))
    solve(one.values).block_until_ready()
    (entry,) = on_device.STORE.entries.values()
    structure, factor = weakref.ref(entry.key[0]), weakref.ref(entry.factored)
    del entry
    gs.cache_clear()
    assert not on_device.STORE.entries
    assert factor() is None
    del solve
    jax.clear_caches()
    gc.collect()
    assert structure() is None


def test_what_is_held():
    """A holder keeps its factor from the values that come."""

    class Holder:
        pass

    one, holder = System(n=12), Holder()
    structure = gj.solvers.read_matrix(one.A, "test").structure
    values = np.asarray(one.values).view(jax_checks.device.devices.open_device().array_class)
    on_device.STORE.hold(structure, values, holder)
    solve, solve_others = (jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b)) for _ in range(2))
    for scale in (2.0, 3.0):
        solve_others(scale * one.values).block_until_ready()
    _, count = jax_checks.factorizations(lambda: solve(one.values))
    assert count == 0
    gs.cache_clear()
    assert len(on_device.STORE.entries) == 1
    del holder
    gs.cache_clear()
    assert not on_device.STORE.entries


def test_errors_of_the_device_are_no_singular_matrices(monkeypatch):
    one = System(n=12)

    def fail(*_):
        raise RuntimeError("cudaErrorLaunchFailure")

    monkeypatch.setattr(on_device, "made_lu", fail)
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="cudaErrorLaunchFailure"):
        jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))(one.values).block_until_ready()


def test_guesses():
    guess = on_device.Guess()
    held = []
    for each in (1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1):
        held.append(guess.held)
        guess.learn(bool(each))
    assert held == [True, True, True, True, True, False, False, False, False, False, False, True]
