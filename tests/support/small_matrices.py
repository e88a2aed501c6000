"""Small random matrices and right-hand sides."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu import gallery


def dtypes(chars="fdFD"):
    """Parameters of a test: number types, of which only double precision is tested by default."""
    return [pytest.param(char, marks=[] if char == "d" else pytest.mark.thorough) for char in chars]


EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}


def random_matrix(n=60, dtype="d", seed=0, density=0.05):
    """Unsymmetric, with a dominant diagonal that row exchanges have hidden."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csc").astype(dtype)
    if A.dtype.kind == "c":
        A.data = A.data + 1j * rng.random(A.nnz).astype(A.real.dtype)
    A = A + sp.eye_array(n, dtype=A.dtype) * A.dtype.type(n * density + 1)
    return canonical(A[rng.permutation(n)])


def spd_matrix(n=50, dtype="d", seed=0):
    B = random_matrix(n, dtype, seed)
    A = sp.csc_array(B @ B.conj().T + sp.eye_array(n, dtype=B.dtype))
    return canonical((A + A.conj().T) / 2).astype(dtype)


def small_pairs(n=20, small=2.0**-46):
    """A grid, and pairs of columns that nearly cancel, each beside rows that would be better, too small for a norm."""
    rng = np.random.default_rng(0)
    pairs = sp.block_diag([sp.coo_array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])] * n)
    coupling = sp.lil_array((2 * n, n))
    coupling[range(0, 2 * n, 2), range(n)] = 0.1
    coupling[range(1, 2 * n, 2), (np.arange(n) + 1) % n] = 0.2
    tail = rng.uniform(-1, 1, (n, n)) + n * np.eye(n)
    block = sp.block_array([[pairs, coupling], [coupling.T, tail]])
    return canonical(sp.block_diag([gallery.poisson(6, 6), small * block]))


def canonical(A, dtype=None):
    """CSC with sorted indices: SciPy's operations leave them in any order, and some sort them in place later."""
    A = sp.csc_array(A, dtype=dtype)
    A.sum_duplicates()
    return A


def phased(A, dtype, hermitian=False):
    """`A` with entries of all phases if `dtype` is complex; `hermitian`: what is Hermitian stays so."""
    if np.dtype(dtype).kind == "c":
        turn = sp.diags_array(np.exp(1j * np.arange(A.shape[0])))
        A = turn @ A @ (turn.conj() if hermitian else turn)
    return canonical(A).astype(dtype)


def unlike(dtype, what, spread, seed, n=20):
    """Rows, or entries, of very different size: 10 to any power up to `spread`, and to minus it."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.3)
    np.fill_diagonal(dense, rng.uniform(1, 2, n))
    sizes = 10.0 ** rng.uniform(-spread, spread, (n, n) if what == "entries" else (n, 1))
    return canonical(sp.csc_array((sizes * dense).astype(dtype)))


def with_singular_values(values, dtype="d"):
    """A dense matrix with these singular values."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rhs(len(values), dtype, (len(values),), rng))[0] for _ in range(2))
    return canonical(sp.csc_array((left * values) @ right))


def conditioned(size, dtype="d", n=60):
    """A dense matrix with that condition number, whose singular values are spread evenly."""
    return with_singular_values(np.geomspace(1, 1 / size, n), dtype)


def rhs(n, dtype="d", columns=(), seed=5):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((n, *columns))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    return b.astype(dtype)


def whole(B):
    """A dense matrix with all its entries stored, zeros too."""
    n = B.shape[0]
    return sp.csc_array((B.ravel(order="F"), np.tile(np.arange(n), n), n * np.arange(n + 1)), shape=(n, n))
