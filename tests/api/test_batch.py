"""Batches: many systems with one pattern, side by side where the engine does that and one by one where it does not."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.engines import registry
from gpusplu.engines.cpu.engine import CpuEngine
from support.dense_batch import DenseBatches, systems_like
from support.small_matrices import EPS, canonical, random_matrix, rhs, spd_matrix


class OneByOne(CpuEngine):
    """The CPU engine without batches."""

    name, batches = "one_by_one", False

    def factor_batch(self, problem, analysis, count):
        return None


class InPieces(DenseBatches):
    """Dense batches of 4 systems at most."""

    name, most = "in_pieces", 4


@pytest.fixture(params=["cpu", "one_by_one", "dense_batches", "in_pieces"])
def engine(request):
    with registry.registered(OneByOne()), registry.registered(DenseBatches()), registry.registered(InPieces()):
        yield request.param


def definite_like(A, count, seed=1):
    """Values of Hermitian positive definite systems: scaled from both sides, or shifted by much of their diagonal."""
    rng = np.random.default_rng(seed)
    scaled = []
    for _ in range(count):
        D = sp.diags_array(rng.uniform(0.5, 2, A.shape[0]))
        scaled.append(canonical(D @ A @ D).data)
    return np.array(scaled, dtype=A.dtype)


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


def apply(M, trans, x):
    return {"N": M, "T": M.T, "H": M.conj().T}[trans] @ x


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", "fdFD")
def test_every_system_is_solved(engine, dtype, trans):
    A = random_matrix(50, dtype)
    values = systems_like(A, 11)
    batch = gs.splu_batch(A, values, engine=engine)
    b = np.array([rhs(50, dtype, seed=k) for k in range(11)])
    x = batch.solve(b, trans)
    assert (x.shape, x.dtype, batch.shape, len(batch)) == (b.shape, A.dtype, (11, 50, 50), 11)
    for k, one in enumerate(values):
        op = {"N": lambda M: M, "T": lambda M: M.T, "H": lambda M: M.conj().T}[trans](matrix_of(A, one))
        assert backward_error(op, x[k], b[k]) < 100 * EPS[dtype]
    assert (batch.status <= gs.BatchStatus.REPIVOTED).all() and (batch.backward_error < 100 * EPS[dtype]).all()


@pytest.mark.parametrize("dtype", "fdFD")
def test_definite_systems(engine, dtype):
    A = spd_matrix(40, dtype)
    values = definite_like(A, 9)
    batch = gs.cholesky_batch(A, values, engine=engine)
    assert isinstance(batch, gs.BatchedCholeskyFactor)
    b = np.array([rhs(40, dtype, seed=k) for k in range(9)])
    x = batch(b)
    for k, one in enumerate(values):
        M = matrix_of(A, one)
        assert backward_error(M, x[k], b[k]) < 100 * EPS[dtype]
        assert batch.logdet()[k] == pytest.approx(np.linalg.slogdet(M.toarray())[1], rel=1e-3)


def test_one_triangle_is_enough(engine):
    A = spd_matrix(30)
    lower = canonical(sp.tril(A))
    values = np.array([s * lower.data for s in (1, 2, 3)])
    x = gs.cholesky_batch(lower, values, engine=engine).solve(np.ones(30))
    expected = np.linalg.solve(A.toarray(), np.ones(30))
    np.testing.assert_allclose(x, [expected, expected / 2, expected / 3], rtol=1e-10)


def test_right_hand_sides_of_every_shape(engine):
    A = random_matrix(30)
    batch = gs.splu_batch(A, systems_like(A, 5), engine=engine)
    one, many = rhs(30), np.array([rhs(30, columns=(3,), seed=k) for k in range(5)])
    np.testing.assert_array_equal(batch.solve(one), batch.solve(np.tile(one, (5, 1))))
    x = batch.solve(many)
    assert x.shape == (5, 30, 3)
    for k in range(3):
        np.testing.assert_allclose(x[..., k], batch.solve(np.ascontiguousarray(many[..., k])), rtol=1e-10)
    np.testing.assert_allclose(batch.solve(one + 2j * one), (1 + 2j) * batch.solve(one), rtol=1e-10)
    for shape in [(4, 30), (5, 29), (29,), (5, 30, 2, 2), ()]:
        with pytest.raises(ValueError, match="b of a batch must have shape"):
            batch.solve(np.zeros(shape))
    with pytest.raises(ValueError, match="trans must be N, T, or H"):
        batch.solve(one, "X")
    with pytest.raises(TypeError, match=r"must be numpy\.ndarray, not list"):
        batch.solve([1.0] * 30)
    with pytest.raises(TypeError, match="Cannot cast"):
        gs.splu_batch(A, systems_like(A, 2).astype("f"), engine=engine).solve(one)


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


def test_systems_that_fail_are_flagged_and_the_others_untouched(engine):
    A, values, status = failing_systems()
    good, b = status == 0, np.array([rhs(40, seed=k) for k in range(12)])
    batch = gs.splu_batch(A, values, engine=engine)
    x = batch.solve(b)
    failed = batch.status >= gs.BatchStatus.SINGULAR
    np.testing.assert_array_equal(batch.status[failed], status[~good])
    np.testing.assert_array_equal(np.isnan(x).all(axis=1), ~good)
    np.testing.assert_array_equal(np.isnan(batch.backward_error), ~good)
    alone = gs.splu_batch(A, values[good], engine=engine)
    np.testing.assert_array_equal(x[good], alone.solve(b[good]))
    sign, logabsdet = batch.slogdet()
    assert (logabsdet[[3, 7]] == -np.inf).all() and (sign[[3, 7]] == 0).all() and np.isnan(sign[[5, 11]]).all()
    batch.refactor(systems_like(A, 12))
    assert (batch.status <= gs.BatchStatus.REPIVOTED).all() and np.isfinite(batch.solve(b)).all()


def test_failures_raise_where_that_is_asked_for(engine):
    A, values, status = failing_systems()
    with pytest.raises(gs.BatchError, match=r"4 systems .* singular: 3, 7; not finite: 5, 11") as caught:
        gs.splu_batch(A, values, engine=engine, errors="raise")
    np.testing.assert_array_equal(caught.value.indices, [3, 5, 7, 11])
    assert caught.value.status == [gs.BatchStatus(s) for s in status[status > 0]]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    batch = gs.splu_batch(A, values[:3], engine=engine, errors="raise")
    with pytest.raises(gs.BatchError):
        batch.refactor(values[3:6])
    with pytest.raises(ValueError, match="errors='warn' is not one of"):
        gs.splu_batch(A, values, engine=engine, errors="warn")


def test_what_ends_among_factors_of_their_own_is_done_by_the_next_call(engine, monkeypatch):
    A, b = random_matrix(40), rhs(40)
    batch = gs.splu_batch(A, systems_like(A, 5, seed=2), engine=engine)
    values = systems_like(A, 5)
    values[[1, 3]] = 0
    own_factor, begun = batch._own_factor, []

    def interrupted(system, canonical):
        begun.append(system)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return own_factor(system, canonical)

    with monkeypatch.context() as patched:
        patched.setattr(batch, "_own_factor", interrupted)
        with pytest.raises(KeyboardInterrupt):
            batch.refactor(values)
    x = batch.solve(b)
    np.testing.assert_array_equal(batch.status == gs.BatchStatus.SINGULAR, [False, True, False, True, False])
    np.testing.assert_array_equal(np.isnan(x).all(axis=1), [False, True, False, True, False])
    for k in (0, 2, 4):
        assert backward_error(matrix_of(A, values[k]), x[k], b) < 100 * EPS["d"]


def test_an_indefinite_system_is_flagged(engine):
    A = spd_matrix(30)
    values = definite_like(A, 6)
    values[2] = -values[2]
    batch = gs.cholesky_batch(A, values, engine=engine)
    np.testing.assert_array_equal(batch.status == gs.BatchStatus.NOT_DEFINITE, np.arange(6) == 2)
    np.testing.assert_array_equal(np.isnan(batch.solve(np.ones(30))).any(axis=1), np.arange(6) == 2)


def test_systems_that_need_other_pivots_get_them(engine):
    """The diagonal of the matrix that is analysed is large, that of the third system next to nothing."""
    A = canonical(sp.eye_array(60) * 10 + sp.random_array((60, 60), density=0.1, rng=np.random.default_rng(2)))
    values = systems_like(A, 5)
    values[2, A.indices == np.repeat(np.arange(60), np.diff(A.indptr))] *= 1e-14
    batch = gs.splu_batch(A, values, engine=engine)
    b = rhs(60)
    x = batch.solve(b)
    for k, one in enumerate(values):
        assert backward_error(matrix_of(A, one), x[k], b) < 100 * EPS["d"]
    if batch.stats.side_by_side:
        assert batch.status[2] == gs.BatchStatus.REPIVOTED and batch.stats.repivoted == 1


def test_results_do_not_depend_on_the_size_of_the_batch_or_on_the_order(engine):
    A = random_matrix(60)
    values, b = systems_like(A, 37), np.array([rhs(60, seed=k) for k in range(37)])
    whole = gs.splu_batch(A, values, engine=engine).solve(b)
    order = np.random.default_rng(0).permutation(37)
    np.testing.assert_array_equal(gs.splu_batch(A, values[order], engine=engine).solve(b[order]), whole[order])
    for count in (1, 2, 9, 32):
        np.testing.assert_array_equal(gs.splu_batch(A, values[:count], engine=engine).solve(b[:count]), whole[:count])


def test_results_do_not_depend_on_the_others_where_the_matrix_analysed_has_zeros(engine):
    A = random_matrix(60)
    rng = np.random.default_rng(0)
    values, b = rng.normal(size=(12, A.nnz)), np.array([rhs(60, seed=k) for k in range(12)])
    zeros = A.copy()
    zeros.data[zeros.indices == 3] = 0  # a row, so that no pivots can be chosen among these values
    whole = gs.splu_batch(zeros, values, engine=engine).solve(b)
    order = rng.permutation(12)
    np.testing.assert_array_equal(gs.splu_batch(zeros, values[order], engine=engine).solve(b[order]), whole[order])
    np.testing.assert_array_equal(gs.splu_batch(zeros, values[5:7], engine=engine).solve(b[5:7]), whole[5:7])
    assert all(backward_error(matrix_of(A, values[k]), whole[k], b[k]) < 100 * EPS["d"] for k in range(12))


def test_a_system_of_a_batch_is_an_ordinary_factor(engine):
    A = random_matrix(30)
    values = systems_like(A, 4)
    batch = gs.splu_batch(A, values, engine=engine)
    lu = batch[-1]
    assert isinstance(lu, gs.LUFactor) and len(list(batch)) == 4
    lu.refactor(values[0])  # its own
    np.testing.assert_allclose(batch.solve(np.ones(30))[3], sp.linalg.spsolve(matrix_of(A, values[3]), np.ones(30)))
    with pytest.raises(IndexError):
        batch[4]
    values[1, 0] = np.nan
    with pytest.raises(gs.NonFiniteError):
        gs.splu_batch(A, values, engine=engine)[1]


def test_an_analysis_factors_batches(engine):
    A = random_matrix(30)
    values = systems_like(A, 6)
    symbolic = gs.analyze(A, engine=engine)
    batch = symbolic.factor(values)
    assert isinstance(batch, gs.BatchedLUFactor) and isinstance(symbolic.factor(values[0]), gs.LUFactor)
    for k, x in enumerate(batch.solve(np.ones(30))):
        assert backward_error(matrix_of(A, values[k]), x, np.ones(30)) < 100 * EPS["d"]
    x = batch.refactor_solve(values[::-1], np.ones(30))
    np.testing.assert_array_equal(x, symbolic.factor(values[::-1]).solve(np.ones(30)))
    spd = spd_matrix(20)
    cholesky = gs.analyze(spd, cholesky=True, engine=engine).factor(definite_like(spd, 3))
    assert isinstance(cholesky, gs.BatchedCholeskyFactor)


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


def test_determinants(engine):
    A = random_matrix(25)
    values = systems_like(A, 4)
    sign, logabsdet = gs.splu_batch(A, values, engine=engine).slogdet()
    expected = [np.linalg.slogdet(matrix_of(A, one).toarray()) for one in values]
    np.testing.assert_array_equal(sign, [one[0] for one in expected])
    np.testing.assert_allclose(logabsdet, [one[1] for one in expected], rtol=1e-12)


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


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.ones((3, 5)), ValueError, r"must have shape \(nbatch, \d+\), got \(3, 5\)"),
        (np.ones((0, 5)), ValueError, r"must have shape"),
        (np.ones(5), ValueError, "must have shape"),
        ([["a"]], TypeError, "must be an array of numbers"),
    ],
)
def test_other_values_are_refused(engine, values, error, message):
    with pytest.raises(error, match=message):
        gs.splu_batch(random_matrix(20), values, engine=engine)


def test_batches_of_none_and_of_odd_types(engine):
    A = random_matrix(20)
    with pytest.raises(ValueError, match="a batch needs one system at least"):
        gs.splu_batch(A, np.ones((0, A.nnz)), engine=engine)
    assert gs.splu_batch(A, A.data[None], engine=engine).solve(np.ones(20)).shape == (1, 20)
    integers = np.rint(10 * systems_like(A, 2)).astype(int)
    assert gs.splu_batch(A, integers, engine=engine).dtype == np.float64
    assert gs.splu_batch(A, systems_like(A, 2).astype(np.float16), engine=engine).dtype == np.float32
    batch = gs.splu_batch(A, systems_like(A, 2), engine=engine)
    with pytest.raises(ValueError, match="values of 3 systems, the batch has 2"):
        batch.refactor(systems_like(A, 3))
    with pytest.raises(TypeError, match="Cannot cast"):
        batch.refactor(1j * systems_like(A, 2))


def test_pickles(engine):
    A, values, _ = failing_systems()
    batch = gs.splu_batch(A, values, engine=engine)
    copy = pickle.loads(pickle.dumps(batch))
    b = rhs(40)
    np.testing.assert_array_equal(copy.status, batch.status)
    np.testing.assert_array_equal(copy.solve(b), batch.solve(b))


def test_the_analysis_is_remembered():
    gs.cache_clear()
    A = random_matrix(30)
    for _ in range(3):
        gs.splu_batch(A, systems_like(A, 2))
    assert (gs.cache_info().hits, gs.cache_info().misses) == (2, 1)
    with pytest.raises(gs.NonFiniteError):
        gs.splu_batch(matrix_of(A, np.full(A.nnz, np.nan)), systems_like(A, 2))


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
