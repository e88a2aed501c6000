"""gpusplu.jax: spsolve, factorized and slogdet against what JAX does with dense arrays."""

import numpy as np
import pytest

import gpusplu as gs
from support.jaxes import BCSR, LAYOUTS, System, close, gj, jax, jnp

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


wraps = pytest.mark.parametrize("wrap", [pytest.param(lambda f: f, marks=pytest.mark.thorough), jax.jit])


def solve_of(one):
    return lambda values, b: gj.spsolve(one.matrix(values), b)


@layouts
@wraps
@pytest.mark.parametrize("shared", [True, False])
def test_matrices_in_a_batch(layout, wrap, shared):
    """Index arrays that are mapped, the same in every system or others."""
    one, other = System(layout), System(layout)
    if not shared:
        other.A = type(other.A).fromdense(other.dense.T)
    A = [one.A, other.A]
    leaves = [jnp.stack(arrays) for arrays in zip(*map(jax.tree.leaves, A), strict=True)]
    stacked = type(one.A)((leaves[0], *leaves[1:]), shape=(2, *one.A.shape))
    x = wrap(jax.vmap(gj.spsolve, (0, None)))(stacked, one.b)
    dense = np.stack([one.dense, one.dense if shared else one.dense.T])
    assert close(x, np.linalg.solve(dense, np.stack([one.b] * 2)[..., None])[..., 0])
    gradient = jax.grad(lambda A: jax.vmap(gj.spsolve, (0, None))(A, one.b).sum(), allow_int=True)(stacked).data
    expected = [jax.grad(lambda A: gj.spsolve(A, one.b).sum(), allow_int=True)(each).data for each in A]
    assert close(gradient, jnp.stack(expected))


@wraps
def test_a_singular_system_leaves_the_others_alone(wrap):
    one = System()
    values = one.several(4).at[1].set(0).at[2, 3].set(jnp.nan)
    x = wrap(jax.vmap(solve_of(one), (0, None)))(values, one.b)
    assert jnp.isnan(x[1:3]).all()
    assert close(x[::3], jnp.stack([solve_of(one)(values[k], one.b) for k in (0, 3)]))
    assert jnp.isnan(wrap(jax.vmap(solve_of(one), (0, None)))(values[1:3], one.b)).all()


@wraps
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_a_batch_of_no_systems(wrap, axes):
    one = System()
    given = one.values[None][:0] if axes[0] == 0 else one.values, one.b[None][:0] if axes[1] == 0 else one.b
    x = wrap(jax.vmap(solve_of(one), axes))(*given)
    assert (x.shape, x.dtype) == ((0, *one.b.shape), one.b.dtype)
    gradients = wrap(jax.grad(lambda *both: jax.vmap(solve_of(one), axes)(*both).sum(), (0, 1)))(*given)
    assert [g.shape for g in gradients] == [v.shape for v in given]
    signs, logarithms = wrap(jax.vmap(lambda values: gj.slogdet(one.matrix(values))))(one.values[None][:0])
    assert signs.shape == logarithms.shape == (0,)


def test_determinant_in_single_precision():
    one = System(dtype="f")
    sign, logarithm = gj.slogdet(one.A)
    assert logarithm.dtype == jnp.float32
    assert np.isclose(logarithm, np.linalg.slogdet(one.dense)[1], rtol=1e-4)


def test_determinants_of_singular_matrices():
    one = System()
    f = jax.jit(jax.value_and_grad(lambda values: gj.slogdet(one.matrix(values))[1]))
    logarithm, gradient = f(0 * one.values)
    assert logarithm == -jnp.inf
    assert jnp.isnan(gradient).all()
    assert gj.slogdet(one.matrix(0 * one.values)).sign == 0
    assert jnp.isnan(f(one.values.at[0].set(jnp.nan))[0])


@layouts
def test_third_derivatives_of_determinants(layout):
    one = System(layout, n=4)
    third, expected = (
        jax.jacfwd(jax.hessian(f))(one.values)
        for f in (
            lambda values: gj.slogdet(one.matrix(values))[1],
            lambda values: jnp.linalg.slogdet(one.full(values))[1],
        )
    )
    assert close(third, expected, 1e-10)


def test_gradient_of_many_entries_with_traced_indices():
    A = gs.gallery.poisson(100_000).tocsr()
    b = jnp.ones(A.shape[0])

    @jax.jit
    def gradient(values):
        return jax.grad(lambda values: gj.spsolve(BCSR((values, A.indices, A.indptr), shape=A.shape), b).sum())(values)

    x = gs.spsolve(A, np.ones(A.shape[0]))
    rows, columns = A.tocoo().coords
    assert close(gradient(jnp.asarray(A.data)), -x[rows] * x[columns], 1e-9)
