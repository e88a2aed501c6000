"""Mixed precision, Schur complements, updates."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from contract.cases import EVERY, backward_error, canonical, on_host, only, operators, with_values
from support.halves import KINDS, dense_schur
from support.small_matrices import conditioned
from support.symmetric_values import spoilt as spoil
from support.symmetric_values import ways_to_spoil

ENOUGH = 2e-15


@EVERY
def test_mixed_precision(case):
    if case.dtype in "fF":
        factor = case.make(precision="mixed")  # nothing is mixed
        assert "precision" not in factor.stats or factor.stats.precision != "mixed"
        return
    factor, double = case.make(precision="mixed"), case.make()
    for scale, put in zip((1, 2, 3), (np.asarray, *case.places), strict=True):
        A = scale * case.A
        if scale > 1:
            factor.refactor(put(A.data))
        for trans, op in operators(A):
            for columns in ((), (3,)):
                x = factor.solve(put(case.b(*columns)), trans)
                assert x.dtype == case.A.dtype and backward_error(op, x, case.b(*columns)) < ENOUGH
    stats = factor.stats
    assert (stats.precision, stats.n_double, stats.n_refactor) == ("mixed", 0, 2) and stats.n_refinement > 0
    assert "single precision" in factor.explain()
    for values, error in ((case.spoilt(), gs.NonFiniteError), (case.unfit(), (RuntimeError, ValueError))):
        with pytest.raises(error):
            factor.refactor(values)
        case.accurate(factor, 3 * case.A)
    double.refactor(3 * case.A.data)
    np.testing.assert_allclose(factor.slogdet(), double.slogdet(), rtol=1e-12)
    assert factor.stats.n_double == 1  # what is read off is no better than the factor


@only("lu", "cholesky", dtypes="dD")
def test_matrices_that_single_precision_is_not_enough_for(case):
    A = conditioned(1e14 if case.kind == "lu" else 1e6, case.dtype, 40)
    if case.kind == "cholesky":
        A = canonical((A @ A.conj().T + (A @ A.conj().T).conj().T) / 2)
    factor = case.make(A, precision="mixed")
    b = A @ np.ones(40, case.dtype)
    assert backward_error(A, factor.solve(case.puts(b)), b) < ENOUGH
    assert (factor.stats.precision, factor.stats.n_double) == ("double", 1)
    assert factor.stats.why_double and factor.stats.why_double in factor.explain()
    factor.refactor(case.puts(3 * A.data))
    assert backward_error(3 * A, factor.solve(case.puts(b)), b) < ENOUGH


@EVERY
def test_schur_complements(case):
    A = KINDS[case.kind](36, case.dtype)
    indices = np.array([5, 2, 30, 11])
    M, n = A.toarray(), A.shape[0]
    symbolic = case.analyze(A, schur=indices)
    for put in case.places:
        factor = symbolic.factor(put(A.data.copy()))
        for scale in (1, 2):
            if scale > 1:
                factor.refactor(put(scale * A.data))
            expected = dense_schur(scale * M.astype("D"), indices)
            found = on_host(factor.schur)
            np.testing.assert_allclose(found, expected, atol=1e4 * case.eps * abs(expected).max())
            b = np.asfortranarray(np.random.default_rng(1).standard_normal((n, 2)).astype(case.dtype))
            y = np.linalg.solve(found, on_host(factor.condense(put(b)))).astype(case.dtype)
            assert backward_error(scale * A, factor.expand(put(np.asfortranarray(y))), b) < 1e4 * case.eps
        inner = np.setdiff1d(np.arange(n), indices)
        case.accurate(factor.interior, canonical(2 * A[inner][:, inner]))
        spoilt = A.data.copy()
        spoilt[5] = np.nan
        with pytest.raises(gs.NonFiniteError):
            factor.refactor(put(spoilt))
        for how in ways_to_spoil(case.dtype) if case.kind != "lu" else ():
            with pytest.raises(gs.NotHermitianError):
                factor.refactor(put(spoil(A, how)))
        np.testing.assert_allclose(on_host(factor.schur), expected, atol=1e4 * case.eps * abs(expected).max())
    again = pickle.loads(pickle.dumps(factor))
    np.testing.assert_allclose(on_host(again.schur), expected, atol=1e4 * case.eps * abs(expected).max())
    if case.kind in case.engine.schur:
        assert factor.eliminated and factor.interior.engine == case.engine.name


@EVERY
def test_wrong_schur_indices(case):
    for indices, error in (
        ([case.n], ValueError),
        ([1, 1], ValueError),
        ([0.5], TypeError),
        (range(case.n), ValueError),
    ):
        with pytest.raises(error, match="schur: ind"):
            case.analyze(schur=indices)
    factor = case.analyze(KINDS[case.kind](36, case.dtype), schur=[3]).factor(KINDS[case.kind](36, case.dtype))
    with pytest.raises(RuntimeError, match="condense a right-hand side first"):
        factor.expand(np.ones(1, case.dtype))


@EVERY
def test_solves_with_changes_of_low_rank(case):
    factor = case.make()
    U, V = (case.b(3, seed=k) / 10 for k in (1, 2))
    updated = factor.updated(U, V)
    M = case.A.toarray() + U @ V.conj().T
    for put in case.places:
        for trans, op in operators(sp.csc_array(M)):
            assert backward_error(op, updated.solve(put(case.b()), trans), case.b()) < 100 * case.eps
    np.testing.assert_allclose(updated.slogdet(), np.linalg.slogdet(M), rtol=1e4 * case.eps)
    with pytest.raises(gs.IllConditionedUpdateError):
        factor.updated(-case.A[:, [0]].toarray(), np.eye(case.n, 1, dtype=case.dtype))  # leaves a column of zeros
    factor.refactor(case.puts(2 * case.A.data))
    with pytest.raises(RuntimeError, match=r"refactored since: call updated\(U, V\) again"):
        updated.solve(case.b())


@only("cholesky")
def test_updates_and_downdates(case):
    factor, M = case.make(), case.A.toarray()
    inside = case.A[:, [7]].toarray() / 4
    inside[:7] = 0
    everywhere = case.b(2)
    for C in (inside, everywhere):
        for change, sign in ((factor.update, 1), (factor.downdate, -1)):
            change(C)
            M = M + sign * C @ C.conj().T
            assert backward_error(sp.csc_array(M), factor.solve(case.puts(case.b())), case.b()) < 1e3 * case.eps
            np.testing.assert_allclose(factor.logdet(), np.linalg.slogdet(M)[1], rtol=1e4 * case.eps)
    with pytest.raises(gs.NotPositiveDefiniteError):
        factor.downdate(100 * everywhere)
    assert backward_error(sp.csc_array(M), factor.solve(case.b()), case.b()) < 1e3 * case.eps
    for put in case.places:
        factor.refactor(put(2 * case.A.data))
        case.accurate(factor, case.doubled())
    assert factor.engine == case.engine.name
    with pytest.raises(gs.NonFiniteError):
        factor.update(np.full(case.n, np.nan, case.dtype))
    with pytest.raises(ValueError, match="C must have shape"):
        factor.update(np.ones(3, case.dtype))


@only("cholesky")
def test_samples(case):
    factor = case.make()
    z = case.b(4)
    x = factor.sample(z)
    assert x.shape == z.shape and x.dtype == z.dtype
    back = (factor.L.conj().T @ x[factor.perm]).astype(z.dtype)
    np.testing.assert_allclose(back, z, atol=1e4 * case.eps)
    root, inverse = factor.sample(np.eye(case.n, dtype=case.dtype)), np.linalg.inv(case.A.toarray())
    np.testing.assert_allclose(root @ root.conj().T, inverse, atol=1e4 * case.eps * abs(inverse).max())


@only("lu")
def test_values_edited_after_they_were_given_to_schur(case):
    A = KINDS["lu"](36, case.dtype)
    values = case.puts(A.data.copy())
    factor = case.analyze(A, schur=[3, 8]).factor(values)
    before = on_host(factor.schur).copy()
    values *= 7
    np.testing.assert_array_equal(on_host(factor.schur), before)
    case.accurate(
        factor.interior,
        canonical(with_values(A, A.data)[np.setdiff1d(range(36), [3, 8])][:, np.setdiff1d(range(36), [3, 8])]),
    )
