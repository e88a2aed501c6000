"""What calls ask of an emulated device: one graph a call, no copies of known arrays, kernels compiled before."""

import gc

import numpy as np
import pytest

import gpusplu as gs
from faults.forking import child
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda.background import no_collection
from gpusplu.engines.device import buffers
from gpusplu.engines.device.call import DIRECT_GRAPHS, SIGHTINGS
from gpusplu.engines.device.program import COMMON
from support.fake_cupy import aligned
from support.small_matrices import EPS, canonical, rhs

ENGINES = pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])


@ENGINES
@pytest.mark.parametrize("trans", "NT")
def test_a_call_with_arrays_of_the_host_is_one_graph(device, engine, trans):
    A = canonical(gallery.rlc_mesh(6, 6))
    factor, b, values = gs.splu(A, engine=engine), rhs(A.shape[0]), 1.5 * A.data
    for call in (
        lambda: factor.refactor(values),
        lambda: factor.solve(b, trans),
        lambda: factor.refactor_solve(values, b, trans),
    ):
        call()  # records
        device.counts.clear()
        x = call()
        assert device.counts == {"replay": 1, "synchronize": 1}
    assert type(x) is np.ndarray and x.flags.owndata
    assert backward_error(1.5 * canonical(A.T if trans == "T" else A), x, b) < 10 * EPS["d"]


def test_large_arrays_take_the_detour(device, monkeypatch):
    A = canonical(gallery.rlc_mesh(6, 6))
    b = rhs(A.shape[0])
    expected = gs.splu(A, engine="supernodal").refactor_solve(2 * A.data, b)
    monkeypatch.setattr(buffers, "STAGED", 8)
    factor = gs.splu(A, engine="supernodal")
    for _ in range(2):
        np.testing.assert_array_equal(factor.refactor_solve(2 * A.data, b), expected)
    factor.refactor(A.data)
    assert backward_error(A, factor.solve(b), b) < 10 * EPS["d"]


# ---- graphs over the caller's own arrays


class Problem:
    """A factor, and solutions that come to lie where the one before was, as in CuPy's pool."""

    def __init__(self, device, monkeypatch):
        self.A = canonical(gallery.poisson(6, 6))
        self.factor, self.device = gs.splu(self.A, engine="supernodal"), device
        self.x = aligned(np.zeros(36))
        monkeypatch.setattr(device, "array", lambda shape, dtype: self.x)

    def copies(self, call, *arguments):
        before = self.device.counts.get("copy", 0)
        result = np.array(call(*arguments))
        return result, self.device.counts.get("copy", 0) - before


def test_steps_with_the_same_arrays_copy_nothing(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    values, b, copied = aligned(problem.A.data), aligned(rhs(36)), []
    for step in range(SIGHTINGS + 3):
        values[...] = problem.A.data * (1 + step)
        x, count = problem.copies(problem.factor.refactor_solve, values, b)
        assert backward_error(problem.A * (1 + step), x, np.array(b)) < 10 * EPS["d"]
        copied.append(count)
    assert copied[-1] == 0 < copied[0]
    solved = [problem.copies(problem.factor.solve, b) for _ in range(SIGHTINGS + 1)]
    assert solved[-1][1] == 0 < solved[0][1]
    assert all(np.array_equal(x, solved[0][0]) for x, _ in solved)
    values[7] = np.nan
    with pytest.raises(gs.NonFiniteError):
        problem.factor.refactor_solve(values, b)
    np.testing.assert_array_equal(problem.factor.solve(b), solved[0][0])  # the values before


def test_other_arrays_are_copied(device, monkeypatch):
    problem, kept = Problem(device, monkeypatch), []
    for step in range(SIGHTINGS + 2):
        kept.append((aligned(problem.A.data), aligned(rhs(36), offset=8 * (step % 2))))
        x, count = problem.copies(problem.factor.refactor_solve, *kept[-1])
        assert count > 0 and backward_error(problem.A, x, rhs(36)) < 10 * EPS["d"]
    odd = aligned(rhs(36), offset=8)
    assert all(problem.copies(problem.factor.solve, odd)[1] for _ in range(SIGHTINGS + 2))


def test_so_many_graphs_and_no_more(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    arrays = [aligned(rhs(36)) for _ in range(DIRECT_GRAPHS + 2)]
    for b in arrays:
        counts = [problem.copies(problem.factor.solve, b)[1] for _ in range(SIGHTINGS + 1)]
    assert counts[-1] > 0 and problem.copies(problem.factor.solve, arrays[0])[1] == 0


# ---- around launches


def test_nothing_is_collected_and_afterwards_all_is_as_before():
    with no_collection():
        assert not gc.isenabled()
        assert child(gc.isenabled) == "True"
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    first = no_collection()
    with no_collection():
        first.__enter__()
    assert not gc.isenabled()  # a thread that began later is still inside
    first.__exit__(None, None, None)
    assert gc.isenabled()


@ENGINES
@pytest.mark.parametrize("A", [gallery.poisson(6, 6), gallery.elasticity(3, 3, 3)], ids=["poisson", "elasticity"])
def test_kernels_of_a_factorization_and_a_solve_are_compiled_beforehand(device, engine, A):
    """Side by side, where loading them would compile one after the other."""
    factor = gs.splu(canonical(A), engine=engine)
    factor.refactor(canonical(A).data)
    factor.solve(rhs(A.shape[0]))
    assert len(COMMON) < len(device.loaded) and device.loaded <= device.prepared
