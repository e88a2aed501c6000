"""vmap of gpusplu.jax.spsolve: one native call, whatever is mapped."""

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import LAYOUTS, STORE, System, close, gj, jax, jnp
from support.small_matrices import dtypes

layouts = pytest.mark.parametrize("layout", LAYOUTS)
wraps = pytest.mark.parametrize("wrap", [pytest.param(lambda f: f, marks=pytest.mark.thorough), jax.jit])


@pytest.fixture
def calls(monkeypatch):
    """Shapes of the values that factors were asked for, in order."""
    shapes = []
    find = STORE.find

    def noted(structure, values):
        shapes.append(values.shape)
        return find(structure, values)

    monkeypatch.setattr(STORE, "find", noted)
    return shapes


def of(one):
    return lambda values, b: gj.spsolve(one.matrix(values), b)


def dense(one):
    return lambda values, b: jnp.linalg.solve(one.full(values), b)


def arguments(one, axes):
    b = jnp.stack([one.b, 2 * one.b, one.b - 1])
    return one.several(3) if axes[0] == 0 else one.values, b if axes[1] == 0 else one.b


@layouts
@wraps
@pytest.mark.parametrize("nrhs", [None, 2])
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_is_one_native_call(layout, wrap, nrhs, axes, calls):
    one = System(layout, nrhs=nrhs)
    given = arguments(one, axes)
    x = wrap(jax.vmap(of(one), axes))(*given)
    assert calls == [(one.values.size,) if axes[0] is None else (3, one.values.size)]
    assert close(x, jax.vmap(dense(one), axes)(*given))


@pytest.mark.parametrize("dtype", dtypes("dD"))
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
@wraps
def test_derivatives(dtype, axes, wrap):
    from jax.test_util import check_grads

    one = System(dtype=dtype, n=5)
    check_grads(wrap(jax.vmap(of(one), axes)), arguments(one, axes), order=2, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("inner", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("outer", [(0, None), (None, 0), (0, 0)])
@wraps
def test_vmap_of_vmap(inner, outer, wrap, calls):
    one = System()
    shapes = [tuple(size for size, axis in ((2, outer[k]), (3, inner[k])) if axis == 0) for k in (0, 1)]
    values = one.values * (1 + 0.1 * one.draw(*shapes[0], one.values.size))
    b = jnp.asarray(one.draw(*shapes[1], 12))
    nested = lambda f: jax.vmap(jax.vmap(f, inner), outer)  # noqa: E731
    assert close(wrap(nested(of(one)))(values, b), nested(dense(one))(values, b))
    assert len(calls) == 1
    loss = lambda f: lambda values, b: (nested(f)(values, b) ** 2).sum()  # noqa: E731
    gradients = wrap(jax.grad(loss(of(one)), (0, 1)))(values, b)
    assert all(map(close, gradients, jax.grad(loss(dense(one)), (0, 1))(values, b)))


@layouts
@wraps
def test_gradient_of_every_system(layout, wrap):
    one = System(layout)
    values, b = arguments(one, (0, 0))
    each = lambda f: jax.vmap(jax.grad(lambda v, b: (f(v, b) ** 2).sum(), (0, 1)))(values, b)  # noqa: E731
    before = gs.factorization_count()
    ours = wrap(lambda values, b: jax.vmap(jax.grad(lambda v, b: (of(one)(v, b) ** 2).sum(), (0, 1)))(values, b))(
        values, b
    )
    assert gs.factorization_count() == before + 3
    assert all(map(close, ours, each(dense(one))))


@layouts
@wraps
@pytest.mark.parametrize("shared", [True, False])
def test_matrices_in_a_batch(layout, wrap, shared, calls):
    """Index arrays that are mapped: one call if they are the same in every system."""
    one, other = System(layout), System(layout)
    if not shared:
        other.A = type(other.A).fromdense(other.dense.T)
    A = [one.A, other.A]
    leaves = [jnp.stack(arrays) for arrays in zip(*map(jax.tree.leaves, A), strict=True)]
    stacked = type(one.A)((leaves[0], *leaves[1:]), shape=(2, *one.A.shape))
    x = wrap(jax.vmap(gj.spsolve, (0, None)))(stacked, one.b)
    dense = np.stack([one.dense, one.dense if shared else one.dense.T])
    assert close(x, np.linalg.solve(dense, np.stack([one.b] * 2)[..., None])[..., 0])
    assert len(calls) == (1 if shared else 2)
    gradient = jax.grad(lambda A: jax.vmap(gj.spsolve, (0, None))(A, one.b).sum(), allow_int=True)(stacked).data
    expected = [jax.grad(lambda A: gj.spsolve(A, one.b).sum(), allow_int=True)(each).data for each in A]
    assert close(gradient, jnp.stack(expected))


@wraps
def test_a_singular_system_leaves_the_others_alone(wrap):
    one = System()
    values = one.several(4).at[1].set(0).at[2, 3].set(jnp.nan)
    x = wrap(jax.vmap(of(one), (0, None)))(values, one.b)
    assert jnp.isnan(x[1:3]).all()
    assert close(x[::3], jnp.stack([of(one)(values[k], one.b) for k in (0, 3)]))
    assert jnp.isnan(wrap(jax.vmap(of(one), (0, None)))(values[1:3], one.b)).all()


@wraps
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_a_batch_of_no_systems(wrap, axes):
    one = System()
    given = one.values[None][:0] if axes[0] == 0 else one.values, one.b[None][:0] if axes[1] == 0 else one.b
    x = wrap(jax.vmap(of(one), axes))(*given)
    assert (x.shape, x.dtype) == ((0, *one.b.shape), one.b.dtype)
    gradients = wrap(jax.grad(lambda *both: jax.vmap(of(one), axes)(*both).sum(), (0, 1)))(*given)
    assert [g.shape for g in gradients] == [v.shape for v in given]
    signs, logarithms = wrap(jax.vmap(lambda values: gj.slogdet(one.matrix(values))))(one.values[None][:0])
    assert signs.shape == logarithms.shape == (0,)


def test_factorized_in_a_batch(calls):
    one = System()
    values = one.several(3)
    solvers = jax.vmap(lambda values: gj.factorized(one.matrix(values)))(values)
    x = jax.vmap(lambda solve, b: solve(b), (0, None))(solvers, one.b)
    assert close(x, jnp.stack([of(one)(each, one.b) for each in values]))
    assert calls[0] == (3, one.values.size)
