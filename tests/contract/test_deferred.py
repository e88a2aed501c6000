"""Calls with check="later", that are not waited for."""

import numpy as np
import pytest

import gpusplu as gs
from contract.cases import INCOMPATIBLE, backward_error, on_host, only, operators

DEVICES = only(of=lambda engine, kind: engine.on_device)


@DEVICES
def test_solutions_are_those_of_calls_that_wait(case):
    put, factor, waiting = case.cupy.asarray, case.make(), case.make()
    for scale in (2, 3):
        values, b = put(scale * case.A.data), put(case.b())
        for trans, op in operators(scale * case.A):
            x = factor.refactor_solve(values, b, trans, check="later")
            y = factor.solve(put(np.asfortranarray(case.b(3))), trans, check="later")
            assert type(x) is type(b) and factor.check() < 100 * case.eps
            assert backward_error(op, x, case.b()) < 100 * case.eps
            assert backward_error(op, y, case.b(3)) < 100 * case.eps
            if case.engine.repeatable:
                waiting.refactor(values)
                assert np.array_equal(on_host(x), on_host(waiting.solve(b, trans)))
        factor.refactor(put(case.A.data), check="later")
        assert backward_error(case.A, factor.solve(b, check="later"), case.b()) < 100 * case.eps
    assert factor.check() < 100 * case.eps
    assert factor.check() is None
    case.accurate(factor)


@DEVICES
def test_solutions_go_where_the_caller_wants_them(case):
    put, factor = case.cupy.asarray, case.make()
    b, out = put(case.b()), put(0 * case.b())
    assert factor.solve(b, check="later", out=out) is out
    assert factor.refactor_solve(put(2 * case.A.data), b, check="later", out=b) is b
    assert factor.check() < 100 * case.eps
    assert backward_error(case.A, out, case.b()) < 100 * case.eps
    assert backward_error(2 * case.A, b, case.b()) < 100 * case.eps


@DEVICES
def test_what_is_wrong_shows_at_the_check(case):
    """The factor then holds no values until it is refactored."""
    put, factor = case.cupy.asarray, case.make()
    for values, error in ((case.spoilt(), gs.NonFiniteError), (case.unfit(), INCOMPATIBLE[case.kind])):
        factor.refactor(put(values), check="later")
        with pytest.raises(error):
            factor.check()
        factor.refactor(put(2 * case.A.data), check="later")
        x = factor.solve(put(case.b()), check="later")
        assert factor.check() < 100 * case.eps
        assert backward_error(2 * case.A, x, case.b()) < 100 * case.eps
        factor.refactor(put(values), check="later")
        with pytest.raises((error, gs.AccuracyError)):
            factor.solve(case.b())
        factor.refactor(case.A.data)
        case.accurate(factor)


@DEVICES
def test_errors_of_any_solution_are_told_once(case):
    put, factor, b = case.cupy.asarray, case.make(), case.cupy.asarray(case.b())
    for values in (case.A.data, case.spoilt(), case.A.data):
        factor.refactor(put(values), check="later")
        factor.solve(b, check="later")
    with pytest.raises(gs.AccuracyError, match="of 3 solutions"):
        factor.check()
    assert factor.check() is None
    case.accurate(factor)


@DEVICES
def test_arrays_are_taken_as_they_are_or_not_at_all(case):
    put, factor = case.cupy.asarray, case.make()
    b, values, n, kind = put(case.b()), put(case.A.data), case.n, np.dtype(case.dtype)
    other = "f" if case.dtype != "f" else "d"
    for error, text, call in (
        (TypeError, "rhs is ndarray; pass a cupy.ndarray", lambda: factor.solve(case.b(), check="later")),
        (TypeError, "values is ndarray", lambda: factor.refactor(case.A.data, check="later")),
        (TypeError, "out is ndarray", lambda: factor.solve(b, check="later", out=case.b())),
        (TypeError, "values is ndarray", lambda: factor.refactor_solve(case.A.data, b, check="later")),
        (TypeError, f"and the factor {kind.name}", lambda: factor.solve(put(np.ones(n, other)), check="later")),
        (ValueError, "copies nothing: rhs", lambda: factor.solve(put(np.ones((n, 3), kind)), check="later")),
        (ValueError, "copies nothing: rhs", lambda: factor.solve(put(np.ones(2 * n, kind))[::2], check="later")),
        (ValueError, "incompatible size", lambda: factor.solve(put(np.ones(3, kind)), check="later")),
        (ValueError, rf"shape \({n - 1},\)", lambda: factor.solve(b, check="later", out=put(np.ones(n - 1, kind)))),
        (ValueError, "trans must be", lambda: factor.solve(b, "X", check="later")),
        (ValueError, "values of shape", lambda: factor.refactor(put(np.ones(3, kind)), check="later")),
        (ValueError, "not 'never'", lambda: factor.refactor(values, check="never")),
        (ValueError, "out= is for check='later'", lambda: factor.refactor_solve(values, b, out=b)),
    ):
        with pytest.raises(error, match=text):
            call()
    assert factor.check() is None
    case.accurate(factor)


@only(of=lambda engine, kind: not engine.on_device)
def test_on_the_processor_all_is_checked_at_once(case):
    factor, out = case.make(), np.empty(case.n, case.dtype)
    factor.refactor(2 * case.A.data, check="later")
    assert factor.solve(case.b(), check="later", out=out) is out
    assert backward_error(2 * case.A, out, case.b()) < 100 * case.eps
    assert (
        backward_error(case.A, factor.refactor_solve(case.A.data, case.b(), check="later"), case.b()) < 100 * case.eps
    )
    assert factor.check() == factor.backward_error
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(case.spoilt(), check="later")
    for call in (
        lambda: factor.solve(case.cupy.asarray(case.b()), check="later"),
        lambda: factor.refactor(case.cupy.asarray(case.A.data), check="later"),
    ):
        with pytest.raises(TypeError, match=f"engine='{case.engine.name}' works on the processor"):
            call()


@only(dtypes="dD", of=lambda engine, kind: engine.on_device)
def test_mixed_precision_is_waited_for(case):
    factor = case.make(precision="mixed")
    for call in (
        lambda: factor.solve(case.puts(case.b()), check="later"),
        lambda: factor.refactor(case.puts(case.A.data), check="later"),
    ):
        with pytest.raises(ValueError, match="precision='double'"):
            call()
