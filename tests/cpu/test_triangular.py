"""Matrices that are triangular, in whatever order: solutions are SciPy's where those are exact.

Rounding errors of an unknown grow in those that follow until they are all that is left: by 1e40 and more. Where x has
a single entry, a number of few digits, division by the pivots finds it as it is, and products cancel to zero.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import _core

OF_SCIPY = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}


def numbers(rng, size, char, share=0.2):
    """Of any size that leaves room for products of some of them: up to this share of the exponents."""
    exponents = rng.uniform(-share, share, size) * np.log10(float(np.finfo(char).max))
    values = rng.standard_normal(size) * 10.0**exponents
    return (values * np.exp(1j * rng.uniform(0, 6, size)) if char in "FD" else values).astype(char)


def triangle(rng, shape, char):
    n = int(rng.integers(2, 50))
    if shape == "full":  # where rows share many unknowns, scales of rows and columns would leave the range
        inside = np.triu(numbers(rng, n * n, char, 0.02).reshape(n, n) * (rng.random((n, n)) < 0.3), 1)
        return sp.csc_array(inside + np.diag(numbers(rng, n, char, 0.02)))
    A = sp.csc_array(sp.diags_array([numbers(rng, n, char), numbers(rng, n - 1, char)], offsets=[0, 1]))
    if shape == "lower":
        return sp.csc_array(A.T)
    return sp.csc_array(A[rng.permutation(n)][:, rng.permutation(n)]) if shape == "permuted" else A


def by_scipy(A):
    """Its factor, or None where numbers that underflow make it call A singular."""
    try:
        return spla.splu(A)
    except RuntimeError:
        return None


def unit_systems(shape, char, count, seed=5):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        A = triangle(rng, shape, char)
        x = np.zeros(A.shape[0], char)
        x[rng.integers(x.size)] = 1
        yield A, x


@pytest.mark.parametrize("shape", ["upper", "lower", "permuted", "full"])
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of SciPy
def test_what_scipy_solves_exactly(shape, char):
    exact = 0
    for A, x in unit_systems(shape, char, 60):
        lu, scipys = gs.splu(A, engine="cpu"), by_scipy(A)
        if scipys is None:
            continue
        for trans, op in OF_SCIPY.items():
            b = sp.csc_array(op(A)) @ x
            if np.array_equal(scipys.solve(b, trans), x):
                exact += 1
                np.testing.assert_array_equal(lu.solve(b, trans), x)
                np.testing.assert_array_equal(lu.solve(np.stack([b] * 5, axis=1), trans)[:, 3], x)
        b = A @ x
        if np.array_equal(spla.spsolve(A, b), x):
            np.testing.assert_array_equal(gs.spsolve(A, b), x)
            np.testing.assert_array_equal(gs.factorized(A)(b), x)
    assert exact >= 20


@pytest.mark.parametrize("shape", ["upper", "lower", "permuted"])
@pytest.mark.parametrize("char", "fdFD")
def test_new_values_of_any_size(shape, char):
    for A, x in unit_systems(shape, char, 20):
        lu, other = gs.splu(A, engine="cpu"), sp.csc_array(A)
        other.data = numbers(np.random.default_rng(A.nnz), A.nnz, char)
        lu.refactor(other.data)
        np.testing.assert_array_equal(lu.solve(other @ x), gs.splu(other, engine="cpu").solve(other @ x))


@pytest.mark.parametrize("shape", ["upper", "lower", "permuted"])
@pytest.mark.parametrize("char", "fdFD")
def test_batches_are_as_accurate_as_factors_of_their_own(shape, char):
    for A, x in unit_systems(shape, char, 10):
        values = np.stack([A.data, A.data / 2])
        batch, alone = gs.splu_batch(A, values, engine="cpu"), gs.splu(A, engine="cpu")
        for trans, op in OF_SCIPY.items():
            b = sp.csc_array(op(A)) @ x
            np.testing.assert_array_equal(batch.solve(np.stack([b, b / 2]), trans)[0], alone.solve(b, trans))


@pytest.mark.parametrize("char", "FD")
def test_complex_quotients_are_exact_where_they_can_be(char):
    """The diagonal divides; parts of pivots and of x differ by up to the range."""
    rng, info = np.random.default_rng(1), np.finfo(char)
    far = np.log10(float(info.max)) * 0.45
    pivots = (10.0 ** rng.uniform(-far, far, 500) + 1j * 10.0 ** rng.uniform(-far, far, 500)).astype(char)
    A = sp.csc_array(sp.diags_array([pivots, np.full(499, 0.0, char)], offsets=[0, 1]))
    for x in (1, -2, 0.5j):
        x = np.full(500, x, char)
        np.testing.assert_array_equal(gs.splu(A, engine="cpu").solve(pivots * x), x)


def test_is_triangular():
    rng = np.random.default_rng(2)

    def is_triangular(A):
        A = sp.csc_array(A)
        return _core.is_triangular(_core.canonical("csc", A.shape[0], A.indptr, A.indices))

    for n in (1, 2, 30):
        T = sp.triu(sp.random_array((n, n), density=0.3, rng=rng) + sp.eye_array(n)).tocsc()
        assert is_triangular(T) and is_triangular(T.T)
        P = sp.csc_array(T[rng.permutation(n)][:, rng.permutation(n)])
        assert is_triangular(P)
    assert is_triangular(sp.csc_array((0, 0)))
    assert not is_triangular(sp.csc_array([[1.0, 1], [1, 1]]))
    assert not is_triangular(sp.csc_array([[1.0, 1], [0, 0]]))
    assert not is_triangular(sp.block_diag([np.ones((1, 1)), np.ones((2, 2))]))
