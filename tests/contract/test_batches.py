"""Many systems with one pattern."""

import pickle

import numpy as np
import pytest

import gpusplu as gs
from contract.cases import backward_error, on_host, only, operators, with_values
from support.symmetric_values import nearly, spoilt, ways_to_spoil

BATCHES = only("lu", "cholesky")
STATUS = gs.BatchStatus
COUNT = 5


def systems(case, count=COUNT):
    """Values like those of the matrix: scaled from both sides."""
    rng = np.random.default_rng(1)
    columns = np.repeat(np.arange(case.n), np.diff(case.A.indptr))
    rows = []
    for _ in range(count):
        d, e = rng.uniform(0.5, 2, (2, case.n))
        e = d if case.kind == "cholesky" else e
        rows.append(case.A.data * (d[case.A.indices] * e[columns]).astype(case.dtype))
    return np.array(rows, case.dtype)


def sides(case, count=COUNT, *columns):
    return np.array([case.b(*columns, seed=k) for k in range(count)])


def check_solutions(case, values, x, b, trans="N"):
    for k, one in enumerate(values):
        op = dict(operators(with_values(case.A, one)))[trans]
        assert backward_error(op, on_host(x)[k], b[k] if b.ndim > 1 else b) < 100 * case.eps


@BATCHES
def test_every_system_is_solved(case):
    values = systems(case)
    for put in case.places:
        batch = case.batch(case.A, put(values))
        assert len(batch) == COUNT and batch.shape == (COUNT, case.n, case.n) and batch.engine == case.engine.name
        for columns in ((), (3,)):
            for trans in "NTH":
                b = put(sides(case, COUNT, *columns))
                x = batch.solve(b, trans)
                assert type(x) is type(b) and x.shape == b.shape and x.dtype == case.A.dtype
                check_solutions(case, values, x, on_host(b), trans)
        assert (batch.status <= STATUS.REPIVOTED).all()
        check_solutions(case, values, batch.solve(put(case.b())), case.b())
    assert batch.stats.nbatch == COUNT
    assert case.kind not in case.engine.lockstep or batch.stats.side_by_side


@BATCHES
def test_refactor(case):
    values = systems(case)
    batch = case.batch(case.A, values)
    for put in case.places:
        batch.refactor(put(2 * values))
        check_solutions(case, 2 * values, batch.solve(put(sides(case))), sides(case))
        x = batch.refactor_solve(put(3 * values), put(sides(case)))
        check_solutions(case, 3 * values, x, sides(case))
    with pytest.raises(ValueError, match="values of 2 systems, the batch has 5"):
        batch.refactor(values[:2])
    with pytest.raises(ValueError, match="values of a batch must have shape"):
        batch.refactor(values[0])
    check_solutions(case, 3 * values, batch.solve(sides(case)), sides(case))


@BATCHES
def test_systems_that_fail_are_flagged_and_the_others_not_touched(case):
    values = systems(case)
    plain = on_host(case.batch(case.A, case.puts(values)).solve(case.puts(sides(case))))
    values[1], values[3] = case.spoilt(), case.unfit()
    batch = case.batch(case.A, case.puts(values))
    kind = STATUS.NOT_DEFINITE if case.kind == "cholesky" else STATUS.SINGULAR
    assert batch.status[[1, 3]].tolist() == [STATUS.NOT_FINITE, kind]
    x = on_host(batch.solve(case.puts(sides(case))))
    assert np.isnan(x[[1, 3]]).all()
    good = [0, 2, 4]
    assert not case.engine.repeatable or x[good].tobytes() == plain[good].tobytes()
    check_solutions(case, values[good], x[good], sides(case)[good])
    assert np.isfinite(batch.slogdet().logabsdet[good]).all()
    with pytest.raises(gs.NonFiniteError):
        batch[1]
    with pytest.raises(gs.BatchError) as error:
        on_host(case.batch(case.A, case.puts(values), errors="raise").solve(case.puts(sides(case))))
    assert error.value.indices.tolist() == [1, 3] and error.value.status == [STATUS.NOT_FINITE, kind]
    batch.refactor(case.puts(systems(case)))
    assert (batch.status <= STATUS.REPIVOTED).all()


