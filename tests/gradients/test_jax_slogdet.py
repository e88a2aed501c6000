"""gpusplu.jax.slogdet: against that of dense arrays."""

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import LAYOUTS, System, close, gj, jax, jnp


def of(one):
    return lambda values: tuple(gj.slogdet(one.matrix(values)))


def dense(one):
    return lambda values: tuple(jnp.linalg.slogdet(one.full(values)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("batch", [False, True])
def test_slogdet(layout, dtype, batch, wrap):
    one = System(layout, dtype)
    values = one.several(3).at[:, :4].multiply(-2) if batch else one.values
    tangent = one.draw(*values.shape)
    ours, theirs = (wrap(jax.vmap(f(one)) if batch else f(one)) for f in (of, dense))
    assert all(map(close, ours(values), theirs(values)))
    assert all(map(close, *(jax.jvp(f, (values,), (tangent,))[1] for f in (ours, theirs))))
    assert close(*(jax.grad(lambda v: f(v)[1].sum())(values) for f in (ours, theirs)))  # noqa: B023


def test_single_precision():
    one = System(dtype="f")
    sign, logarithm = gj.slogdet(one.A)
    assert logarithm.dtype == jnp.float32
    assert np.isclose(logarithm, np.linalg.slogdet(one.dense)[1], rtol=1e-4)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_backward_pass_makes_no_factorization(wrap):
    one = System()
    before = gs.factorization_count()
    jax.block_until_ready(wrap(jax.value_and_grad(lambda values: gj.slogdet(one.matrix(values))[1]))(one.values))
    assert gs.factorization_count() == before + 1
    systems = one.several(3)
    jax.block_until_ready(wrap(jax.vmap(jax.grad(lambda values: gj.slogdet(one.matrix(values))[1])))(systems))
    assert gs.factorization_count() == before + 4
    gradient = jax.grad(lambda values: gj.slogdet(one.matrix(values))[1])
    along = jax.vmap(lambda values: jax.jvp(gradient, (values,), (values,))[1])
    jax.block_until_ready(wrap(along)(2 * systems))
    assert gs.factorization_count() == before + 7


def test_singular_matrices():
    one = System()
    f = jax.jit(jax.value_and_grad(lambda values: gj.slogdet(one.matrix(values))[1]))
    logarithm, gradient = f(0 * one.values)
    assert logarithm == -jnp.inf
    assert jnp.isnan(gradient).all()
    assert gj.slogdet(one.matrix(0 * one.values)).sign == 0
    assert jnp.isnan(f(one.values.at[0].set(jnp.nan))[0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "n"), [("d", 5), ("d", 40), ("D", 5)])
def test_second_derivatives(layout, dtype, n):
    one = System(layout, dtype, n=n)
    values, direction = one.several(2), one.draw(2, one.values.size)

    def curvature(f):
        gradient = jax.grad(lambda values: f(one)(values)[1])
        along = jax.vmap(lambda values, direction: jax.jvp(gradient, (values,), (direction,))[1])
        across = jax.vmap(lambda values, direction: jax.vjp(gradient, values)[1](direction)[0])
        return [jax.jit(each)(values, direction) for each in (along, across)]

    assert all(map(close, curvature(of), curvature(dense)))


def test_third_derivatives_are_refused():
    one = System(n=5)
    with pytest.raises(NotImplementedError, match="slogdet has first and second derivatives only"):
        jax.jacfwd(jax.hessian(lambda values: gj.slogdet(one.matrix(values))[1]))(one.values)
