"""Small systems as JAX has them, in double precision; skips where JAX is not installed."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("jax.numpy", reason="needs JAX: pip install gpusplu[jax]")

import jax
import jax.numpy as jnp
from jax.experimental.sparse import BCOO, BCSR

import gpusplu as gs
import gpusplu.jax as gj  # noqa: F401 (the tests have it from here, behind the skip)
from gpusplu.jax import structure  # noqa: F401
from gpusplu.jax.store import STORE  # noqa: F401

jax.config.update("jax_enable_x64", True)

LAYOUTS = {"bcsr": BCSR, "bcoo": BCOO}


class System:
    """An unsymmetric matrix A, as a dense and as a sparse one, and right-hand sides.

    Attributes
    ----------
    A : BCSR or BCOO
    dense : ndarray
    rows, columns : ndarray
        Of A's values.
    b : ndarray, shape (n,) or (n, k)
    """

    def __init__(self, layout="bcsr", dtype="d", nrhs=None, n=12, seed=0):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        A = sp.random_array((n, n), density=0.2, rng=self.rng) + sp.eye_array(n)
        A = sp.csr_array(A).astype(self.dtype)
        A.sort_indices()
        A.data[:] = self.draw(A.nnz)
        A.setdiag(A.diagonal() + 5)
        self.dense = A.toarray()
        self.A = LAYOUTS[layout].from_scipy_sparse(A)
        self.rows, self.columns = A.tocoo().coords
        self.b = jnp.asarray(self.draw(n) if nrhs is None else self.draw(n, nrhs))
        self.values = self.A.data

    def draw(self, *shape):
        values = self.rng.standard_normal(shape)
        return (values + 1j * self.rng.standard_normal(shape) if self.dtype.kind == "c" else values).astype(self.dtype)

    def matrix(self, values):
        """Other values on A's pattern."""
        A = self.A
        index = (A.indices, A.indptr) if isinstance(A, BCSR) else (A.indices,)
        return type(A)((values, *index), shape=A.shape)

    def full(self, values):
        """The same as a dense array, which JAX can differentiate."""
        return jnp.zeros(self.A.shape, values.dtype).at[self.rows, self.columns].add(values)

    def several(self, count, scale=0.1):
        """Values of `count` systems."""
        return jnp.stack([self.values * (1 + scale * self.draw(self.values.size)) for _ in range(count)])


def close(x, expected, tolerance=1e-12):
    """Whether arrays are of one dtype and shape and differ by rounding only."""
    x, expected = np.asarray(x), np.asarray(expected)
    assert x.dtype == expected.dtype
    assert x.shape == expected.shape
    return bool((abs(x - expected) <= tolerance * abs(expected).max()).all())


def made(call):
    """The result of a call, and how many matrices were factored in it."""
    before = gs.factorization_count()
    result = jax.block_until_ready(call())
    return result, gs.factorization_count() - before