@only("cholesky")
def test_systems_that_are_not_hermitian(case):
    values, b = np.stack([case.A.data] * 7), case.puts(case.b())
    for system, how in enumerate(ways_to_spoil(case.dtype)):
        values[system] = spoilt(case.A, how)
    values[5], values[6] = nearly(case.A, 900), nearly(case.A, 1100)
    failed = [*range(len(ways_to_spoil(case.dtype))), 6]
    good = on_host(case.batch(case.A, case.puts(np.stack([case.A.data] * 7))).solve(b))
    for put in case.places:
        batch = case.batch(case.A, put(values))
        assert np.flatnonzero(batch.status == STATUS.NOT_HERMITIAN).tolist() == failed
        for x in (batch.solve(b), batch.refactor_solve(put(values), b)):
            assert np.flatnonzero(np.isnan(on_host(x)).any(axis=1)).tolist() == failed
            np.testing.assert_array_equal(on_host(x)[4], good[4])
        assert batch.stats["not_hermitian"] == len(failed) and np.isnan(batch.slogdet().logabsdet[failed]).all()
        with pytest.raises(gs.NotHermitianError):
            batch[0]
        with pytest.raises(gs.BatchError, match="not hermitian: 0, 1"):
            case.batch(case.A, put(values), errors="raise").solve(b)


@only("lu")
def test_systems_that_want_other_pivots_get_them(case):
    values = systems(case)
    rng = np.random.default_rng(3)
    values[2] = rng.normal(size=case.A.nnz) * 10.0 ** rng.integers(-6, 7, case.A.nnz)
    batch = case.batch(case.A, case.puts(values))
    check_solutions(case, values, batch.solve(case.puts(sides(case))), sides(case))
    assert batch.status[2] in (STATUS.REFINED, STATUS.REPIVOTED, STATUS.RIGHT)


@only("lu", "cholesky", of=lambda engine, kind: engine.repeatable)
def test_results_do_not_depend_on_the_other_systems(case):
    values, b = systems(case), sides(case)
    whole = on_host(case.batch(case.A, values).solve(b))
    order = [3, 0, 4]
    assert np.array_equal(on_host(case.batch(case.A, values[order]).solve(b[order])), whole[order])


@BATCHES
def test_a_system_is_an_ordinary_factor(case):
    values = systems(case)
    batch = case.batch(case.A, case.puts(values))
    factor = batch[-1]
    assert type(factor) is (gs.LUFactor if case.kind == "lu" else gs.CholeskyFactor)
    case.accurate(factor, with_values(case.A, values[-1]))
    assert len(list(batch)) == COUNT
    np.testing.assert_array_equal(batch.canonical(2), values[2])
    with pytest.raises(IndexError):
        batch[COUNT]


@BATCHES
def test_determinants_and_inverses(case):
    values = systems(case)
    batch = case.batch(case.A, values)
    batch.refactor(case.puts(2 * values))
    dense = [with_values(case.A, 2 * one).toarray() for one in values]
    expected = np.linalg.slogdet(np.array(dense).astype("D"))
    found = batch.slogdet()
    np.testing.assert_allclose(found.sign, expected.sign, atol=1e4 * case.eps)
    np.testing.assert_allclose(found.logabsdet, expected.logabsdet, rtol=1e4 * case.eps)
    columns = np.repeat(np.arange(case.n), np.diff(case.A.indptr))
    inverses = np.array([np.linalg.inv(one)[columns, case.A.indices] for one in dense])
    np.testing.assert_allclose(batch.inverse_on_pattern(), inverses, atol=1e4 * case.eps * abs(inverses).max())
    if case.kind == "cholesky":
        np.testing.assert_array_equal(batch.logdet(), found.logabsdet)


@BATCHES
def test_analyses_and_pickles(case):
    values = systems(case)
    for batch in (case.analyze().factor(values), pickle.loads(pickle.dumps(case.batch(case.A, values)))):
        assert batch.engine == batch.symbolic.engine == case.engine.name
        check_solutions(case, values, batch.solve(sides(case)), sides(case))


