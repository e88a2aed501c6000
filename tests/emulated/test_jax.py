"""Compiled programs of gpusplu.jax on a device: XLA's own here, with factors in the emulator, or all on a GPU."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support import fake_cupy
from support.cupys import real_cupy
from support.jaxes import System, close, gj, jax, jnp, made
from support.small_matrices import dtypes
from support.staying import forbid

on_device = gj.device
register_lowering = jax.interpreters.mlir.register_lowering
TOLERANCE = 1e-9
EMULATED = pytest.mark.parametrize("backend", ["emulated"], indirect=True)
GPU = pytest.mark.parametrize("backend", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)

#: How programs are lowered for a device.
LOWERED = {
    gj.primitives.solve_p: on_device.lower_solve,
    gj.primitives.slogdet_p: on_device.lower_by_host(gj.host.slogdet),
    gj.primitives.selected_p: on_device.lower_by_host(gj.host.selected),
}


def emulated_place(work, context, results, *operands):
    """Finds the memory of a device where the processor has its own."""
    made = work(*map(array_of, operands))
    for result, array in zip(results, made, strict=True):
        array_of(result)[...] = array


def array_of(buffer):
    return np.asarray(buffer).view(fake_cupy.ndarray)


@pytest.fixture(autouse=True, params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request, monkeypatch):
    """What is compiled goes the way of a GPU."""
    if request.param == "gpu":
        real_cupy()
        if jax.default_backend() != "gpu":
            pytest.skip("JAX has no device")
    else:
        request.getfixturevalue("device"), request.getfixturevalue("cupy")
        monkeypatch.setattr(gj.foreign, "on_device", emulated_place)
        jax.clear_caches()
        for primitive, rule in LOWERED.items():
            register_lowering(primitive, rule, platform="cpu")
    yield request.param
    for primitive in LOWERED if request.param == "emulated" else ():
        callback = getattr(gj.host, primitive.name.removeprefix("gpusplu_"))
        register_lowering(primitive, partial(gj.foreign.lower, gj.foreign.on_host, callback), platform="cpu")
    jax.clear_caches()
    on_device.STORE.clear()


@pytest.fixture
def n(backend):
    return 20 if backend == "emulated" else 50


@pytest.fixture
def begin(backend, monkeypatch, request):
    """Call it, and whatever takes values or vectors of a device to the host, or from there, fails from then on."""
    places = [(on_device.matrix, "to_host"), (on_device, "first_factored")]
    if backend == "emulated":
        places += [(request.getfixturevalue("cupy").ndarray, name) for name in ("get", "set")]
    return lambda: forbid(monkeypatch, *places)


def squares(solve):
    return lambda values, b: (abs(solve(values, b)) ** 2).sum()


def gradients_of(one):
    """Of the sum of squares of solutions, with respect to values and b: ours, and JAX's of dense matrices."""
    ours = jax.jit(jax.grad(squares(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1)))
    return ours, jax.jit(jax.grad(squares(lambda values, b: jnp.linalg.solve(one.full(values), b)), (0, 1)))


