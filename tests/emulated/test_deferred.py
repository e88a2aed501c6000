"""Calls with check="later" outside of any capture: which arrays they take, on which engines, and what they cost."""

import gc

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.engines.device import factorization
from gpusplu.engines.device.factorization import DeviceFactorization
from gpusplu.engines.supernodal import batch as lockstep_batch
from gpusplu.engines.supernodal.batch import LockstepBatch
from support import fake_cupy
from support.column_engines import harder
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix

pytestmark = pytest.mark.usefixtures("cupy")
A = random_matrix()
B = rhs(60)


@pytest.fixture
def factor(device):
    return gs.splu(A, engine="supernodal")


def replace_core(array, order="K"):
    return fake_cupy.asarray(np.array(array, order=order))


def test_a_step_is_one_launch_and_nobody_waits(device, factor):
    values, b, x = replace_core(A.data), replace_core(B), replace_core(B)
    for _ in range(4):  # arrays that come again are used where they lie
        factor.refactor_solve(values, b, check="later", out=x)
    device.counts.clear()
    factor.refactor_solve(values, b, check="later", out=x)
    assert device.counts == {"replay": 1}
    np.testing.assert_array_equal(x, factor.solve(B))
    assert factor.stats.n_refactor == 5


def test_factors_that_outlive_their_modules(factor, monkeypatch):
    """At the end of a process modules may lose their names before the last factors go."""
    batch = gs.splu_batch(A, np.stack([A.data, A.data]), engine="supernodal")
    made = [one for one in gc.get_objects() if issubclass(type(one), (DeviceFactorization, LockstepBatch))]
    assert {isinstance(one, LockstepBatch) for one in made} == {False, True}
    for module in (factorization, lockstep_batch):
        for name in [name for name in vars(module) if not name.startswith("__")]:
            monkeypatch.setattr(module, name, None)
    for one in made:
        one.__del__()
    del batch


def test_calls_add_up_until_somebody_looks(device, factor):
    b = replace_core(B)
    for scale in (1.0, 2.0, 3.0):
        factor.refactor(replace_core(scale * A.data), check="later")
        x = factor.solve(b, check="later")
        assert type(x) is fake_cupy.ndarray
        assert backward_error(scale * A, np.asarray(x), B) < 100 * EPS["d"]
    spoilt = A.data.copy()
    spoilt[7] = np.nan
    factor.refactor(replace_core(spoilt), check="later")
    factor.solve(b, check="later")
    factor.refactor(replace_core(A.data), check="later")
    factor.solve(b, check="later")
    with pytest.raises(gs.AccuracyError, match=r"some of 5 solutions .* first in refactorization 4 of 5"):
        factor.solve(b)
    assert factor.backward_error == np.inf
    factor.solve(b)
    assert factor.check() is None
    assert 0 < factor.backward_error < 100 * EPS["d"]
    assert backward_error(A, np.asarray(factor.solve(b)), B) < 100 * EPS["d"]


def test_a_refactorization_that_was_to_be_waited_for(device, factor):
    """Of values on the device: a solve that is not waited for has its status, and the values before come back."""
    b, spoilt = replace_core(B), replace_core(A.data)
    spoilt[7] = np.nan
    x = np.array(factor.solve(b))
    factor.refactor(spoilt)
    factor.solve(b, check="later")
    with pytest.raises(gs.NonFiniteError):
        factor.check()
    np.testing.assert_array_equal(factor.solve(b), x)
    factor.refactor(replace_core(2 * A.data))
    factor.solve(b, check="later")
    assert factor.check() < 100 * EPS["d"]
    assert factor.stats.n_refactor == 1


