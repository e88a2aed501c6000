"""gpusplu.jax inside scan, while_loop and checkpoint, and the factors that it keeps: how many, and for how long."""

import gc
import os
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import STORE, System, close, gj, jax, jnp, made, structure
from support.processes import run


def resident():
    """Memory of this process [bytes]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stepping(one):
    """Many steps of implicit Euler: by a matrix that stays, or by one that is another in every step."""

    def steps(values, scales):
        step = lambda x, scale: (gj.spsolve(one.matrix(values * scale), x), None)  # noqa: E731
        return jax.lax.scan(step, one.b, scales)[0]

    return steps


def dense_steps(one):
    return lambda values, scales: jax.lax.scan(
        lambda x, scale: (jnp.linalg.solve(one.full(values * scale), x), None), one.b, scales
    )[0]


def test_scan_with_one_matrix_factors_once():
    one = System()
    step = lambda x, _: (gj.spsolve(one.A, x / jnp.linalg.norm(x)), None)  # noqa: E731
    _, count = made(lambda: jax.jit(lambda b: jax.lax.scan(step, b, length=3000))(one.b))
    assert count == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.checkpoint])
def test_gradient_through_scan(wrap):
    one, scales = System(), jnp.linspace(0.1, 0.3, 40)
    loss = lambda steps: lambda values, scales: (wrap(steps)(values, scales) ** 2).sum()  # noqa: E731
    gradient = jax.jit(jax.grad(loss(stepping(one)), (0, 1)))
    ours, count = made(lambda: gradient(one.values, scales))
    assert count == 40
    expected = jax.grad(loss(dense_steps(one)), (0, 1))(one.values, scales)
    assert all(close(a, b, 1e-9) for a, b in zip(ours, expected, strict=True))


def test_while_loop_with_a_factorized_matrix_in_its_carry():
    one = System()

    @jax.jit
    def inverse_iteration(solve, x):
        def body(carry):
            solve, x, k = carry
            x = solve(x)
            return solve, x / jnp.linalg.norm(x), k + 1

        return jax.lax.while_loop(lambda carry: carry[2] < 2000, body, (solve, x, 0))[1]

    symmetric = one.dense @ one.dense.T
    x, count = made(lambda: inverse_iteration(gj.factorized(type(one.A).fromdense(symmetric)), one.b))
    assert count == 1
    assert np.isclose(x @ symmetric @ x, np.linalg.eigvalsh(symmetric).min(), rtol=1e-9)


def test_condition_under_vmap():
    one = System()
    solve = lambda s: gj.spsolve(one.matrix(one.values * s), one.b)  # noqa: E731
    branch = lambda s: jax.lax.cond(s > 2, solve, lambda s: s * one.b, s)  # noqa: E731
    s = jnp.arange(1.0, 5.0)
    expected = jnp.stack([one.b, 2 * one.b, solve(3.0), solve(4.0)])
    assert close(jax.jit(jax.vmap(branch))(s), expected)
    gradient = jax.vmap(jax.grad(lambda s: branch(s).sum()))(s)
    assert close(gradient, jnp.stack([jax.grad(lambda s: branch(s).sum())(each) for each in s]))


def test_nothing_is_left_behind():
    """Hundreds of compiled steps, and some that are not, each with new values."""
    one = System(n=60)
    loss = lambda values, b: (gj.spsolve(one.matrix(values), b) ** 2).sum()  # noqa: E731
    many = jax.jit(jax.grad(lambda values, scales: stepping(one)(values, scales).sum(), (0, 1)))
    compiled = jax.jit(jax.grad(loss))

    def round_of_steps(seed):
        for k in range(100):
            compiled(one.values * (1 + 0.001 * (seed + k)), one.b).block_until_ready()
        jax.grad(loss)(one.values * (1 + 0.01 * seed), one.b).block_until_ready()
        jax.block_until_ready(many(one.values, jnp.linspace(1, 2, 200) + 0.001 * seed))

    for seed in range(2):
        round_of_steps(seed)
    gc.collect()
    objects, entries, memory = len(gc.get_objects()), len(STORE.entries), resident()
    for seed in range(2, 8):
        round_of_steps(seed)
    gc.collect()
    assert len(gc.get_objects()) < objects + 250
    assert len(STORE.entries) <= entries
    assert resident() < memory + (16 << 20)


def test_patterns_are_forgotten():
    """A structure is as long-lived as what was compiled with it."""
    one, before = System(seed=5), len(structure.SEEN)
    solve = jax.jit(jax.grad(lambda values: gj.spsolve(one.matrix(values), one.b).sum()))
    solve(one.values).block_until_ready()
    (kept,) = {entry.key[0] for entry in STORE.entries.values()}
    known = weakref.ref(kept)
    del solve, kept
    jax.clear_caches()
    gs.cache_clear()
    gc.collect()
    assert known() is None
    assert len(structure.SEEN) <= before


def test_what_does_not_fit_is_factored_again():
    one, scales = System(), jnp.linspace(0.1, 0.3, 10)
    gradient = jax.jit(jax.grad(lambda values: stepping(one)(values, scales).sum()))
    expected, count = made(lambda: gradient(one.values))
    assert count == 10
    gs.cache_clear()
    limit = gs.cache_info().maxbytes
    try:
        gs.cache_limit(bytes=1)
        found, count = made(lambda: gradient(one.values))
    finally:
        gs.cache_limit(bytes=limit)
    assert count > 10
    assert close(found, expected, 1e-9)
    assert len(STORE.entries) == 1


def test_threads():
    """Compiled solves from several threads, each with its own values, and answers of their own."""
    one = System(n=40)
    solve = jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))
    values = one.several(4)
    expected = [np.asarray(solve(each)) for each in values]

    def is_right(k):
        return all(close(solve(values[k]), expected[k]) for _ in range(100))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_right, range(4)))
    assert all(entry.users == 0 for entry in STORE.entries.values())


@pytest.fixture(autouse=True)
def nothing_kept():
    gs.cache_clear()
    yield
    gs.cache_clear()


def matrices(side=40):
    """Matrices of one pattern, by a number that their values depend on."""
    A = gs.gallery.poisson(side, side)
    sparse = jax.experimental.sparse

    def matrix(k):
        values = jnp.asarray(A.data * (1 + 1e-3 * k))
        return sparse.BCSR((values, jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape)

    return A, matrix


def test_a_loop_of_new_values_keeps_one_factor():
    A, matrix = matrices()
    b, known = jnp.ones(A.shape[0]), []
    for k in range(60):
        solve = gj.factorized(matrix(k))
        x = solve(b)
        assert np.allclose(A @ np.asarray(x) * (1 + 1e-3 * k), 1)
        known.append(len(STORE.entries))
    assert max(known) <= 2


def test_dead_objects_leave_one_factor_at_once():
    A, matrix = matrices()
    b = jnp.ones(A.shape[0])
    solvers = [gj.factorized(matrix(k)) for k in range(12)]
    for solve in solvers:
        solve(b)
    assert len(STORE.entries) == 12
    del solve
    solvers.clear()
    gc.collect()
    assert len(STORE.entries) == 1
    gs.cache_clear()
    assert not STORE.entries


def test_adjoints_that_never_come_are_waited_for_within_bounds():
    one = System()
    solve_for_adjoint = jax.jit(lambda values: jax.vjp(lambda b: gj.spsolve(one.matrix(values), b), one.b))
    for k in range(1100):
        solve_for_adjoint((1 + 1e-3 * k) * one.values)
    assert 1000 < len(STORE.entries) <= 1025


RESIDENT = """
import sys, gpusplu as gs
from support.jaxes import gj, jax, jnp
side, count = int(sys.argv[1]), int(sys.argv[2])
A, b = gs.gallery.poisson(side, side), jnp.ones(side**2)
index = jnp.asarray(A.indices), jnp.asarray(A.indptr)
def keep(numbers):
    for k in numbers:
        values = jnp.asarray(A.data * (1 + 1e-3 * k))
        jax.vjp(lambda b: gj.spsolve(jax.experimental.sparse.BCSR((values, *index), shape=A.shape), b), b)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
keep(range(10))
before, counted = resident(), gs.cache_info().bytes
keep(range(10, 10 + count))
print((gs.cache_info().bytes - counted) / (resident() - before))
"""


@pytest.mark.parametrize(("side", "count"), [(20, 200), (100, 60)])
def test_what_is_kept_is_counted(side, count):
    """As much as a new process grows by."""
    assert 0.8 < float(run(RESIDENT, side, count)) < 1.2


def test_factors_of_the_caller_are_not_counted():
    A, matrix = matrices(60)
    held = gj.factorized(matrix(0))
    before = gs.cache_info().bytes
    held(jnp.ones(A.shape[0]))
    assert gs.cache_info().bytes - before < 1 << 18
    gs.cache_clear()
    assert gs.cache_info().bytes == 0