def all_close(found, expected):
    return all(close(a, b, TOLERANCE) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", dtypes("dD"))
def test_steps_of_descent(begin, n, dtype):
    """Each step factors once, and values stay on the device after the first."""
    one = System(n=n, dtype=dtype)
    ours, dense = gradients_of(one)
    values = one.values
    for step in range(6):
        found, count = made(lambda values=values: ours(values, one.b))
        assert count == 1
        assert all(array.devices() == one.b.devices() for array in found)
        assert all_close(found, dense(values, one.b))
        values = values * 1.01
        if step == 0:
            begin()
    assert len(on_device.STORE.entries) == 1


def test_one_matrix_in_a_scan(n):
    one = System(n=n)
    step = lambda x, _: (gj.spsolve(one.A, x / jnp.linalg.norm(x)), None)  # noqa: E731
    x, count = made(lambda: jax.jit(lambda b: jax.lax.scan(step, b, length=20))(one.b)[0])
    assert count == 1
    expected = np.asarray(one.b)
    for _ in range(20):
        expected = np.linalg.solve(one.dense, expected / np.linalg.norm(expected))
    assert close(x, expected, TOLERANCE)


def test_matrices_in_a_scan(begin, n):
    """The adjoints find the factors of all steps. One that is not the first of its pattern begins with the first
    values, and so has been factored twice."""
    one = System(n=n)

    def loss(solve, values):
        step = lambda x, scale: (solve(values * scale, x), None)  # noqa: E731
        return (jax.lax.scan(step, one.b, jnp.linspace(0.1, 0.3, 5))[0] ** 2).sum()

    ours = jax.jit(jax.grad(lambda values: loss(lambda v, b: gj.spsolve(one.matrix(v), b), values)))
    dense = jax.jit(jax.grad(lambda values: loss(lambda v, b: jnp.linalg.solve(one.full(v), b), values)))
    found, count = made(lambda: ours(one.values))
    assert count == 1 + 2 * 4
    assert close(found, dense(one.values), TOLERANCE)
    begin()
    found, count = made(lambda: ours(1.1 * one.values))
    assert count == 5
    assert close(found, dense(1.1 * one.values), TOLERANCE)


def test_wrong_guesses(begin, n):
    """Whatever is expected, the answer is that of the values."""
    one = System(n=n)
    solve = jax.jit(lambda values, b: gj.spsolve(one.matrix(values), b))
    two = [one.values, 2 * one.values]
    solve(two[0], one.b)
    begin()
    for which in (0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1):
        expected = np.linalg.solve(np.asarray(one.full(two[which])), np.asarray(one.b))
        assert close(solve(two[which], one.b), expected, TOLERANCE)


def test_threads(n):
    """Several run one program, each with values of its own."""
    one = System(n=n)
    solve = jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))
    values = one.several(4)
    expected = [np.asarray(jnp.linalg.solve(one.full(each), one.b)) for each in values]

    def is_right(k):
        return all(close(solve(values[k]), expected[k], TOLERANCE) for _ in range(30))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_right, range(4)))
    assert all(entry.users == 0 for entry in on_device.STORE.entries.values())


@pytest.mark.parametrize("dtype", dtypes("dD"))
def test_several_right_hand_sides(n, dtype):
    one = System(n=n, nrhs=3, dtype=dtype)
    ours, dense = gradients_of(one)
    for values in (one.values, 2 * one.values, 2 * one.values):
        assert all_close(ours(values, one.b), dense(values, one.b))


@pytest.mark.parametrize(
    ("values_too", "b_too", "nrhs"), [(True, True, None), (True, True, 2), (True, False, 2), (False, True, None)]
)
def test_batches(values_too, b_too, nrhs):
    """vmap of a gradient; each call has new values."""
    one = System(n=12, nrhs=nrhs)
    ours, dense = gradients_of(one)
    axes = (0 if values_too else None, 0 if b_too else None)
    count = 3
    b = jnp.stack([one.b * (k + 1) for k in range(count)]) if b_too else one.b
    for scale in (1.0, 1.1, 1.1, 1.2):
        values = scale * (one.several(count) if values_too else one.values)
        found = jax.jit(jax.vmap(ours, axes))(values, b)
        assert all_close(found, jax.vmap(dense, axes)(values, b))


def test_values_that_have_no_factor(n):
    """Singular and not finite ones have NaN; what was factored before stays what it was."""
    one = System(n=n)
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


@pytest.mark.parametrize("layout", ["bcsr", "bcoo"])
def test_traced_patterns(n, layout):
    """An A that is an argument of the function, whose indices are read on the host."""
    one = System(n=n, layout=layout)
    ours = jax.jit(jax.grad(lambda A, b: (gj.spsolve(A, b) ** 2).sum(), allow_int=True))
    expected = gradients_of(one)[1](one.values, one.b)[0]
    for _ in range(2):
        assert close(ours(one.A, one.b).data, expected, TOLERANCE)


def test_determinants():
    one = System(n=12)
    gradient = jax.jit(jax.grad(lambda values: gj.slogdet(one.matrix(values))[1]))
    expected = jax.grad(lambda values: jnp.linalg.slogdet(one.full(values))[1])
    assert close(gradient(one.values), expected(one.values), TOLERANCE)


