"""Systems of a batch that need pivots of their own, on a device, emulated or not: what they cost, and their results."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.timing import backward_error
from support.lockstep import right_hand_sides
from support.small_matrices import EPS, canonical, dtypes, phased
from support.solves import on_host

STATUS = gs.BatchStatus


def circuit(dtype, n=90):
    """Much like a circuit's: a ladder of nodes, weak connections between far ones, one node that many are connected to,
    and a diagonal that is larger than the rest of its row."""
    rng = np.random.default_rng(5)
    far = sp.random_array((n, n), density=0.02, rng=rng)
    hub = sp.coo_array((0.1 * np.ones(n // 3), (np.zeros(n // 3, int), np.arange(0, 3 * (n // 3), 3))), shape=(n, n))
    A = -sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]) - far - hub - hub.T
    A = sp.csc_array(A) + sp.diags_array(abs(A).sum(axis=1) + 0.1)
    return phased(canonical(A), dtype)


def diagonal(A):
    return np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))


def systems(A, count, bad, seed=1):
    """Values near those of A; in the systems `bad` the diagonal is next to nothing, so that other pivots are needed."""
    rng = np.random.default_rng(seed)
    values = (A.data * (1 + 0.05 * rng.random((count, A.nnz)))).astype(A.dtype)
    for k in bad:
        values[k, diagonal(A)] *= 1e-12
    return values


def check_solutions(A, values, b, x, trans="N"):
    for k, (one, right, found) in enumerate(zip(values, on_host(b), on_host(x), strict=True)):
        B = sp.csc_array((one, A.indices, A.indptr), A.shape)
        op = {"N": B, "T": B.T, "H": B.conj().T}[trans]
        assert backward_error(op, found, right) < 10 * EPS[A.dtype.char], k


@pytest.fixture(params=["device", "host"])
def put(request, backend):
    """The host works on these systems while the device works on all."""
    return backend.asarray if request.param == "device" else np.asarray


@pytest.mark.parametrize("dtype", dtypes("dF"))
def test_every_call(put, dtype):
    """Every call that gives solutions, again and again, with one right-hand side or several."""
    A, bad = circuit(dtype), list(range(0, 40, 4))
    values, b = systems(A, 40, bad), right_hand_sides(A, 40)
    several = right_hand_sides(A, 40, (2,))
    batch = gs.splu_batch(A, put(values), engine="supernodal")
    for turn in range(2):
        check_solutions(A, values, b, batch.solve(put(b)))
        assert (np.flatnonzero(batch.status == STATUS.REPIVOTED) == bad).all()
        assert (batch.status <= STATUS.REPIVOTED).all()
        values = systems(A, 40, bad, seed=turn + 7)
        check_solutions(A, values, b, batch.refactor_solve(put(values), put(b), "T"), "T")
        assert (np.flatnonzero(batch.status == STATUS.REPIVOTED) == bad).all()
        assert (batch.backward_error < 10 * EPS[dtype]).all()
        x = on_host(batch.solve(put(several), "H"))
        for k in range(2):
            check_solutions(A, values, several[:, :, k], x[:, :, k], "H")
        values = systems(A, 40, bad, seed=turn + 17)
        batch.refactor(put(values))


def test_systems_come_and_go(put):
    """Those that need their own pivots are others in each call."""
    A, b = circuit("d"), None
    batch = gs.splu_batch(A, put(systems(A, 36, [])), engine="supernodal")
    b = right_hand_sides(A, 36)
    for seed, bad in enumerate(([3], [3, 4, 35], [4], [], [5, 6, 33], list(range(36)), [0])):
        values = systems(A, 36, bad, seed=seed)
        if seed % 3:
            x = batch.refactor_solve(put(values), put(b))
        else:
            batch.refactor(put(values))
            x = batch.solve(put(b))
        check_solutions(A, values, b, x)
        assert (np.flatnonzero(batch.status == STATUS.REPIVOTED) == bad).all()
        fresh = on_host(gs.splu_batch(A, put(values), engine="supernodal").solve(put(b)))
        good = np.setdiff1d(np.arange(36), bad)
        assert np.array_equal(on_host(x)[good], fresh[good])  # to the bit, whatever was suspect before


def test_calls_between(put):
    """Determinants, entries of inverses and solves, while own factors are kept from earlier values."""
    A, bad = circuit("d"), [1, 6]
    batch = gs.splu_batch(A, put(systems(A, 8, bad)), engine="supernodal")
    batch.solve(put(right_hand_sides(A, 8)))
    for which in (bad, [6], [2, 6]):
        values = systems(A, 8, which, seed=3)
        matrices = [sp.csc_array((one, A.indices, A.indptr), A.shape).toarray() for one in values]
        batch.refactor(put(values))
        sign, logs = batch.slogdet()
        expected = [np.linalg.slogdet(M) for M in matrices]
        assert np.array_equal(sign, [one[0] for one in expected])
        np.testing.assert_allclose(logs, [one[1] for one in expected], rtol=1e-9)
        columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        for entries, M in zip(batch.inverse_on_pattern(), matrices, strict=True):
            inverse = np.linalg.inv(M)
            assert abs(entries - inverse[columns, A.indices]).max() < 1e-9 * abs(inverse).max()
        assert np.array_equal(batch.canonical(6), values[6])
        b = right_hand_sides(A, 8)
        check_solutions(A, values, b, batch.solve(put(b)))


def test_singular_and_not_finite(put):
    A, b = circuit("d"), right_hand_sides(circuit("d"), 8)
    batch = gs.splu_batch(A, put(systems(A, 8, [1, 2, 3])), engine="supernodal")
    batch.solve(put(b))
    values = systems(A, 8, [1, 4])
    values[2, A.indptr[7] : A.indptr[8]] = 0
    values[3, 11] = np.nan
    for _ in range(2):
        x = on_host(batch.refactor_solve(put(values), put(b)))
        assert batch.status.tolist() == [0, 2, STATUS.SINGULAR, STATUS.NOT_FINITE, 2, 0, 0, 0]
        assert np.isnan(x[2:4]).all() and np.isnan(batch.backward_error[2:4]).all()
        good = [0, 1, 4, 5, 6, 7]
        check_solutions(A, values[good], b[good], x[good])
    values = systems(A, 8, [2])
    check_solutions(A, values, b, batch.refactor_solve(put(values), put(b)))


def test_waits_do_not_grow_with_the_number_of_suspect_systems(cupy, device):
    """From the second call on: nothing is allocated, and the host waits as often for ten systems as for one."""
    A, b, waits = circuit("d"), None, []
    for bad in (1, 10):
        values = cupy.asarray(systems(A, 64, range(3, 3 + 6 * bad, 6)))
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
    A = circuit("d")
    values, b = cupy.asarray(systems(A, 8, [2, 5])), cupy.asarray(right_hand_sides(A, 8))
    batch = gs.splu_batch(A, values, engine="supernodal")
    batch.solve(b)
    batch.refactor_solve(cupy.asarray(systems(A, 8, [5, 6], seed=4)), b, check="later")
    x = batch.solve(b)
    check_solutions(A, systems(A, 8, [5, 6], seed=4), b, x)
    assert set(np.flatnonzero(batch.status == gs.BatchStatus.REPIVOTED)) <= {5, 6}
    assert (batch.backward_error < 10 * EPS["d"]).all()
