"""Arrays of torch and JAX in gpusplu's own functions: the same kind out, and errors that say what to do."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.processes import run

pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|CSR tensor|invariant checks)")


class OfTorch:
    """Matrices and vectors of torch."""

    layouts = ("csr", "csc", "coo")

    def __init__(self):
        self.library = pytest.importorskip("torch", reason="torch is not installed")
        from support import tensors
        from support.tensors import close

        self.kind, self.close, self._tensors = self.library.Tensor, close, tensors

    def system(self, layout="csr", dtype="float64"):
        """A matrix and a right-hand side."""
        dtype = getattr(self.library, dtype)
        return self._tensors.sparse(dtype=dtype, layout=layout), self._tensors.numbers(6, dtype=dtype)

    def dense(self, A):
        return A.to_dense()

    def sparse_like(self, A, dense):
        return getattr(dense, self._tensors.LAYOUTS[str(A.layout).rpartition("_")[2]])()

    def values(self, A):
        return A.coalesce().values() if A.layout == self.library.sparse_coo else A.values()


class OfJax:
    """Those of JAX."""

    layouts = ("bcsr", "bcoo")

    def __init__(self):
        from support import jaxes

        self.library, self.kind, self._jaxes = jaxes.jnp, jaxes.jax.Array, jaxes

    def system(self, layout="bcsr", dtype="float64"):
        one = self._jaxes.System(layout, dtype, n=6)
        return one.A, one.b

    def close(self, x, expected, tolerance=1e-12):
        assert self._jaxes.close(x, expected, tolerance)

    def dense(self, A):
        return A.todense()

    def sparse_like(self, A, dense):
        return type(A).fromdense(dense)

    def values(self, A):
        return A.data


FRAMEWORKS = {"torch": OfTorch, "jax": OfJax}
LAYOUTS = [(name, layout) for name, kind in FRAMEWORKS.items() for layout in kind.layouts]


@pytest.fixture(params=FRAMEWORKS)
def arrays(request):
    return FRAMEWORKS[request.param]()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("framework", "layout"), LAYOUTS)
def test_every_function(framework, layout, dtype):
    arrays = FRAMEWORKS[framework]()
    A, b = arrays.system(layout, dtype)
    D, values, stack = arrays.dense(A), arrays.values(A), arrays.library.stack
    x, several = arrays.library.linalg.solve(D, b), stack([b, 2 * b], 1)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    lu, symbolic = gs.splu(A), gs.analyze(A)
    for found in (gs.spsolve(A, b), gs.factorized(A)(b), lu.solve(b), symbolic.factor(values).solve(b)):
        assert isinstance(found, arrays.kind)
        arrays.close(found, x, tolerance)
    arrays.close(gs.spsolve(A, b[:, None]), x, tolerance)  # as SciPy has it
    arrays.close(gs.spsolve(A, several), stack([x, 2 * x], 1), tolerance)
    for trans, operation in (("T", lambda D: D.T), ("H", lambda D: D.conj().T)):
        arrays.close(lu.solve(several, trans), arrays.library.linalg.solve(operation(D), several), tolerance)
    if layout != "coo":
        of_sparse = gs.spsolve(A, arrays.sparse_like(A, several))
        arrays.close(arrays.dense(of_sparse), stack([x, 2 * x], 1), tolerance)
    lu.refactor(2 * values)
    arrays.close(lu.solve(b), x / 2, tolerance)
    lu.refactor(A)
    arrays.close(lu.solve(b), x, tolerance)
    arrays.close(lu.refactor_solve(4 * values, b), x / 4, tolerance)
    both = stack([values, 2 * values])
    for batch in (gs.splu_batch(A, both), symbolic.factor(both)):
        arrays.close(batch.solve(b), stack([x, x / 2]), tolerance)
    S = arrays.sparse_like(A, D @ D.conj().T)
    arrays.close(gs.cholesky(S)(b), arrays.library.linalg.solve(arrays.dense(S), b), 10 * tolerance)
    both = stack([arrays.values(S), 2 * arrays.values(S)])
    for batch in (gs.cholesky_batch(S, both), gs.analyze(S, cholesky=True).factor(both)):
        arrays.close(batch.solve(b), stack([gs.cholesky(S)(b), gs.cholesky(S)(b) / 2]), tolerance)
    assert "engine" in gs.explain(A)


def test_a_right_hand_side_of_numpy_for_a_factor_of_another_library(arrays):
    A, b = arrays.system()
    assert type(gs.splu(A).solve(np.asarray(b))) is np.ndarray


def test_libraries_are_not_mixed(arrays):
    A, b = arrays.system()
    with pytest.raises(TypeError, match=r"spsolve: got .* and numpy.ndarray; pass arrays of one library"):
        gs.spsolve(A, np.asarray(b))
    with pytest.raises(TypeError, match="pass arrays of one library"):
        gs.spsolve(sp.csr_array(np.asarray(arrays.dense(A))), b)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_libraries_are_not_imported(framework):
    FRAMEWORKS[framework]()
    run(
        "import sys, numpy as np, scipy.sparse as sp, gpusplu as gs\n"
        "gs.splu(sp.eye_array(3, format='csc')).solve(np.ones(3))\n"
        f"assert {framework!r} not in sys.modules"
    )


def test_padding_of_jax_is_no_entry():
    arrays = OfJax()
    A, b = arrays.system()
    dense = arrays.dense(A)
    padded = type(A).fromdense(dense, nse=A.nse + 3)
    arrays.close(gs.spsolve(padded, b), arrays.library.linalg.solve(dense, b))


def test_arrays_that_jax_traces_are_refused():
    arrays, jax = OfJax(), pytest.importorskip("jax")
    A, b = arrays.system()
    lu = gs.splu(A)
    for call in (
        lambda: jax.jit(gs.spsolve)(A, b),
        lambda: jax.grad(lambda b: gs.spsolve(A, b).sum())(b),
        lambda: jax.jit(gs.splu)(A),
        lambda: jax.jit(lu.solve)(b),
        lambda: jax.vmap(lu.solve)(b[None]),
        lambda: jax.jit(lu.refactor)(A.data),
    ):
        with pytest.raises(TypeError, match=r"got an array that JAX traces; gpusplu\.jax has spsolve"):
            call()
    with pytest.raises(ValueError, match=r"a batch of sparse matrices needs jax\.vmap"):
        gs.splu(type(A).fromdense(arrays.library.ones((2, 3, 3)), n_batch=1))
