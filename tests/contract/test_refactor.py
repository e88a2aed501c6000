"""New values on the same pattern."""

import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl

import gpusplu as gs
from contract.cases import EVERY, backward_error, canonical, on_host, only, operators, with_values


@EVERY
def test_values_of_either_place(case):
    factor = case.make()
    for k, put in enumerate(case.places):
        for scale in (2 + k, 3 + k):
            values = put(scale * case.A.data)
            factor.refactor(values)
            for trans, op in operators(case.A):
                for where in case.places:
                    b = case.b()
                    assert backward_error(scale * op, factor.solve(where(b), trans), b) < 100 * case.eps
            assert np.array_equal(on_host(values), scale * case.A.data)
    assert factor.stats.n_refactor == 4 and factor.stats.n_repivoted == 0


@EVERY
def test_refactor_solve(case):
    factor, A = case.make(), case.doubled()
    for columns in ((), (3,)):
        for of_values in case.places:
            for of_rhs in case.places:
                for trans, op in operators(A):
                    given = of_rhs(case.b(*columns))
                    x = factor.refactor_solve(of_values(A.data), given, trans)
                    assert type(x) is type(given)
                    assert backward_error(op, x, case.b(*columns)) < 100 * case.eps
    before = factor.stats.n_refactor
    factor.refactor_solve(case.puts(A.data), case.puts(case.b()))
    assert factor.stats.n_refactor == before + 1
    case.accurate(factor, A)


@EVERY
def test_matrices_and_lists(case):
    factor, A = case.make(), case.doubled()
    for given in (A, A.tocsr(), A.tocoo(), sp.csc_matrix(A), A.toarray(), A.data.tolist(), np.repeat(A.data, 2)[::2]):
        if case.dtype in "fF" and isinstance(given, list):
            continue  # numbers of Python have another precision
        factor.refactor(case.A.data)
        factor.refactor(given)
        case.accurate(factor, A)
    if case.dtype in "dD":
        whole = np.rint(16 * case.A.data.real).astype(int)
        factor.refactor(case.A.data)
        try:
            factor.refactor(whole)
        except (RuntimeError, np.linalg.LinAlgError):
            case.accurate(factor)
        else:
            case.accurate(factor, with_values(case.A, whole.astype(case.dtype)))


@EVERY
def test_wrong_values(case):
    factor, n = case.make(), case.A.nnz
    for put in case.places:
        with pytest.raises(ValueError, match=f"values has 3 entries, A.data had {n}"):
            factor.refactor(put(np.ones(3, case.dtype)))
        if case.dtype in "fd":
            with pytest.raises(TypeError, match="Cannot cast array data from dtype"):
                factor.refactor(put(case.A.data.astype("D")))
    with pytest.raises(ValueError, match="not 'never'"):
        factor.refactor(case.A.data, check="never")
    with pytest.raises(TypeError, match="values must be numbers or a matrix"):
        factor.refactor(None)
    moved = case.A.tolil()
    moved[0, case.n - 1] = moved[case.n - 1, 0] = 1
    moved[0, 0] = moved[1, 1] = 0
    with pytest.raises(gs.PatternMismatchError):
        factor.refactor(case.A[:10, :10])
    for given in (sp.eye_array(case.n), moved):
        with pytest.raises(gs.PatternMismatchError, match="pattern"):
            factor.refactor(canonical(given).astype(case.dtype))
    case.accurate(factor)
    assert factor.stats.n_refactor == 0


@EVERY
def test_values_that_the_caller_edits_afterwards(case):
    values = case.A.data.copy()
    given = with_values(case.A, values)
    factor = case.make(given)
    for put in case.places:
        x, mine = on_host(factor.solve(put(case.b()))), put(values.copy())
        factor.refactor(mine)
        mine *= 7
        case.accurate(factor)
        np.testing.assert_allclose(on_host(factor.solve(put(case.b()))), x, rtol=1e4 * case.eps, atol=case.eps)
    given.data *= 7
    case.accurate(factor)


