"""Factors that gpusplu.jax keeps: dead ones are freed, and what is kept is counted."""

import gc
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import STORE, gj, jax, jnp
from support.processes import PYTHON, environment


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


@pytest.mark.parametrize("how", ["jit", "vmap", "grad", "jit of grad", "value without adjoint"])
def test_loops_of_new_values_under_transformations(how):
    A, matrix = matrices(20)
    b = jnp.ones(A.shape[0])

    def total(values, b):
        M = jax.experimental.sparse.BCSR((values, jnp.asarray(A.indices), jnp.asarray(A.indptr)), shape=A.shape)
        return gj.factorized(M)(b).sum()

    call = {
        "jit": jax.jit(total),
        "vmap": lambda values, b: jax.vmap(total, (0, None))(jnp.stack([values, 2 * values]), b),
        "grad": jax.grad(total),
        "jit of grad": jax.jit(jax.grad(total, (0, 1))),
        "value without adjoint": total,
    }[how]
    for k in range(30):
        call(matrix(k).data, b)
    assert len(STORE.entries) <= 5
    assert all(entry.users == 0 for entry in STORE.entries.values())


def test_adjoints_that_never_come_are_waited_for_within_bounds(monkeypatch):
    A, matrix = matrices(5)
    b = jnp.ones(A.shape[0])
    for k in range(1100):
        jax.vjp(lambda b, k=k: gj.spsolve(matrix(k), b), b)
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
    tests = Path(__file__).parents[1]
    program = [*PYTHON, "-c", RESIDENT, str(side), str(count)]
    ran = subprocess.run(program, env=environment(tests), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert 0.8 < float(ran.stdout) < 1.2


def test_factors_of_the_caller_are_not_counted():
    A, matrix = matrices(60)
    held = gj.factorized(matrix(0))
    before = gs.cache_info().bytes
    held(jnp.ones(A.shape[0]))
    assert gs.cache_info().bytes - before < 1 << 18
    gs.cache_clear()
    assert gs.cache_info().bytes == 0
