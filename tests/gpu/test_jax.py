"""JAX on a device: arrays by DLPack, and compiled solves through the host."""

import numpy as np
import pytest

from gpusplu.timing import backward_error

pytestmark = pytest.mark.gpu


@pytest.fixture
def system(cupy):
    jaxes = pytest.importorskip("support.jaxes")
    if jaxes.jax.default_backend() != "gpu":
        pytest.skip("JAX has no device")
    return jaxes.System


def test_arrays_stay_on_the_device(system):
    import jax

    import gpusplu as gs

    one = system(n=200)
    lu = gs.splu(one.A, engine="supernodal")
    x = lu.solve(one.b)
    assert isinstance(x, jax.Array)
    assert x.devices() == one.b.devices()
    assert backward_error(one.dense, np.asarray(x), np.asarray(one.b)) < 1e-15
    lu.refactor(2 * one.values)
    assert abs(2 * np.asarray(lu.solve(one.b)) - np.asarray(x)).max() < 1e-12
    assert gs.spsolve(one.A, one.b).devices() == one.b.devices()


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients(system, compiled):
    import jax
    import jax.numpy as jnp

    import gpusplu as gs
    import gpusplu.jax as gj

    one = system(n=50)
    wrap = jax.jit if compiled else lambda f: f
    loss = lambda solve: lambda values, b: (solve(values, b) ** 2).sum()  # noqa: E731
    ours = wrap(jax.grad(loss(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1)))
    dense = jax.grad(loss(lambda values, b: jnp.linalg.solve(one.full(values), b)), (0, 1))
    before = gs.factorization_count()
    found = ours(one.values, one.b)
    assert gs.factorization_count() == before + 1
    for a, b in zip(found, dense(one.values, one.b), strict=True):
        assert a.devices() == one.b.devices()
        assert float(abs(a - b).max() / abs(b).max()) < 1e-10


def test_batches_and_determinants(system):
    import jax
    import jax.numpy as jnp

    import gpusplu.jax as gj

    one = system(n=50)
    values = one.several(4)
    x = jax.jit(jax.vmap(lambda v: gj.spsolve(one.matrix(v), one.b)))(values)
    expected = jax.vmap(lambda v: jnp.linalg.solve(one.full(v), one.b))(values)
    assert float(abs(x - expected).max() / abs(expected).max()) < 1e-10
    gradient = jax.jit(jax.grad(lambda v: gj.slogdet(one.matrix(v))[1]))(one.values)
    expected = jax.grad(lambda v: jnp.linalg.slogdet(one.full(v))[1])(one.values)
    assert float(abs(gradient - expected).max() / abs(expected).max()) < 1e-10
