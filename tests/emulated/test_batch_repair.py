"""Systems of a batch that need pivots of their own, on an emulated device: what they cost, and that they are right."""

import numpy as np
import pytest

import gpusplu as gs
from support import suspects
from support.lockstep import right_hand_sides
from support.small_matrices import EPS, dtypes


@pytest.fixture(params=["device", "host"])
def put(request, cupy, device):
    return cupy.asarray if request.param == "device" else np.asarray


@pytest.mark.parametrize("dtype", dtypes("dF"))
def test_suspect_systems_are_accurate(put, dtype):
    suspects.check_calls(put, dtype)


def test_systems_come_and_go(put):
    """Those that need their own pivots are others in each call."""
    suspects.check_changes(put)


def test_calls_between(put):
    """Determinants, entries of inverses and solves, while own factors are kept from earlier values."""
    suspects.check_other_results(put)


def test_singular_and_not_finite(put):
    suspects.check_failures(put)


def test_waits_do_not_grow_with_the_number_of_suspect_systems(cupy, device):
    """From the second call on: nothing is allocated, and the host waits as often for ten systems as for one."""
    A, b, waits = suspects.circuit("d"), None, []
    for bad in (1, 10):
        values = cupy.asarray(suspects.systems(A, 64, range(3, 3 + 6 * bad, 6)))
        b = cupy.asarray(right_hand_sides(A, 64))
        batch = gs.splu_batch(A, values, engine="supernodal")
        batch.refactor_solve(values, b)
        batch.refactor_solve(values, b)
        device.counts.clear()
        batch.refactor_solve(values, b)
        assert (batch.status == gs.BatchStatus.REPIVOTED).sum() == bad
        waits.append(device.counts["synchronize"])
        assert "allocate" not in device.counts
    assert waits[0] == waits[1]
    assert device.counts["copy_systems"] == 1


def test_a_batch_with_calls_that_nobody_waits_for(cupy, device):
    A = suspects.circuit("d")
    values, b = cupy.asarray(suspects.systems(A, 8, [2, 5])), cupy.asarray(right_hand_sides(A, 8))
    batch = gs.splu_batch(A, values, engine="supernodal")
    batch.solve(b)
    batch.refactor_solve(cupy.asarray(suspects.systems(A, 8, [5, 6], seed=4)), b, check="later")
    x = batch.solve(b)
    suspects.check_solutions(A, suspects.systems(A, 8, [5, 6], seed=4), b, x)
    assert set(np.flatnonzero(batch.status == gs.BatchStatus.REPIVOTED)) <= {5, 6}
    assert (batch.backward_error < 10 * EPS["d"]).all()