def test_arrays_are_taken_as_they_are_or_not_at_all(factor):
    b, values = replace_core(B), replace_core(A.data)
    refused = [
        (TypeError, "rhs is ndarray; pass a cupy.ndarray", lambda: factor.solve(B, check="later")),
        (TypeError, "values is ndarray", lambda: factor.refactor(A.data, check="later")),
        (TypeError, "out is ndarray", lambda: factor.solve(b, check="later", out=B.copy())),
        (TypeError, "values is ndarray", lambda: factor.refactor_solve(A.data, b, check="later")),
        (
            TypeError,
            "rhs is float32, and the factor float64",
            lambda: factor.solve(replace_core(B.astype("f")), check="later"),
        ),
        (TypeError, "rhs is complex128", lambda: factor.solve(replace_core(B.astype("D")), check="later")),
        (ValueError, "copies nothing: rhs", lambda: factor.solve(replace_core(np.ones((60, 3)), "C"), check="later")),
        (ValueError, "copies nothing: rhs", lambda: factor.solve(replace_core(np.ones(120))[::2], check="later")),
        (ValueError, "incompatible size", lambda: factor.solve(replace_core(np.ones(3)), check="later")),
        (ValueError, r"shape \(59,\)", lambda: factor.solve(b, check="later", out=replace_core(np.ones(59)))),
        (ValueError, "trans must be", lambda: factor.solve(b, "X", check="later")),
        (ValueError, "values of shape", lambda: factor.refactor(replace_core(np.ones(3)), check="later")),
        (ValueError, "not 'never'", lambda: factor.solve(b, check="never")),
        (ValueError, "not 'never'", lambda: factor.refactor(values, check="never")),
        (ValueError, "out= is for check='later'", lambda: factor.solve(b, out=b)),
        (ValueError, "out= is for check='later'", lambda: factor.refactor_solve(values, b, out=b)),
    ]
    for kind, text, call in refused:
        with pytest.raises(kind, match=text):
            call()
    assert factor.check() is None


def test_on_the_processor_all_is_looked_after_at_once(device):
    for factor, matrix in ((gs.splu(A), A), (gs.cholesky(spd_matrix(60)), spd_matrix(60))):
        factor.refactor(2 * matrix.data, check="later")
        out = np.empty(60)
        assert factor.solve(B, check="later", out=out) is out
        assert backward_error(2 * matrix, out, B) < 100 * EPS["d"]
        x = factor.refactor_solve(matrix.data, B, check="later")
        assert backward_error(matrix, x, B) < 100 * EPS["d"]
        assert factor.check() == factor.backward_error
        with pytest.raises(gs.NonFiniteError):
            factor.refactor(np.nan * matrix.data, check="later")
        for call in (
            lambda: factor.solve(replace_core(B), check="later"),  # noqa: B023
            lambda: factor.refactor(replace_core(matrix.data), check="later"),  # noqa: B023
        ):
            with pytest.raises(TypeError, match="engine='cpu' works on the processor"):
                call()


def test_factors_that_have_moved_take_both(device, factor):
    lu = gs.splu(A)
    lu.refactor(A.data, check="later")
    lu.replace_core(factor._core, factor._symbolic)  # as moving.py does between two calls
    lu.refactor(2 * A.data, check="later")
    assert backward_error(2 * A, lu.solve(B, check="later"), B) < 100 * EPS["d"]
    x = lu.refactor_solve(replace_core(3 * A.data), replace_core(B), check="later")
    assert lu.check() < 100 * EPS["d"]
    assert backward_error(3 * A, np.asarray(x), B) < 100 * EPS["d"]


def test_values_that_the_processor_has_to_solve_with(device):
    """Pivots that a device cannot choose: who does not wait is told so before, and the next values go on there."""
    small = random_matrix(40)
    factor, b = gs.splu(small, engine="supernodal"), replace_core(rhs(40))
    factor.refactor(harder(small).data)
    factor.solve(b)
    assert factor.stats.n_repivoted > 0
    with pytest.raises(RuntimeError, match="left to the CPU engine"):
        factor.solve(b, check="later")
    x = factor.refactor_solve(replace_core(small.data), b, check="later")
    assert factor.check() < 100 * EPS["d"]
    assert backward_error(small, np.asarray(x), np.asarray(b)) < 100 * EPS["d"]


def test_values_on_the_device_take_the_place_of_lost_ones(factor):
    factor.refactor(replace_core(0 * A.data), check="later")
    with pytest.raises(RuntimeError, match="singular"):
        factor.check()
    factor.refactor(replace_core(A.data))
    assert backward_error(A, factor.solve(B), B) < 100 * EPS["d"]
