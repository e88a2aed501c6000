"""New values of matrices that cholesky and ldlt read one triangle of: those that are not symmetric are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from support.small_matrices import canonical, spd_matrix
from support.symmetric_values import indefinite, made, nearly, off_diagonal, right_hand_side, spoilt, ways_to_spoil

KINDS = pytest.mark.parametrize("kind", ["cholesky", "ldlt"])
STATUS = gs.BatchStatus


def test_complex_symmetric():
    A = indefinite("D", hermitian=False)
    factor = gs.ldlt(A)
    assert not factor.hermitian
    for how in ways_to_spoil("D", hermitian=False):
        with pytest.raises(gs.NotHermitianError, match="not symmetric"):
            factor.refactor(spoilt(A, how))
    turned = A.data * np.exp(1j)  # is still symmetric
    factor.refactor(turned)
    assert abs(factor.slogdet().sign - np.linalg.slogdet(np.exp(1j) * A.toarray()).sign) < 1e-12


def test_precisions_and_other_holders_of_factors():
    """What rounding in the precision of the values has left does not matter; more than that does."""
    A = spd_matrix()
    factor, single = gs.cholesky(A), canonical(A, "f")
    halves = gs.analyze(A, cholesky=True, schur=[3, 17, 30]).factor(A.data)
    updated, before = gs.cholesky(A), halves.schur.copy()
    updated.update(np.eye(50)[:, :3] + np.eye(50)[:, 10:13])
    for one in (factor, updated):
        one.refactor(nearly(single, 900))
        with pytest.raises(gs.NotHermitianError):
            one.refactor(nearly(single, 1100))
    for how in ("below", "above"):
        for take in (halves.refactor, halves.symbolic.factor, updated.refactor):
            with pytest.raises(gs.NotHermitianError, match="cholesky: A"):
                take(spoilt(A, how))
        np.testing.assert_array_equal(halves.schur, before)
    part = canonical(sp.tril(spd_matrix(dtype="D")))
    values = np.stack([part.data, spoilt(part, "imaginary diagonal"), 2 * part.data])
    assert gs.cholesky_batch(part, values).status.tolist() == [STATUS.RIGHT, STATUS.NOT_HERMITIAN, STATUS.RIGHT]


def test_formats_and_duplicates():
    A = spd_matrix()
    rows, twice = sp.csr_array(A), sp.coo_array(A)
    twice = sp.coo_array((np.r_[twice.data, twice.data], (np.r_[twice.row, twice.row], np.r_[twice.col, twice.col])))
    for given in (rows, twice, sp.csc_array((A.data[::-1], A.indices, A.indptr), shape=A.shape) * 0 + A.tocsc()):
        factor = gs.cholesky(given)
        factor.refactor(2 * given.data)
        bad = given.data.copy()
        bad[1] += 5 * abs(A.data).max()
        with pytest.raises(gs.NotHermitianError):
            factor.refactor(bad)


def test_entries_without_a_counterpart():
    """A pattern that is not symmetric, of values that are: what has no counterpart has to be zero."""
    full = gallery.poisson(4, 4).toarray()
    pattern = full != 0
    pattern[0, 15] = pattern[9, 2] = True
    rows, columns = np.nonzero(pattern)
    A = canonical(sp.coo_array((np.where(full == 0, 1.0, full)[rows, columns], (rows, columns)), shape=full.shape))
    A.data = full[A.indices, np.repeat(np.arange(16), np.diff(A.indptr))]
    assert A.nnz == np.count_nonzero(full) + 2
    factor = gs.cholesky(A)
    factor.refactor(2 * A.data)
    for at in ((0, 15), (9, 2), (1, 0)):
        bad = A.data.copy()
        bad[np.flatnonzero((A.indices == at[0]) & (np.repeat(np.arange(16), np.diff(A.indptr)) == at[1]))] = 0.5
        with pytest.raises(gs.NotHermitianError, match="differ by"):
            factor.refactor(bad)


@pytest.mark.parametrize("triangle", [sp.tril, sp.triu])
@KINDS
def test_one_triangle_can_be_anything(kind, triangle):
    make, A = made(kind, "D")
    part = canonical(triangle(A))
    factor = make(part)
    values = part.data.copy()
    values[off_diagonal(part, triangle is sp.tril)] *= 1j
    factor.refactor(values)
    assert backward_error(whole(part, values), factor.solve(right_hand_side(A)), right_hand_side(A)) < 1e-13
    bad = spoilt(part, "imaginary diagonal")
    with pytest.raises(gs.NotHermitianError, match="not Hermitian"):
        factor.refactor(bad)
    assert backward_error(whole(part, values), factor.solve(right_hand_side(A)), right_hand_side(A)) < 1e-13


def whole(part, values):
    one = sp.csc_array((values, part.indices, part.indptr), shape=part.shape)
    return canonical(one + one.conj().T - sp.diags_array(one.diagonal()))


@KINDS
def test_mixed_precision(kind):
    """By the precision of the values, not that of the factor."""
    make, A = made(kind)
    factor = make(A, precision="mixed")
    assert factor.stats.precision == "mixed"
    factor.refactor(nearly(A, 900))
    before = factor.solve(right_hand_side(A))
    for bad in (nearly(A, 1100), spoilt(A, "above")):
        with pytest.raises(gs.NotHermitianError, match=f"^{kind}: "):
            factor.refactor(bad)
        np.testing.assert_array_equal(factor.solve(right_hand_side(A)), before)
    factor.refactor(1e45 * A.data)  # beyond single precision: by a factor in double precision from now on
    with pytest.raises(gs.NotHermitianError):
        factor.refactor(nearly(A, 1100))
