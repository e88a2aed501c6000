"""Solves and determinants under transformations of torch.func and JAX, beside those of dense arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

import gpusplu as gs

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse (CSR tensor support|invariant checks)"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
]


def of_torch(dtype):
    """torch.func, what compiles, `stack`, functions of `values` and `b`, sparse and dense, and such arguments."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import gpusplu.torch as gst
    from support.tensors import dense, numbers, on_pattern

    dtype = {"d": torch.float64, "D": torch.complex128}[dtype]
    pattern, values = on_pattern(dtype=dtype)
    sparse_functions = {
        "spsolve": lambda values, b: gst.spsolve(pattern, b, values=values),
        "slogdet": lambda values, b: gst.slogdet(pattern, values=values),
    }
    dense_functions = {
        "spsolve": lambda values, b: torch.linalg.inv(dense(pattern, values)) @ b,
        "slogdet": lambda values, b: torch.linalg.slogdet(dense(pattern, values)),
    }
    return (
        torch.func,
        lambda f: f,
        torch.stack,
        sparse_functions,
        dense_functions,
        values.detach(),
        numbers(6, dtype=dtype),
    )


def of_jax(dtype, layout, compiled):
    from support.jaxes import System, gj, jax, jnp

    one = System(layout, dtype, n=6)
    sparse_functions = {
        "spsolve": lambda values, b: gj.spsolve(one.matrix(values), b),
        "slogdet": lambda values, b: gj.slogdet(one.matrix(values)),
    }
    dense_functions = {
        "spsolve": lambda values, b: jnp.linalg.solve(one.full(values), b),
        "slogdet": lambda values, b: jnp.linalg.slogdet(one.full(values)),
    }
    return jax, jax.jit if compiled else lambda f: f, jnp.stack, sparse_functions, dense_functions, one.values, one.b


FRAMEWORKS = {
    "torch": of_torch,
    "jax, bcsr": lambda dtype: of_jax(dtype, "bcsr", compiled=True),
    "jax, bcoo": lambda dtype: of_jax(dtype, "bcoo", compiled=False),
}


def squares(f):
    """A real number of any result of `f`; of a determinant its sign counts too."""

    def total(values, b):
        x = f(values, b)
        return (x * x.conj()).real.sum() if hasattr(x, "ndim") else (x[1] + (x[0] * x[0]).real).sum()

    return total


#: A transformation of a function, and which of its arguments are mapped over.
TRANSFORMATIONS = {
    "none": ((None, None), lambda T, f: f),
    "grad": ((None, None), lambda T, f: T.grad(squares(f), (0, 1))),
    "jacrev": ((None, None), lambda T, f: T.jacrev(squares(f), (0, 1))),
    "jacfwd": ((None, None), lambda T, f: T.jacfwd(squares(f), (0, 1))),
    "hessian": ((None, None), lambda T, f: T.hessian(squares(f), (0, 1))),
    "jacrev of jacfwd": ((None, None), lambda T, f: T.jacrev(T.jacfwd(squares(f), (0, 1)), (0, 1))),
    "vmap over values": ((0, None), lambda T, f: T.vmap(f, (0, None))),
    "vmap over b": ((None, 0), lambda T, f: T.vmap(f, (None, 0))),
    "vmap": ((0, 0), lambda T, f: T.vmap(f, (0, 0))),
    "vmap of vmap": ((0, 0), lambda T, f: T.vmap(T.vmap(f, (None, 0)), (0, None))),
    "vmap of grad": ((0, 0), lambda T, f: T.vmap(T.grad(squares(f), (0, 1)), (0, 0))),
    "vmap of hessian": ((0, None), lambda T, f: T.vmap(T.hessian(squares(f), (0, 1)), (0, None))),
    "grad of vmap": ((0, 0), lambda T, f: T.grad(squares(T.vmap(f, (0, 0))), (0, 1))),
}
FORWARD = {"jacfwd", "hessian", "jacrev of jacfwd", "vmap of hessian"}  # factors for every direction
OF_REAL_NUMBERS = {"jacrev", *FORWARD}
BY_DEFAULT = {"d": TRANSFORMATIONS.keys() - {"jacrev of jacfwd", "vmap of hessian"}, "D": {"grad", "vmap of grad"}}
CASES = [
    pytest.param(name, dtype, marks=[] if name in BY_DEFAULT[dtype] else pytest.mark.thorough)
    for name in TRANSFORMATIONS
    for dtype in ("d" if name in OF_REAL_NUMBERS else "dD")
]


def by_reverse_mode(T):
    """The same transformations without forward mode, which torch does wrong for its dense functions."""
    hessian = lambda f, argnums: T.jacrev(T.jacrev(f, argnums), argnums)  # noqa: E731
    return SimpleNamespace(grad=T.grad, vmap=T.vmap, jacrev=T.jacrev, jacfwd=T.jacrev, hessian=hessian)


def leaves(result):
    return [one for part in result for one in leaves(part)] if isinstance(result, tuple) else [np.asarray(result)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("function", ["spsolve", "slogdet"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_transformations(framework, function, name, dtype):
    T, wrap, stack, ours, dense, *arguments = FRAMEWORKS[framework](dtype)
    axes, transform = TRANSFORMATIONS[name]
    given = [
        stack([k * one for k in (1, 2, 3)]) if axis == 0 else one for one, axis in zip(arguments, axes, strict=True)
    ]
    before = gs.factorization_count()
    found = leaves(wrap(transform(T, ours[function]))(*given))
    assert name in FORWARD or gs.factorization_count() - before == (3 if axes[0] == 0 else 1)
    for one, expected in zip(found, leaves(transform(by_reverse_mode(T), dense[function])(*given)), strict=True):
        assert (one.dtype, one.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-10 * max(1, abs(expected).max()))
