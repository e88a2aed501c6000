"""gpusplu.jax.spsolve and factorized: against what JAX does with dense arrays."""

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import LAYOUTS, System, close, gj, jax, jnp

layouts = pytest.mark.parametrize("layout", LAYOUTS)
dtypes = pytest.mark.parametrize("dtype", ["d", "D"])


def check_grads(f, arguments, order=2):
    from jax.test_util import check_grads

    check_grads(f, arguments, order=order, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


@layouts
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("nrhs", [None, 1, 3])
def test_solves(layout, dtype, nrhs):
    one = System(layout, dtype, nrhs)
    expected = np.linalg.solve(one.dense, one.b)
    tolerance = 1e-4 if dtype in "fF" else 1e-12
    assert close(gj.spsolve(one.A, one.b), expected, tolerance)
    assert close(jax.jit(lambda b: gj.spsolve(one.A, b))(one.b), expected, tolerance)
    assert close(jax.jit(gj.spsolve)(one.A, one.b), expected, tolerance)


@layouts
@dtypes
@pytest.mark.parametrize("nrhs", [pytest.param(None, marks=pytest.mark.thorough), 2])
@pytest.mark.parametrize("wrap", [pytest.param(lambda f: f, marks=pytest.mark.thorough), jax.jit])
def test_derivatives(layout, dtype, nrhs, wrap):
    one = System(layout, dtype, nrhs, n=6)
    check_grads(wrap(lambda values, b: gj.spsolve(one.matrix(values), b)), (one.values, one.b))


@layouts
@dtypes
def test_gradients_are_those_of_dense_arrays(layout, dtype):
    one = System(layout, dtype)

    def loss(solve):
        return lambda values, b: abs(solve(values, b) ** 2).sum()

    ours = jax.grad(loss(lambda values, b: gj.spsolve(one.matrix(values), b)), (0, 1))(one.values, one.b)
    dense = jax.grad(loss(lambda values, b: jnp.linalg.solve(one.full(values), b)), (0, 1))(one.values, one.b)
    assert all(map(close, ours, dense))


@layouts
def test_hessian(layout):
    one = System(layout, n=5)

    def hessian(solve):
        return jax.hessian(lambda values: (solve(values) ** 2).sum())(one.values)

    dense = hessian(lambda values: jnp.linalg.solve(one.full(values), one.b))
    assert close(hessian(lambda values: gj.spsolve(one.matrix(values), one.b)), dense, 1e-11)


@layouts
def test_gradient_of_a_matrix_that_is_an_argument(layout):
    one = System(layout)
    gradient = jax.jit(jax.grad(lambda A, b: gj.spsolve(A, b).sum(), allow_int=True))(one.A, one.b)
    dense = jax.grad(lambda A: jnp.linalg.solve(A, one.b).sum())(jnp.asarray(one.dense))
    assert close(gradient.data, dense[one.rows, one.columns])


@pytest.mark.parametrize(("of_A", "of_b"), [("d", "D"), ("D", "d"), ("f", "d"), ("f", "D"), ("d", "F")])
def test_two_dtypes(of_A, of_b):
    one, other = System(dtype=of_A), System(dtype=of_b, nrhs=3)
    x = gj.spsolve(one.A, other.b)
    assert x.dtype == np.result_type(of_A, of_b)
    assert close(x, np.linalg.solve(one.dense.astype(x.dtype), other.b), 1e-5)
    check_grads(lambda b: gj.spsolve(one.A, b), (other.b.astype(np.result_type(of_b, "d")),))


def test_a_complex_right_hand_side_of_a_real_matrix_is_solved_by_a_real_factor():
    one, b = System(), System(dtype="D").b
    assert close(gj.spsolve(one.A, b), np.linalg.solve(one.dense.astype("D"), b))
    before = gs.factorization_count()
    gj.spsolve(one.A, b.real)
    assert gs.factorization_count() == before


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "bfloat16"])
def test_dtypes_that_are_widened(dtype):
    one = System()
    values = jnp.asarray(abs(one.values) + 1, dtype)
    x = gj.spsolve(one.matrix(values), jnp.ones(12, dtype))
    wide = jnp.float64 if dtype in ("int32", "bool") else jnp.float32
    assert x.dtype == wide
    assert close(
        x, jnp.linalg.solve(one.full(values.astype(wide)), jnp.ones(12, wide)), 1e-3 if wide is jnp.float32 else 1e-12
    )


def test_single_precision_is_jax_own():
    one = System()
    with jax.enable_x64(False):
        x = jax.jit(gj.spsolve)(one.matrix(np.asarray(one.values, "f")), np.ones(12))
        assert x.dtype == jnp.float32
        gradient = jax.grad(lambda b: gj.spsolve(one.matrix(np.asarray(one.values, "f")), b).sum())(jnp.ones(12))
        assert gradient.dtype == jnp.float32
    assert close(x, np.linalg.solve(one.dense, np.ones(12)).astype("f"), 1e-4)