@BATCHES
def test_wrong_arguments(case):
    batch = case.batch(case.A, systems(case))
    for put in case.places:
        for shape in ((4, case.n), (COUNT, case.n - 1), (case.n - 1,), (COUNT, case.n, 2, 2)):
            with pytest.raises(ValueError, match="b of a batch must have shape"):
                batch.solve(put(np.zeros(shape, case.dtype)))
        with pytest.raises(ValueError, match="trans must be N, T, or H"):
            batch.solve(put(case.b()), "X")
    with pytest.raises(ValueError, match="errors='ignore' is not one of"):
        case.batch(case.A, systems(case), errors="ignore")
    assert batch.solve(np.empty((COUNT, case.n, 0), case.dtype)).shape == (COUNT, case.n, 0)


@BATCHES
def test_calls_that_are_not_waited_for(case):
    """Where systems are factored side by side on a device, or on the processor, where all is checked at once."""
    values, there = systems(case), case.cupy.asarray
    batch = case.batch(case.A, case.puts(values))
    if case.engine.on_device and case.kind not in case.engine.lockstep:
        with pytest.raises(TypeError, match="pass check='now'"):
            batch.refactor(there(2 * values), check="later")
        return
    put = case.puts
    x = batch.refactor_solve(put(2 * values), put(sides(case)), check="later")
    check_solutions(case, 2 * values, x, sides(case))
    error = batch.check()
    assert error.shape == (COUNT,) and (np.isnan(error) | (error < 100 * case.eps)).all()
    spoilt = 2 * values
    spoilt[1], spoilt[3] = case.spoilt(), case.unfit()
    batch.refactor(put(spoilt), check="later")
    x = on_host(batch.solve(put(sides(case)), check="later"))
    assert np.isnan(x[[1, 3]]).all()
    batch.check()
    kind = STATUS.NOT_DEFINITE if case.kind == "cholesky" else STATUS.SINGULAR
    assert set(batch.status[[1, 3]].tolist()) <= {STATUS.NOT_FINITE, kind, STATUS.UNTRUSTED}
    good = [0, 2, 4]
    check_solutions(case, spoilt[good], x[good], sides(case)[good])
    batch.refactor(put(values), check="later")
    assert (batch.status <= STATUS.REPIVOTED).all()


@only(of=lambda engine, kind: kind in engine.lockstep)
def test_arrays_of_deferred_calls_are_taken_as_they_are(case):
    put, values = case.cupy.asarray, systems(case)
    batch, b, other = case.batch(case.A, values), put(sides(case)), {"f": "d", "d": "f", "F": "D", "D": "F"}[case.dtype]
    wide, on_device = put(sides(case, COUNT, 3)), put(values)
    for error, text, call in (
        (TypeError, "rhs is ndarray; pass a cupy.ndarray", lambda: batch.solve(sides(case), check="later")),
        (TypeError, "values is ndarray", lambda: batch.refactor(values, check="later")),
        (TypeError, "out is ndarray", lambda: batch.solve(b, check="later", out=sides(case))),
        (TypeError, f"rhs is {np.dtype(other)}", lambda: batch.solve(b.astype(other), check="later")),
        (TypeError, f"values is {np.dtype(other)}", lambda: batch.refactor(on_device.astype(other), check="later")),
        (ValueError, "copies nothing: rhs", lambda: batch.solve(wide[..., 0], check="later")),
        (ValueError, "copies nothing: values", lambda: batch.refactor(on_device.copy("F"), check="later")),
        (ValueError, "b must have shape", lambda: batch.solve(b[0], check="later")),
        (ValueError, "values of shape", lambda: batch.refactor(on_device[:1], check="later")),
        (ValueError, "out has shape", lambda: batch.solve(b, check="later", out=b[:2])),
        (ValueError, "trans must be", lambda: batch.solve(b, "X", check="later")),
        (ValueError, "not 'never'", lambda: batch.solve(b, check="never")),
        (ValueError, "out= is for check='later'", lambda: batch.solve(b, out=b)),
        (ValueError, "out= is for check='later'", lambda: batch.refactor_solve(on_device, b, out=b)),
    ):
        with pytest.raises(error, match=text):
            call()
    assert np.isnan(batch.check()).all() and not batch.status.any()


@only("ldlt")
def test_there_are_no_batches_of_ldlt(case):
    with pytest.raises(ValueError, match="there are no batches of ldlt"):
        case.analyze().factor(np.stack([case.A.data, case.A.data]))