def wild(A, kind, seed=0):
    """Values for which the pivots of A do not suit; of LDL^T Hermitian ones."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=A.nnz) * 10.0 ** rng.integers(-6, 7, A.nnz)
    W = with_values(A, values.astype(A.dtype))
    return canonical(sp.tril(W, -1) + sp.tril(W, -1).conj().T + sp.diags_array(W.diagonal())) if kind == "ldlt" else W


@only("lu", "ldlt")
def test_other_pivots_are_chosen_where_these_do_not_suit(case):
    factor = case.make()
    for put in case.places:
        for seed in range(3):
            W = wild(case.A, case.kind, seed)
            values = W.data if W.nnz == case.A.nnz else wild_on(case.A, W)
            W = with_values(case.A, values)
            factor.refactor(put(values))
            for trans, op in operators(W):
                b = case.b()
                assert backward_error(op, factor.solve(put(b), trans), b) < 100 * case.eps
    assert case.kind == "ldlt" or factor.stats.n_repivoted > 0
    factor.refactor(case.A.data)
    case.accurate(factor)
    assert factor.engine == case.engine.name


def wild_on(A, W):
    """Values of W on the pattern of A, which has more entries."""
    rows, columns = A.indices, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return np.asarray(W.toarray()[rows, columns], A.dtype)


@only("lu", "ldlt")
def test_pivots_chosen_in_the_middle_of_a_step(case):
    factor, W = case.make(), wild(case.A, case.kind)
    values = wild_on(case.A, W)
    for put in case.places:
        x = factor.refactor_solve(put(values), put(case.b()))
        assert backward_error(with_values(case.A, values), x, case.b()) < 100 * case.eps
        factor.refactor(put(case.A.data))


@only("lu")
def test_pivoting(case):
    """Static pivots are kept, partial pivoting is what the table says."""
    static = case.make(pivoting="static")
    static.refactor(case.puts(2 * case.A.data))
    case.accurate(static, case.doubled())
    assert static.stats.n_repivoted == 0
    if case.engine.partial_pivoting:
        case.accurate(case.make(pivoting="partial"))
    else:
        with pytest.raises(gs.EngineUnavailableError, match="pivot"):
            case.make(pivoting="partial")


@EVERY
def test_refinement(case):
    never = case.make(refine="never")
    case.accurate(never, put=case.puts)
    assert never.backward_error is None and never.stats.n_refinement == 0
    always = case.make(refine="always")
    case.accurate(always, put=case.puts)
    assert 0 <= always.backward_error < 10 * case.eps


@only(of=lambda engine, kind: engine.repeatable)
def test_bits_repeat(case):
    """Those of a factor after other values, and those of another factor."""
    b, found = case.puts(case.b(3)), []
    for between in ((), (3, -2)):
        factor = case.make(deterministic=True)
        made = on_host(factor.solve(b)).tobytes()
        for scale in (*between, 1):
            factor.refactor(case.puts(scale * case.A.data if case.kind != "cholesky" else abs(scale) * case.A.data))
        found.append((made, on_host(factor.solve(b)).tobytes()))
    assert found[0] == found[1]


@EVERY
def test_an_analysis_factors_any_values(case):
    symbolic = case.analyze()
    assert (symbolic.n, symbolic.nnz, symbolic.kind, symbolic.engine) == (
        case.n,
        case.A.nnz,
        case.kind,
        case.engine.name,
    )
    assert symbolic.structural_rank == case.n and symbolic.lnz > 0 and symbolic.flops > 0
    for scale in (1, 2):
        case.accurate(symbolic.factor(scale * case.A.data), scale * case.A)
        case.accurate(symbolic.factor(scale * case.A), scale * case.A)
    with pytest.raises(ValueError, match="values has 3 entries"):
        symbolic.factor(np.ones(3, case.dtype))
    with pytest.raises(gs.NonFiniteError):
        symbolic.factor(case.spoilt())


@pytest.mark.parametrize("make", [gs.cholesky, gs.ldlt])
def test_triangles_are_compared_by_several_threads(make):
    """A difference of one pair is found wherever it is."""
    A = gs.gallery.poisson(150, 150)
    column = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    above = np.flatnonzero(A.indices < column)
    with threadpoolctl.threadpool_limits(8):
        factor = make(A, engine="cpu")
        x = factor.solve(np.ones(A.shape[0]))
        for at in above[np.linspace(0, above.size - 1, 17).astype(int)]:
            values = A.data.copy()
            values[at] += 1e-3
            with pytest.raises(gs.NotHermitianError):
                factor.refactor(values)
        np.testing.assert_array_equal(factor.solve(np.ones(A.shape[0])), x)
