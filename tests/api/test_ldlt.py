"""LDLFactor: triangles, dtypes, inertia, refactor, what is neither Hermitian nor symmetric, and what is singular."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, canonical, random_matrix, rhs


def saddle(dtype="d", hermitian=True, n=40, m=15, seed=0):
    """Zero diagonal block, both signs of eigenvalues, entries of all phases if complex."""
    rng = np.random.default_rng(seed)

    def block(rows, cols):
        B = sp.random_array((rows, cols), density=0.1, rng=rng)
        return B + 1j * sp.random_array((rows, cols), density=0.1, rng=rng) if np.dtype(dtype).kind == "c" else B

    def mirrored(B):
        return B.conj().T if hermitian else B.T

    H, J = block(n, n), block(m, n) + sp.eye_array(m, n)
    H = H + mirrored(H) + sp.diags_array(rng.uniform(-1, 3, n))
    return canonical(sp.block_array([[H, mirrored(J)], [J, None]])).astype(dtype)


def product(factor):
    upper = factor.L.conj().T if factor.hermitian else factor.L.T
    return factor.L @ factor.D @ upper


def counts(A):
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    return int(np.sum(eigenvalues > 0)), int(np.sum(eigenvalues < 0)), 0


@pytest.mark.parametrize("triangle", [sp.csc_array, sp.tril, sp.triu])
@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), *[(c, h) for c in "FD" for h in (0, 1)]])
def test_ldlt(dtype, hermitian, triangle):
    A = saddle(dtype, hermitian)
    full = triangle is sp.csc_array
    factor = gs.ldlt(triangle(A), hermitian=None if full else bool(hermitian))
    assert factor.hermitian == bool(hermitian)
    for columns in ((), (1,), (7,)):
        b = rhs(55, dtype, columns)
        x = factor.solve(b)
        assert (x.dtype, x.shape) == (b.dtype, b.shape)
        assert backward_error(A, x, b) < 50 * EPS[dtype]
        np.testing.assert_array_equal(factor(b), x)
    for trans, op in (("T", A.T), ("H", A.conj().T)):
        assert backward_error(op, factor.solve(b, trans), b) < 50 * EPS[dtype]
    assert sp.triu(factor.L, 1).nnz == 0 and np.all(factor.L.diagonal() == 1)
    assert factor.D.nnz == np.count_nonzero(factor.D.diagonal()) + 2 * sp.tril(factor.D, -1).nnz
    assert abs(product(factor) - A[factor.perm][:, factor.perm]).max() < 1000 * EPS[dtype] * abs(A).max()
    expected = np.linalg.slogdet(A.toarray())
    assert abs(factor.slogdet().logabsdet - expected.logabsdet) < 1e4 * EPS[dtype]
    assert abs(factor.slogdet().sign - expected.sign) < 1e4 * EPS[dtype]
    exact = 1 / np.linalg.cond(A.toarray(), 1)
    assert exact * 0.98 <= factor.rcond() <= exact * 10
    assert factor.stats.method == "front" and factor.L is factor.L and factor.D is factor.D
    if hermitian:
        assert factor.inertia() == counts(A) and factor.inertia_doubt == ""
    else:
        with pytest.raises(TypeError, match="complex symmetric"):
            factor.inertia()


NAMES = ["kkt:200x80x1", "kkt:200x80x4", "kkt:200x150x8", "stokes:9x8", "stokes:4x3x5", "mixed:12x11", "mixed:30x30"]


@pytest.mark.parametrize("name", [*NAMES, "helmholtz:25", "helmholtz:20x30", "helmholtz:9x8x7", "power:12x9"])
def test_gallery(name):
    A = gallery.named(name)
    factor = gs.ldlt(A)
    b = rhs(A.shape[0])
    assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
    scale = 1 / np.sqrt(abs(A).max(axis=0).toarray().ravel())
    assert factor.inertia() == counts(canonical(sp.diags_array(scale) @ A @ sp.diags_array(scale)))


@pytest.mark.parametrize("dtype", "dD")
@pytest.mark.parametrize("triangle", [sp.csc_array, sp.tril, lambda A: sp.triu(A).tocoo()])
def test_refactor(dtype, triangle):
    A, b = saddle(dtype), rhs(55, dtype)
    part = triangle(A)
    factor = gs.ldlt(part)
    new = A.copy()
    new.data -= 0.7 * (A.indices == np.repeat(np.arange(55), np.diff(A.indptr)))
    shifted = triangle(new)
    assert shifted.nnz == part.nnz and counts(new) != counts(A)
    for values in (shifted.data, shifted, sp.tril(new), new):
        factor.refactor(part.data)
        assert factor.inertia() == counts(A)
        factor.refactor(values)
        assert backward_error(new, factor.solve(b), b) < 50 * EPS["d"]
        assert factor.inertia() == counts(new)
        assert abs(product(factor) - new[factor.perm][:, factor.perm]).max() < 1000 * EPS["d"] * abs(new).max()


def test_inertia_follows_the_values():
    """A spectrum that is shifted through its eigenvalues, by refactorizations."""
    A = gallery.poisson(8, 7)
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    factor = gs.ldlt(A)
    values = A.data.copy()
    diagonal = A.indices == np.repeat(np.arange(56), np.diff(A.indptr))
    for below in (0, 1, 5, 20, 55):
        shift = (eigenvalues[below - 1] + eigenvalues[below]) / 2 if below else 0.0
        factor.refactor(values - shift * diagonal)
        assert factor.inertia() == (56 - below, below, 0)


def test_nearly_singular_matrices_have_no_inertia():
    A = gallery.poisson(8, 7)
    smallest = np.linalg.eigvalsh(A.toarray())[0]
    factor = gs.ldlt(canonical(A - smallest * (1 + 1e-15) * sp.eye_array(56)))
    assert factor.inertia() is None
    assert "too close to a singular matrix" in factor.inertia_doubt
    factor.refactor(A.data)
    assert factor.inertia() == (56, 0, 0) and factor.inertia_doubt == ""


def test_symbolic_and_pickles():
    A, b = saddle("D", False), rhs(55, "D")
    sym = pickle.loads(pickle.dumps(gs.analyze(A, ldlt=True)))
    assert (sym.kind, sym.cholesky) == ("ldlt", False)
    factor = sym.factor(A.data * 2)
    assert isinstance(factor, gs.LDLFactor) and not factor.hermitian
    again = pickle.loads(pickle.dumps(factor))
    assert isinstance(again, gs.LDLFactor)
    for one in (factor, again):
        assert backward_error(2 * A, one.solve(b), b) < 50 * EPS["d"]
    assert "fronts" in factor.explain() and "LDL^T" in repr(sym)
    with pytest.raises(ValueError, match="no batches of ldlt"):
        sym.factor(np.ones((2, A.data.size)))
    with pytest.raises(ValueError, match="not for both"):
        gs.analyze(A, ldlt=True, cholesky=True)


def test_which_symmetry_a_complex_matrix_has():
    symmetric = saddle("D", False)
    assert not gs.ldlt(symmetric).hermitian
    with pytest.raises(gs.NotHermitianError, match="not Hermitian"):
        gs.ldlt(symmetric, hermitian=True)
    with pytest.raises(gs.NotHermitianError, match="the conjugate of"):
        gs.ldlt(sp.tril(symmetric + 1j * sp.eye_array(55)))  # one triangle means Hermitian, and its diagonal is real
    assert gs.ldlt(saddle("D")).hermitian and gs.ldlt(saddle("d").astype("D")).hermitian
    diagonal = gs.ldlt(sp.diags_array(1j * np.arange(1.0, 5), format="csc"))
    assert not diagonal.hermitian
    np.testing.assert_allclose(diagonal.solve(np.ones(4, "D")), -1j / np.arange(1.0, 5))


@pytest.mark.parametrize("dtype", "dD")
def test_neither_hermitian_nor_symmetric(dtype):
    with pytest.raises(gs.NotHermitianError, match=r"ldlt: .* so A is not"):
        gs.ldlt(random_matrix(dtype=dtype))


@pytest.mark.parametrize("how", ["NaN", "other pattern", "not Hermitian", "singular"])
def test_refactor_leaves_the_old_factor(how):
    A, b = saddle(), rhs(55)
    factor = gs.ldlt(A)
    before = factor.solve(b)
    bad, kind = A.copy(), gs.NonFiniteError
    if how == "NaN":
        bad.data[5] = np.nan
    elif how == "other pattern":
        bad, kind = sp.eye_array(55, format="csc"), gs.PatternMismatchError
    elif how == "singular":
        bad.data[:], kind = 0, RuntimeError
    else:
        bad.data[1], kind = bad.data[1] + 1, gs.NotHermitianError
    with pytest.raises(kind):
        factor.refactor(bad)
    np.testing.assert_array_equal(factor.solve(b), before)
    assert factor.inertia() == counts(A)


SINGULAR = {
    "zero": sp.csc_array((5, 5)),
    "stored zeros": sp.csc_array((np.zeros(3), [0, 1, 2], [0, 1, 2, 3])),
    "structurally": canonical(sp.block_array([[sp.eye_array(2), np.ones((2, 5))], [np.ones((5, 2)), None]])),
    "by one": canonical(gallery.poisson(9) @ sp.diags_array(np.r_[1.0, np.zeros(8)]) @ gallery.poisson(9)),
    "a free body": canonical(
        sp.diags_array([-np.ones(7), np.r_[1, 2 * np.ones(6), 1], -np.ones(7)], offsets=[-1, 0, 1])
    ),
    "twice the same constraint": canonical(
        np.block([[np.eye(3), np.ones((3, 2))], [np.ones((2, 3)), np.zeros((2, 2))]])
    ),
}


@pytest.mark.parametrize("how", SINGULAR)
def test_singular(how):
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.ldlt(SINGULAR[how])


def test_small_orders():
    empty = gs.ldlt(sp.csc_array((0, 0)))
    assert empty.inertia() == (0, 0, 0) and empty.L.shape == empty.D.shape == (0, 0)
    assert empty.solve_D(np.ones(0)).shape == (0,) and empty.solve_D(np.ones((0, 2))).shape == (0, 2)
    assert gs.ldlt(sp.csc_array([[-2.0]])).inertia() == (0, 1, 0)
    swap = gs.ldlt(sp.csc_array([[0.0, 3.0], [3.0, 0.0]]))
    assert swap.inertia() == (1, 1, 0) and swap.slogdet() == (-1, pytest.approx(np.log(9)))
    np.testing.assert_array_equal(swap.solve(np.array([3.0, 6.0])), [2, 1])


def test_patterns_are_remembered_by_kind_and_symmetry():
    gs.cache_clear()
    A = saddle("D")
    gs.ldlt(A), gs.splu(A)
    again = gs.ldlt(canonical(1.5 * A))
    assert "reused" in again.stats["analysis"] and again.inertia() == counts(A)
    both = canonical(A + A.T)  # the same pattern, symmetric and real
    assert gs.ldlt(both).hermitian
    other = A.copy()
    other.data = A.data.real + 0.5j * abs(A.data.real)
    assert not gs.ldlt(canonical(other)).hermitian


def test_delayed_columns_are_found_once():
    gs.cache_clear()
    A = gallery.mixed_elements(60, 60)
    options = {"ordering": "nd"}
    assert [gs.ldlt(A, **options).stats.n_delayed > 0 for _ in range(3)] == [True, False, False]
    symbolic = gs.analyze(A, ldlt=True, **options)
    factors = [symbolic.factor(A.data) for _ in range(3)]
    assert [factor.stats.n_delayed > 0 for factor in factors] == [True, False, False]
    assert {factor.inertia() for factor in factors} == {(2 * 60 * 61, 3600, 0)}
    b = rhs(A.shape[0])
    assert max(backward_error(A, factor.solve(b), b) for factor in factors) < 10 * EPS["d"]


def test_threads_share_a_factor():
    A, b = saddle(n=300, m=120), rhs(420)
    factor = gs.ldlt(A)
    errors = []

    def work(k):
        for _ in range(5):
            if k == 0:
                factor.refactor(A.data)
            errors.append(backward_error(A, factor.solve(b), b))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 20 and max(errors) < 50 * EPS["d"]


def dense(dtype, hermitian):
    """One front of several blocks of columns, whose pivots are of order 2 where its diagonal is zero."""
    A = np.random.default_rng(0).normal(size=(150, 150)).astype(dtype)
    A = A * np.exp(1j * np.arange(150)) if np.dtype(dtype).kind == "c" else A
    A = np.tril(A, -1)
    return sp.csc_array((A + (A.conj() if hermitian else A).T).astype(dtype))


@pytest.mark.parametrize("matrix", [lambda *kind: saddle(*kind, n=160, m=60), dense])
@pytest.mark.parametrize(("dtype", "hermitian"), [("f", True), ("d", True), ("F", False), ("D", True), ("D", False)])
def test_entries_of_the_inverse(matrix, dtype, hermitian):
    A = matrix(dtype, hermitian)
    factor = gs.ldlt(A)
    inverse = np.linalg.inv(A.toarray().astype("D" if np.dtype(dtype).kind == "c" else "d"))
    limit = 3e4 * EPS[dtype] * abs(inverse).max()
    for pattern in ("A", "A.T", "LU"):
        Z = factor.selected_inverse(pattern).tocoo()
        rows, cols = Z.coords
        assert Z.nnz >= A.nnz and abs(Z.data - inverse[rows, cols]).max() < limit
        if dtype in "dD":  # of single precision other pivots may be more accurate
            assert {*zip(rows, cols, strict=True)} == {*zip(cols, rows, strict=True)}
    assert abs(factor.inverse_diagonal() - inverse.diagonal()).max() < limit
    B = sp.random_array(A.shape, density=0.01, rng=np.random.default_rng(1))
    assert abs(factor.trace_inverse(B) - np.trace(inverse @ B)) < limit * abs(B).sum()
    assert factor.stats.method == "front" and factor.stats.n_repivoted == 0