def test_without_jit(backend, n, monkeypatch, caplog):
    """Each primitive is a program of its own, compiled once."""
    if backend == "emulated":
        monkeypatch.setattr(gj.primitives.Jax, "is_on_device", lambda *_: True)
    one = System(n=n)
    gradient = jax.grad(squares(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1))
    expected = gradients_of(one)[1]
    wanted = [expected(values, one.b) for values in (one.values, 2 * one.values)]
    for values, right in zip((one.values, 2 * one.values), wanted, strict=True):
        caplog.clear()
        with jax.log_compiles():
            found, count = made(lambda values=values: gradient(values, one.b))
        assert count == 1
        assert all_close(found, right)
        assert any("Compiling" in line for line in caplog.messages) == (values is one.values)
    with jax.disable_jit():
        assert all_close(gradient(one.values, one.b), expected(one.values, one.b))


@EMULATED
def test_a_step_waits_as_often_as_calls_of_factors(device):
    """One graph and one wait for refactoring and solving, and one for the adjoint."""
    one = System(n=20)
    ours, _ = gradients_of(one)
    values = [one.values * (1 + 0.01 * k) for k in range(4)]
    for each in values[:3]:
        jax.block_until_ready(ours(each, one.b))
    device.counts.clear()
    jax.block_until_ready(ours(values[3], one.b))
    assert (device.counts["replay"], device.counts["synchronize"]) == (2, 2)


@EMULATED
def test_padding():
    one = System(n=12, layout="bcoo")
    index = jnp.concatenate([one.A.indices, jnp.full((2, 2), 12, one.A.indices.dtype)])
    solve = jax.jit(lambda values: gj.spsolve(type(one.A)((values, index), shape=one.A.shape), one.b))
    x = solve(jnp.concatenate([one.values, jnp.array([3.0, jnp.nan])]))
    np.testing.assert_allclose(x, np.linalg.solve(one.dense, one.b), rtol=1e-9)


@EMULATED
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


@EMULATED
def test_what_is_held():
    """A holder keeps its factor from the values that come."""

    class Holder:
        pass

    one, holder = System(n=12), Holder()
    structure = gj.solvers.read_matrix(one.A, "test").structure
    values = np.asarray(one.values).view(on_device.devices.open_device().array_class)
    on_device.STORE.hold(structure, values, holder)
    solve, solve_others = (jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b)) for _ in range(2))
    for scale in (2.0, 3.0):
        solve_others(scale * one.values).block_until_ready()
    _, count = made(lambda: solve(one.values))
    assert count == 0
    gs.cache_clear()
    assert len(on_device.STORE.entries) == 1
    del holder
    gs.cache_clear()
    assert not on_device.STORE.entries


@EMULATED
def test_errors_of_the_device_are_no_singular_matrices(monkeypatch):
    one = System(n=12)

    def fail(*_):
        raise RuntimeError("cudaErrorLaunchFailure")

    monkeypatch.setattr(on_device, "made_lu", fail)
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="cudaErrorLaunchFailure"):
        jax.jit(lambda values: gj.spsolve(one.matrix(values), one.b))(one.values).block_until_ready()


@EMULATED
def test_guesses():
    guess = on_device.Guess()
    held = []
    for each in (1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1):
        held.append(guess.held)
        guess.learn(bool(each))
    assert held == [True, True, True, True, True, False, False, False, False, False, False, True]


# ---- on a GPU only


@GPU
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


@GPU
def test_factorized_keeps_its_factor(begin):
    one = System(n=50)
    solve = gj.factorized(one.A)
    begin()
    compiled = jax.jit(lambda solve, b: solve(b))
    for scale in (1.0, 2.0):
        x, count = made(lambda scale=scale: compiled(solve, scale * one.b))
        assert count == 0
        assert x.devices() == one.b.devices()
        assert close(x, np.linalg.solve(one.dense, scale * np.asarray(one.b)), 1e-9)


@GPU
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
        assert close(ours(other), dense(other), 1e-7)
