"""Matrices, values and right-hand sides of batches that are factored in lockstep."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines import registry

from .small_matrices import phased, random_matrix, rhs


def arrow(dtype, n=150):
    """Two rows and two columns are long."""
    A = sp.lil_array((n, n))
    A.setdiag(4.0)
    for k in (3, n - 2):
        A[k, :] = A[:, k] = np.linspace(0.1, 0.3, n)
        A[k, k] = n
    return phased(sp.csc_array(A), dtype)


LU = {
    "arrow": arrow,
    "random": lambda dtype: random_matrix(60, dtype),
    "poisson": lambda dtype: phased(gallery.poisson(9, 8), dtype),
    "cube": lambda dtype: phased(gallery.poisson(6, 5, 5), dtype),
}
CHOLESKY = {
    "poisson": lambda dtype: phased(gallery.poisson(9, 8), dtype, hermitian=True),
    "elasticity": lambda dtype: phased(gallery.elasticity(3, 2, 2), dtype, hermitian=True),
}
CASES = [(False, name, make) for name, make in LU.items()] + [(True, name, make) for name, make in CHOLESKY.items()]
EVERY = pytest.mark.parametrize(
    ("definite", "name", "matrix"), CASES, ids=lambda value: None if callable(value) else str(value)
)
KINDS = pytest.mark.parametrize(
    ("definite", "matrix"), [(False, LU["poisson"]), (True, CHOLESKY["poisson"])], ids=["lu", "cholesky"]
)


def make_batch(A, count, definite=False):
    """The supernodal engine's batch for `count` systems."""
    problem, analysis = gs.analyze(A, cholesky=definite, engine="supernodal").parts()
    return registry.named("supernodal").batch(problem, analysis, count)


def systems(A, count, seed=0):
    """Matrices with the pattern of A, and their values, shape (count, nnz): A scaled from both sides."""
    scales = 1 + 0.3 * np.random.default_rng(seed).random((count, A.shape[0]))
    columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    values = (scales[:, A.indices] * scales[:, columns] * A.data).astype(A.dtype, order="C")
    return [sp.csc_array((data, A.indices, A.indptr), A.shape) for data in values], values


def right_hand_sides(A, count, columns=()):
    return np.array([rhs(A.shape[0], A.dtype, columns, seed) for seed in range(count)])


def transposed(B, trans):
    return (B, B.T, B.conj().T)[trans]
