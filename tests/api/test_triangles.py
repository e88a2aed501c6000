"""Solves with one factor, permutations, and Gaussian vectors."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from support.small_matrices import EPS, canonical, unlike


@pytest.mark.parametrize("refactored", [False, True])
@pytest.mark.parametrize("dtype", "fd")
def test_triangles_of_values_that_older_scales_do_not_fit(dtype, refactored):
    """Solves are refined; L, U and what is made of them cannot be."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dense = rng.standard_normal((20, 20)) * (rng.random((20, 20)) < 0.15) * 10.0 ** rng.uniform(-6, 0, (20, 20))
        np.fill_diagonal(dense, rng.uniform(1, 2, 20))
        A = canonical(sp.csc_array(dense.astype(dtype)))
        others = A.data * 10.0 ** rng.uniform(-12, 12, 20).astype(dtype)[A.indices]
        lu = gs.analyze(sp.csc_array((others, A.indices, A.indptr), shape=A.shape)).factor(
            others if refactored else A.data
        )
        if refactored:
            lu.refactor(A.data)
        assert abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e5 * EPS[dtype] * abs(A).max(), seed
        assert 0.3 < lu.rcond() * np.linalg.cond(A.toarray().astype("d"), 1) < 3, seed


def product_error(lu, A):
    return abs((lu.L.astype("d") @ lu.U.astype("d"))[lu.perm_r][:, lu.perm_c] - A).max() / abs(A).max()


@pytest.mark.parametrize(
    ("dtype", "what", "spread"), [("f", "entries", 8), ("f", "rows", 30), ("d", "entries", 20), ("d", "rows", 250)]
)
def test_triangles_where_sizes_are_very_different(dtype, what, spread):
    """What is accurate beside a scaled matrix need not be beside the matrix; solves and determinants are of that."""
    for seed in range(20):
        A = unlike(dtype, what, spread, seed)
        lu = gs.splu(A)
        determinant = lu.slogdet()
        order = lu.perm_r.copy(), lu.perm_c.copy()
        assert product_error(lu, A) < EPS[dtype] ** (2 / 3), seed
        assert all(map(np.array_equal, order, (lu.perm_r, lu.perm_c)))
        assert lu.slogdet() == determinant and lu.stats.n_repivoted == 0
        others = A.data * np.random.default_rng(seed).uniform(1, 2, A.nnz).astype(dtype)
        lu.refactor(others)
        assert product_error(lu, sp.csc_array((others, A.indices, A.indptr))) < EPS[dtype] ** (2 / 3), seed


def test_triangles_that_are_not_accurate_are_warned_of():
    lu = gs.splu(unlike("d", "rows", 250, 0), pivoting="static")
    with pytest.warns(RuntimeWarning, match="L and U"):
        _ = lu.U


def indefinite_unlike(dtype, hermitian, spread, seed, n=40):
    """Entries of very different size, of a matrix with zeros on its diagonal."""
    rng = np.random.default_rng(seed)
    half = sp.random_array((n, n), density=0.15, rng=rng).tocsc().astype("D")
    half.data = rng.standard_normal(half.nnz) * 10.0 ** rng.uniform(-spread, spread, half.nnz) + 0j
    if dtype in "FD":
        half.data *= np.exp(1j * rng.uniform(0, 6, half.nnz))
    A = half + (half.conj().T if hermitian else half.T) + sp.diags_array(rng.normal(size=n) * (rng.random(n) < 0.6))
    return canonical(sp.csc_array(A if dtype in "FD" else A.real).astype(dtype))


@pytest.mark.parametrize(("dtype", "spread"), [("f", 8), ("d", 20), ("F", 8), ("D", 20)])
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldlt_where_sizes_are_very_different(dtype, hermitian, spread):
    """L D L^H is A to half of the digits, or warned of."""
    inaccurate = 0
    for seed in range(30):
        A = indefinite_unlike(dtype, hermitian, spread, seed)
        factor = gs.ldlt(A, hermitian=hermitian)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            L, D = factor.L.astype("D"), factor.D.astype("D")
        error = L @ D @ (L.conj().T if hermitian else L.T) - A.astype("D")[factor.perm][:, factor.perm]
        if not abs(error).max() < EPS[dtype] ** 0.5 * abs(A).max():
            inaccurate += 1
            assert any("L and D" in str(one.message) for one in said), seed
    assert inaccurate
