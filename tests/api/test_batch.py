"""Batches side by side, in pieces where memory is short, and one by one for engines without batches."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.engines import registry
from support.dense_batch import DenseBatches, OneByOne, systems_like
from support.small_matrices import EPS, canonical, random_matrix, rhs


class InPieces(DenseBatches):
    """Dense batches of 4 systems at most."""

    name, most = "in_pieces", 4


@pytest.fixture(params=["cpu", "one_by_one", "in_pieces"])
def engine(request):
    with registry.registered(OneByOne()), registry.registered(InPieces()):
        yield request.param


def found_singular_late():
    """A matrix in single precision, and values that a solve with the transpose finds to be singular: the factorization
    does not, whose matching is that of the matrix."""
    given = [4e3, -4e3, -0.9, -2e-8, -4e3, 4e3, 2, 0.1, 1, 1, -2e-8, 0.3, 0.1, 1]
    values = [2.181e-3, -7.587e11, -1.262e6, -6.074e-2, -2.181e-3, 7.587e11, 3.464e8, 1.571e5, 4.43e6]
    values += [9.609e-4, -9.344e-15, 4.252e5, 3.798e5, 1.354e6]
    indices, indptr = [0, 1, 2, 3, 0, 1, 1, 2, 3, 4, 0, 2, 3, 2], [0, 4, 6, 10, 13, 14]
    return sp.csc_array((np.array(given, "f"), indices, indptr), shape=(5, 5)), np.array(values, "f")


def matrix_of(A, values):
    return sp.csc_array((values, A.indices, A.indptr), shape=A.shape)


def test_systems_of_each_status(engine):
    """The others have the bits that they have alone; a batch of any size and order gives the same."""
    A, values, status = failing_systems()
    good, b = status == 0, np.array([rhs(40, seed=k) for k in range(12)])
    batch = gs.splu_batch(A, values, engine=engine)
    x = batch.solve(b)
    np.testing.assert_array_equal(np.where(batch.status >= gs.BatchStatus.SINGULAR, batch.status, 0), status)
    np.testing.assert_array_equal(np.isnan(x).all(axis=1), ~good)
    np.testing.assert_array_equal(np.isnan(batch.backward_error), ~good)
    for chosen in (np.flatnonzero(good), np.flatnonzero(good)[::-1], np.arange(3)):
        np.testing.assert_array_equal(gs.splu_batch(A, values[chosen], engine=engine).solve(b[chosen]), x[chosen])
    sign, logabsdet = batch.slogdet()
    assert (logabsdet[[3, 7]] == -np.inf).all() and (sign[[3, 7]] == 0).all() and np.isnan(sign[[5, 11]]).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(batch)).solve(b), x)
    for k in np.flatnonzero(good):
        assert backward_error(matrix_of(A, values[k]), x[k], b[k]) < 100 * EPS["d"]
    with pytest.raises(gs.BatchError, match=r"4 systems .* singular: 3, 7; not finite: 5, 11") as caught:
        gs.splu_batch(A, values, engine=engine, errors="raise")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    np.testing.assert_allclose(batch.solve(b + 2j * b)[good], (1 + 2j) * x[good], rtol=1e-10)


def test_no_columns_are_solved_for_by_factors_all_the_same(engine):
    """What became of the systems is of the values held, and no error was measured."""
    A, values, status = failing_systems()
    batch = gs.splu_batch(A, systems_like(A, 12), engine=engine)
    batch.solve(rhs(40))
    x = batch.refactor_solve(values, np.ones((12, 40, 0)))
    assert x.shape == (12, 40, 0) and np.isnan(batch.backward_error).all()
    np.testing.assert_array_equal(np.where(batch.status >= gs.BatchStatus.SINGULAR, batch.status, 0), status)
    np.testing.assert_array_equal(np.isneginf(batch.slogdet().logabsdet), status == gs.BatchStatus.SINGULAR)
    with pytest.raises(gs.BatchError):
        gs.splu_batch(A, systems_like(A, 12), engine=engine, errors="raise").refactor_solve(
            values, np.ones((12, 40, 0))
        )


def failing_systems():
    """Systems of which some are singular or not finite: values, and which are what."""
    A = random_matrix(40)
    values = systems_like(A, 12)
    values[3] = 0
    values[7, A.indptr[5] : A.indptr[6]] = 0  # a column
    values[5, 8] = np.nan
    values[11, 0] = np.inf
    status = np.zeros(12)
    status[[3, 7]], status[[5, 11]] = gs.BatchStatus.SINGULAR, gs.BatchStatus.NOT_FINITE
    return A, values, status


def test_odd_types_of_values(engine):
    A = random_matrix(20)
    values = systems_like(A, 2)
    assert gs.splu_batch(A, np.rint(10 * values).astype(int), engine=engine).dtype == np.float64
    assert gs.splu_batch(A, values.astype(np.float16), engine=engine).dtype == np.float32
    with pytest.raises(TypeError, match="Cannot cast"):
        gs.splu_batch(A, values.astype("f"), engine=engine).solve(rhs(20))


def test_values_in_any_order_with_duplicates(engine):
    rows, columns = np.array([1, 0, 1, 0, 1, 2]), np.array([1, 0, 1, 1, 0, 2])
    A = sp.coo_array((np.array([1.0, 4, 2, 1, 1, 5]), (rows, columns)), shape=(3, 3))
    values = np.array([A.data, 2 * A.data])
    x = gs.splu_batch(A, values, engine=engine).solve(np.ones(3))
    expected = np.linalg.solve(A.toarray(), np.ones(3))
    np.testing.assert_allclose(x, [expected, expected / 2], rtol=1e-14)
    B = sp.csr_array(random_matrix(20))  # another order than canonical columns
    values = systems_like(B, 3)
    x = gs.splu_batch(B, values, engine=engine).solve(np.ones(20))
    for k, one in enumerate(values):
        M = sp.csr_array((one, B.indices, B.indptr), shape=B.shape)
        assert backward_error(M, x[k], np.ones(20)) < 100 * EPS["d"]


@pytest.mark.parametrize("dtype", "fdFD")
def test_entries_of_the_inverse_by_the_factors_held(engine, dtype):
    """Also of a system that has pivots of its own; those without a factor have none."""
    A = canonical(sp.eye_array(60) * 10 + random_matrix(60, dtype))
    columns = np.repeat(np.arange(60), np.diff(A.indptr))
    values = systems_like(A, 11)
    values[2, A.indices == columns] *= 1e-14
    values[4, 7], values[6] = np.nan, 0
    batch = gs.splu_batch(A, values, engine=engine)
    before = gs.factorization_count()
    entries = batch.inverse_on_pattern()
    assert gs.factorization_count() == before
    assert (entries.shape, entries.dtype) == (values.shape, A.dtype)
    assert np.flatnonzero(np.isnan(entries).all(axis=1)).tolist() == [4, 6]
    for k in np.setdiff1d(np.arange(11), [4, 6]):
        inverse = np.linalg.inv(matrix_of(A, values[k]).toarray().astype(np.result_type(dtype, "d")))
        assert abs(entries[k] - inverse[columns, A.indices]).max() < 1000 * EPS[dtype] * abs(inverse).max()


def test_a_batch_for_which_there_is_no_room():
    class NoRoom(DenseBatches):
        name, most = "no_room", 0

    A = random_matrix(20)
    with registry.registered(NoRoom()), pytest.raises(MemoryError, match="no room for 1 systems"):
        gs.splu_batch(A, systems_like(A, 50), engine="no_room")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_singular_systems_are_flagged_by_a_solve_at_the_latest(one_by_one):
    A, singular = found_singular_late()
    values = np.array([singular, np.arange(1, 15)], "f")
    with registry.registered(OneByOne()):
        engine = "one_by_one" if one_by_one else "cpu"
        batch = gs.splu_batch(A, values, engine=engine)
        x = batch.solve(np.ones((2, 5), "f"), "T")
        assert batch.status[0] == gs.BatchStatus.SINGULAR > batch.status[1]
        assert np.isnan(x[0]).all()
        assert abs(matrix_of(A, values[1]).T @ x[1] - 1).max() < 1e-4
        assert batch.slogdet().logabsdet[0] == -np.inf
        batch.refactor(values[[1, 1]])
        assert (batch.status < gs.BatchStatus.SINGULAR).all()
        with pytest.raises(gs.BatchError, match="singular"):
            gs.splu_batch(A, values, errors="raise", engine=engine).solve(np.ones((2, 5), "f"), "T")
