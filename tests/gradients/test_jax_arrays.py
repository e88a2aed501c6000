"""gpusplu's own functions with arrays of JAX: the same kind out, and errors that say what to do."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.jaxes import LAYOUTS, System, close, jax, jnp
from support.processes import PYTHON, environment

layouts = pytest.mark.parametrize("layout", LAYOUTS)


@layouts
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("nrhs", [None, 2])
def test_factors(layout, dtype, nrhs):
    one = System(layout, dtype, nrhs)
    tolerance = 1e-4 if dtype in "fF" else 1e-12
    expected = np.linalg.solve(one.dense, one.b)
    lu = gs.splu(one.A)
    for x in (lu.solve(one.b), gs.spsolve(one.A, one.b), gs.factorized(one.A)(one.b)):
        assert isinstance(x, jax.Array)
        assert close(x, expected, tolerance)
    assert close(lu.solve(one.b, "H"), np.linalg.solve(one.dense.conj().T, one.b), tolerance)
    lu.refactor(2 * one.values)
    assert close(lu.solve(one.b), expected / 2, tolerance)
    lu.refactor(one.matrix(3 * one.values))
    assert close(lu.solve(one.b), expected / 3, tolerance)
    assert close(lu.refactor_solve(one.values, one.b), expected, tolerance)


@layouts
def test_cholesky_analyze_and_batches(layout):
    one = System(layout)
    definite = type(one.A).fromdense(one.dense @ one.dense.T)
    ch = gs.cholesky(definite)
    assert close(ch.solve(one.b), np.linalg.solve(definite.todense(), one.b), 1e-11)
    symbolic = gs.analyze(one.A)
    assert close(symbolic.factor(one.values).solve(one.b), np.linalg.solve(one.dense, one.b))
    values = one.several(3)
    for batch in (symbolic.factor(values), gs.splu_batch(one.A, values)):
        x = batch.solve(one.b)
        assert isinstance(x, jax.Array)
        assert close(x, jax.vmap(lambda v: jnp.linalg.solve(one.full(v), one.b))(values))


def test_a_numpy_right_hand_side_of_a_factor_of_jax():
    one = System()
    x = gs.splu(one.A).solve(np.asarray(one.b))
    assert type(x) is np.ndarray


@layouts
def test_padding_is_no_entry(layout):
    dense = System().dense
    A = LAYOUTS[layout].fromdense(dense, nse=np.count_nonzero(dense) + 3)
    assert close(gs.spsolve(A, jnp.ones(12)), np.linalg.solve(dense, np.ones(12)))


@layouts
def test_sparse_right_hand_sides(layout):
    one = System(layout)
    b = type(one.A).fromdense(np.eye(12)[:, :3])
    x = gs.spsolve(one.A, b)
    assert type(x) is type(one.A)
    assert close(x.todense(), np.linalg.inv(one.dense)[:, :3])


def test_mixtures_are_refused():
    one = System()
    with pytest.raises(TypeError, match=r"spsolve: got jax.*BCSR and numpy.ndarray; pass arrays of one library"):
        gs.spsolve(one.A, np.asarray(one.b))
    with pytest.raises(TypeError, match="pass arrays of one library"):
        gs.spsolve(sp.csr_array(one.dense), one.b)


def test_traced_arrays_are_refused():
    one = System()
    lu = gs.splu(one.A)
    for call in (
        lambda: jax.jit(gs.spsolve)(one.A, one.b),
        lambda: jax.grad(lambda b: gs.spsolve(one.A, b).sum())(one.b),
        lambda: jax.jit(gs.splu)(one.A),
        lambda: jax.jit(lu.solve)(one.b),
        lambda: jax.vmap(lu.solve)(one.b[None]),
        lambda: jax.jit(lu.refactor)(one.values),
    ):
        with pytest.raises(TypeError, match=r"got an array that JAX traces; gpusplu\.jax has spsolve"):
            call()


def test_batches_of_matrices_are_refused():
    A = LAYOUTS["bcoo"].fromdense(jnp.ones((2, 3, 3)), n_batch=1)
    with pytest.raises(ValueError, match=r"a batch of sparse matrices needs jax\.vmap"):
        gs.splu(A)


def test_jax_is_not_imported_unless_the_caller_has():
    program = (
        "import sys, numpy as np, scipy.sparse as sp, gpusplu as gs\n"
        "gs.splu(sp.eye_array(3, format='csc')).solve(np.ones(3))\n"
        "assert 'jax' not in sys.modules"
    )
    made = subprocess.run([*PYTHON, "-c", program], env=environment(), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "jax" in sys.modules
