"""Multifrontal LU and Cholesky against the matrix they came from: factors, solves, threads, pivots."""

import resource
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.fronts import Fronts, op
from support.small_matrices import canonical

DTYPES = ["f", "d", "F", "D"]
EPS = {"f": 2e-6, "F": 2e-6, "d": 4e-15, "D": 4e-15}


def values(rng, n, dtype):
    v = rng.standard_normal(n)
    return (v + 1j * rng.standard_normal(n) if dtype in "FD" else v).astype(dtype)


def unsymmetric(n, density, dtype="d", seed=0):
    """A random pattern with a full transversal, well conditioned."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csc") + sp.eye_array(n)
    A = canonical(A[rng.permutation(n)], dtype)
    A.data[:] = values(rng, A.nnz, dtype)
    return A


def laplacian(shape, dtype="d", seed=0):
    """Hermitian positive definite on a grid, diagonally dominant."""
    rng = np.random.default_rng(seed)
    L = sp.csc_array((1, 1))
    for k in shape:
        path = sp.diags_array([-np.ones(k - 1)] * 2, offsets=[-1, 1], shape=(k, k))
        L = sp.kron(L, sp.eye_array(k)) + sp.kron(sp.eye_array(L.shape[0]), path)
    L = canonical(L, dtype)
    U = sp.triu(L, 1).tocsc()
    U.data = values(rng, U.nnz, dtype)
    A = U + U.conj().T
    return canonical(A + sp.diags_array(np.asarray(abs(A).sum(axis=1)).ravel() + 0.1), dtype)


def check(A, cholesky=False, tolerance=1.0, **analysis):
    """Factor, compare the factors with A, solve N, T, H with one and several right-hand sides."""
    n, dtype = A.shape[0], A.dtype.char
    fronts = Fronts(A, cholesky, **analysis)
    assert fronts.factor()["status"] == "ok"
    bound = EPS[dtype] * tolerance
    B = fronts.permuted()
    L = fronts.lower()
    assert L.has_canonical_format
    U = L.conj().T if cholesky else fronts.upper()
    scale = abs(L).astype("d") @ abs(U).astype("d")
    assert abs((L @ U - B).toarray()).max() <= bound * max(scale.max(), 1)
    if not cholesky:
        assert np.all(L.diagonal() == 1)
        assert U.has_canonical_format
    np.testing.assert_array_equal(fronts.front.diagonal(), (L if cholesky else U).diagonal())
    rng = np.random.default_rng(1)
    for nrhs in [1, 3, 40]:
        b = values(rng, n * nrhs, dtype).reshape(n, nrhs)
        for trans in "NTH":
            assert backward_error(op(A, trans), fronts.solve(b, trans), b) <= bound
    return fronts


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "density"), [(1, 1), (2, 1), (30, 0.1), (200, 0.02), (150, 1)])
def test_lu(n, density, dtype):
    check(unsymmetric(n, density, dtype, seed=n), tolerance=50)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (20, 20), (6, 6, 6)])
def test_cholesky(shape, dtype):
    check(laplacian(shape, dtype), cholesky=True)


def arrow(n):
    A = sp.lil_array((n, n))
    A[-1, :] = A[:, -1] = 1
    A.setdiag(np.arange(2.0, n + 2))
    A[-1, -1] = n
    return canonical(A)


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize(
    "A",
    [
        canonical(sp.diags_array(np.arange(1.0, 500))),
        arrow(400),
        arrow(400)[::-1][:, ::-1].tocsc(),
        canonical(sp.block_diag([laplacian((4, 3), seed=k) for k in range(60)])),
        canonical(laplacian((40,)).toarray() + 1),
    ],
    ids=["diagonal", "arrow", "arrow, dense row first", "forest", "dense"],
)
def test_shapes(A, cholesky):
    A = canonical(A)
    check(A, cholesky)
    check(A, cholesky, perm=np.arange(A.shape[0]))


def test_deep_tree_without_relaxation():
    A = laplacian((3000,))
    check(A, True, perm=np.arange(3000), relax=False)


@pytest.mark.parametrize("cholesky", [False, True])
@pytest.mark.parametrize("shape", [(110, 110), (17, 17, 17)])
def test_threads_do_not_change_bits(shape, cholesky, threads):
    A = laplacian(shape)
    rng = np.random.default_rng(0)
    b = rng.standard_normal((A.shape[0], 3))
    results = []
    for n in [1, 2, 3]:
        threads(n)
        fronts = Fronts(A, cholesky)
        info = fronts.factor()
        parts = [fronts.lower().data, fronts.solve(b), fronts.solve(b[:, 0], "T")]
        if not cholesky:
            parts.append(fronts.upper().data)
        results.append((info, parts))
    assert backward_error(A, results[0][1][1], b) <= EPS["d"]
    for info, parts in results[1:]:
        assert info == results[0][0]
        for mine, theirs in zip(parts, results[0][1], strict=True):
            np.testing.assert_array_equal(mine, theirs)


def bordered(dtype, blocks=2, size=270, border=330):
    """Hermitian positive definite: a front for each of the dense blocks, and one for the border."""
    rng = np.random.default_rng(0)
    n = blocks * size + border
    kept = np.kron(np.eye(blocks), np.ones((size, size)))
    kept = np.pad(kept, (0, border), constant_values=1)
    A = values(rng, n * n, dtype).reshape(n, n) * kept
    return canonical(A + A.conj().T + 4 * n * np.eye(n), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cholesky", [False, True])
def test_threads_share_large_fronts_of_solves(cholesky, dtype, threads):
    A = bordered(dtype)
    if not cholesky:
        A.data[:] = A.data * np.random.default_rng(1).uniform(0.5, 1.5, A.nnz).astype(dtype.lower())
    fronts = Fronts(A, cholesky, perm=np.arange(A.shape[0]), match=False)
    assert fronts.factor()["status"] == "ok"
    for nrhs in [1, 5]:
        b = values(np.random.default_rng(2), A.shape[0] * nrhs, dtype).reshape(-1, nrhs)
        for trans in "NTH":
            found = []
            for n in [1, 2, 8]:
                threads(n)
                found.append(fronts.solve(b, trans))
            assert backward_error(op(A, trans), found[0], b) <= EPS[dtype]
            assert all(x.tobytes() == found[0].tobytes() for x in found)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_patterns(data):
    n = data.draw(st.integers(1, 14))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    dense = np.diag(rng.uniform(4, 5, n))
    for i, j in pairs:
        if i != j:
            dense[i, j] = rng.uniform(-1, 1)
    symmetric = dense + dense.T + np.diag(np.abs(dense).sum(0) + np.abs(dense).sum(1))
    relax = data.draw(st.booleans())
    check(canonical(dense[rng.permutation(n)]), tolerance=100, relax=relax)
    check(canonical(symmetric), cholesky=True, relax=relax)


def meets_huge_pages():
    """Whether the system has them for those who ask."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@pytest.mark.skipif(not meets_huge_pages(), reason="pages of 2 MiB are turned off")
def test_large_contributions_meet_few_pages():
    """They go back to the system, and a fault for each page of 4 KiB took a fifth of a refactorization."""
    A = gallery.poisson(30, 30, 30)
    factor = gs.cholesky(A, engine="cpu")
    symbolic = factor.symbolic.parts()[1].core
    below = np.diff(symbolic.row_ptr).astype(float)
    contributions = 8 * below**2
    large = contributions[contributions > 4 << 20].sum()
    assert large > 20 << 20
    factor.refactor(A.data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    factor.refactor(A.data)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * 4096 < 0.7 * large  # others meet small ones