@layouts
@pytest.mark.parametrize("traced", [False, True])
def test_padding_is_no_entry(layout, traced):
    dense = System().dense
    A = LAYOUTS[layout].fromdense(dense, nse=np.count_nonzero(dense) + 3)
    solve = gj.spsolve if not traced else jax.jit(gj.spsolve)
    assert close(solve(A, jnp.ones(12)), np.linalg.solve(dense, np.ones(12)))
    loss = lambda A: solve(A, jnp.ones(12)).sum()  # noqa: E731
    gradient = jax.grad(loss, allow_int=True)(A).data
    assert (gradient[-3:] == 0).all()
    assert (gradient[:-3] != 0).all()


@pytest.mark.parametrize("traced", [False, True])
def test_duplicates_are_summed(traced):
    one = System("bcoo")
    index = jnp.concatenate([one.A.indices, one.A.indices[:5]])
    values = jnp.concatenate([one.values.at[:5].multiply(0.25), 0.75 * one.values[:5]])
    A = type(one.A)((values, index), shape=one.A.shape)
    solve = gj.spsolve if not traced else jax.jit(gj.spsolve)
    assert close(solve(A, one.b), np.linalg.solve(one.dense, one.b))
    gradient = jax.grad(lambda A: solve(A, one.b).sum(), allow_int=True)(A).data
    assert close(gradient[-5:], gradient[:5])


@layouts
def test_singular_matrices_have_nan(layout):
    one = System(layout)
    solve = jax.jit(lambda v: gj.spsolve(one.matrix(v), one.b))
    for values in (0 * one.values, one.values.at[0].set(jnp.nan), one.values.at[0].set(jnp.inf)):
        assert jnp.isnan(solve(values)).all()
        assert jnp.isnan(jax.grad(lambda v: solve(v).sum())(values)).all()
    assert jnp.isfinite(solve(one.values)).all()


def test_bad_input():
    one = System()
    with pytest.raises(TypeError, match=r"must be a BCSR or BCOO matrix .* BCSR\.fromdense"):
        gj.spsolve(jnp.asarray(one.dense), one.b)
    with pytest.raises(TypeError, match=r"pass b\.todense"):
        gj.spsolve(one.A, LAYOUTS["bcoo"].fromdense(one.b))
    with pytest.raises(ValueError, match=r"matrix - rhs dimension mismatch \(\(12, 12\) - \(3,\)\)"):
        gj.spsolve(one.A, one.b[:3])
    with pytest.raises(ValueError, match=r"matrix must be square \(has shape \(2, 3\)\)"):
        gj.spsolve(LAYOUTS["bcsr"].fromdense(jnp.ones((2, 3))), jnp.ones(2))
    with pytest.raises(ValueError, match=r"1 batch and 0 dense dimensions; use jax.vmap"):
        gj.spsolve(LAYOUTS["bcoo"].fromdense(jnp.ones((2, 3, 3)), n_batch=1), jnp.ones(3))
    with pytest.raises(ValueError, match="trans must be N, T, or H"):
        gj.factorized(one.A).solve(one.b, "X")


def test_arrays_of_other_libraries_are_refused():
    torch = pytest.importorskip("torch")
    one = System()
    with pytest.raises(TypeError, match=r"a matrix of JAX and torch\.Tensor; pass jax\.numpy\.from_dlpack\(b\)"):
        gj.spsolve(one.A, torch.ones(12))


@layouts
@dtypes
@pytest.mark.parametrize("trans", "NTH")
def test_factorized(layout, dtype, trans):
    one = System(layout, dtype)
    dense = {"N": one.dense, "T": one.dense.T, "H": one.dense.conj().T}[trans]
    solve = gj.factorized(one.A)
    before = gs.factorization_count()
    assert close(solve.solve(one.b, trans), np.linalg.solve(dense, one.b))
    assert close(jax.jit(lambda b: solve.solve(b, trans))(one.b), np.linalg.solve(dense, one.b))
    assert close(jax.jit(lambda solve, b: solve.solve(b, trans))(solve, one.b), np.linalg.solve(dense, one.b))
    check_grads(lambda b: solve.solve(b, trans), (one.b,))
    assert gs.factorization_count() == before
    check_grads(lambda v, b: gj.factorized(one.matrix(v)).solve(b, trans), (one.values, one.b))


def test_factorized_of_a_singular_matrix():
    one = System()
    solve = gj.factorized(one.matrix(0 * one.values))
    assert jnp.isnan(solve(one.b)).all()


@layouts
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_backward_pass_makes_no_factorization(layout, wrap):
    one = System(layout)
    solve = wrap(lambda values, b: gj.spsolve(one.matrix(values), b))
    before = gs.factorization_count()
    x, backward = jax.vjp(solve, one.values, one.b)
    assert gs.factorization_count() == before + 1
    backward(x)
    assert gs.factorization_count() == before + 1
    gradient = wrap(jax.grad(lambda values: solve(values, one.b).sum()))
    jax.jvp(gradient, (2 * one.values,), (one.values,))
    assert gs.factorization_count() == before + 2
