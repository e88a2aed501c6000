"""What compiled programs do on a device, emulated or not: bodies of tests, called with a `jaxes.System`."""

from threading import Thread

import numpy as np
import pytest

import gpusplu as gs

from .jaxes import close, gj, jax, jnp
from .staying import forbid

device = gj.device
TOLERANCE = 1e-9


def factorizations(call):
    """The result of a call, and how many matrices were factored in it."""
    before = gs.factorization_count()
    result = jax.block_until_ready(call())
    return result, gs.factorization_count() - before


def squares(solve):
    return lambda values, b: (abs(solve(values, b)) ** 2).sum()


def gradients_of(one):
    """Of the sum of squares of solutions, with respect to values and b: ours, and JAX's of dense matrices."""
    ours = jax.jit(jax.grad(squares(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1)))
    return ours, jax.jit(jax.grad(squares(lambda values, b: jnp.linalg.solve(one.full(values), b)), (0, 1)))


def all_close(found, expected):
    return all(close(a, b, TOLERANCE) for a, b in zip(found, expected, strict=True))


@pytest.fixture
def nothing_goes_to_the_host(monkeypatch):
    """Call it, and whatever takes values or vectors of a device to the host, or from there, fails from then on."""

    def begin(*ways):
        forbid(monkeypatch, (device.matrix, "to_host"), (device, "first_factored"), *ways)

    return begin


def steps_of_descent(one, begin):
    """Each step factors once, and values stay on the device after the first."""
    ours, dense = gradients_of(one)
    values = one.values
    for step in range(6):
        found, count = factorizations(lambda values=values: ours(values, one.b))
        assert count == 1
        assert all(array.devices() == one.b.devices() for array in found)
        assert all_close(found, dense(values, one.b))
        values = values * 1.01
        if step == 0:
            begin()
    assert len(device.STORE.entries) == 1


def one_matrix_in_a_scan(one):
    step = lambda x, _: (gj.spsolve(one.A, x / jnp.linalg.norm(x)), None)  # noqa: E731
    x, count = factorizations(lambda: jax.jit(lambda b: jax.lax.scan(step, b, length=20))(one.b)[0])
    assert count == 1
    expected = np.asarray(one.b)
    for _ in range(20):
        expected = np.linalg.solve(one.dense, expected / np.linalg.norm(expected))
    assert close(x, expected, TOLERANCE)


def matrices_in_a_scan(one, begin):
    """The adjoints find the factors of all steps. One that is not the first of its pattern begins with the first
    values, and so has been factored twice."""

    def loss(solve, values):
        step = lambda x, scale: (solve(values * scale, x), None)  # noqa: E731
        return (jax.lax.scan(step, one.b, jnp.linspace(0.1, 0.3, 5))[0] ** 2).sum()

    ours = jax.jit(jax.grad(lambda values: loss(lambda v, b: gj.spsolve(one.matrix(v), b), values)))
    dense = jax.jit(jax.grad(lambda values: loss(lambda v, b: jnp.linalg.solve(one.full(v), b), values)))
    found, count = factorizations(lambda: ours(one.values))
    assert count == 1 + 2 * 4
    assert close(found, dense(one.values), TOLERANCE)
    begin()
    found, count = factorizations(lambda: ours(1.1 * one.values))
    assert count == 5
    assert close(found, dense(1.1 * one.values), TOLERANCE)


def wrong_guesses(one, begin):
    """Whatever is expected, the answer is that of the values."""
    solve = jax.jit(lambda values, b: gj.spsolve(one.matrix(values), b))
    two = [one.values, 2 * one.values]
    solve(two[0], one.b)
    begin()
    for which in (0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1):
        expected = np.linalg.solve(np.asarray(one.full(two[which])), np.asarray(one.b))
        assert close(solve(two[which], one.b), expected, TOLERANCE)


def threads(one):
    """Several run one program, each with values of its own."""
    solve = jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))
    values, right = one.several(4), []
    expected = [np.asarray(jnp.linalg.solve(one.full(each), one.b)) for each in values]

    def work(k):
        right.extend(close(solve(values[k]), expected[k], TOLERANCE) for _ in range(30))

    workers = [Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(right) == 120
    assert all(right)
    assert all(entry.users == 0 for entry in device.STORE.entries.values())


def several_right_hand_sides(one):
    ours, dense = gradients_of(one)
    for values in (one.values, 2 * one.values, 2 * one.values):
        assert all_close(ours(values, one.b), dense(values, one.b))


def batches(one, values_too, b_too):
    """vmap of a gradient; each call has new values."""
    ours, dense = gradients_of(one)
    axes = (0 if values_too else None, 0 if b_too else None)
    count = 3
    b = jnp.stack([one.b * (k + 1) for k in range(count)]) if b_too else one.b
    for scale in (1.0, 1.1, 1.1, 1.2):
        values = scale * (one.several(count) if values_too else one.values)
        found = jax.jit(jax.vmap(ours, axes))(values, b)
        assert all_close(found, jax.vmap(dense, axes)(values, b))


def values_that_have_no_factor(one):
    """Singular and not finite ones have NaN; what was factored before stays what it was."""
    solve = jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))
    for bad in (jnp.zeros_like(one.values), one.values.at[3].set(jnp.nan), one.values.at[2].set(jnp.inf)):
        x = solve(one.values)
        assert np.isnan(solve(bad)).all()
        assert close(solve(one.values), x, TOLERANCE)
    values = one.several(3).at[1].set(0)
    x = jax.jit(jax.vmap(solve))(values)
    assert np.isnan(x[1]).all()
    expected = jnp.stack([jnp.linalg.solve(one.full(values[k]), one.b) for k in (0, 2)])
    assert close(x[jnp.array([0, 2])], expected, TOLERANCE)


def traced_patterns(one):
    """An A that is an argument of the function, whose indices are read on the host."""
    ours = jax.jit(jax.grad(lambda A, b: (gj.spsolve(A, b) ** 2).sum(), allow_int=True))
    expected = gradients_of(one)[1](one.values, one.b)[0]
    for _ in range(2):
        assert close(ours(one.A, one.b).data, expected, TOLERANCE)


def determinants(one):
    gradient = jax.jit(jax.grad(lambda values: gj.slogdet(one.matrix(values))[1]))
    expected = jax.grad(lambda values: jnp.linalg.slogdet(one.full(values))[1])
    assert close(gradient(one.values), expected(one.values), TOLERANCE)
