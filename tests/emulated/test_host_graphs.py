"""Values and vectors of the host on an emulated device: every call is one graph with the copies in it."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines.device import program
from gpusplu.engines.supernodal.fronts import Fronts
from support.accuracy_policy import measure_first
from support.emulated_device import memory_at
from support.small_matrices import EPS, canonical, rhs


@pytest.fixture
def system(device):
    A = canonical(gallery.rlc_mesh(6, 6))
    return A, gs.splu(A, engine="supernodal"), rhs(A.shape[0])


def cost(device, function):
    """What a call returns, and what it asked of the device beside what its graph does."""
    function()  # records
    device.counts.clear()
    result = function()
    return result, device.counts


def test_a_recording_runs_its_commands_once(device, monkeypatch):
    ran, factor = [], Fronts.factor
    monkeypatch.setattr(Fronts, "factor", lambda *arguments: (ran.append("factor"), factor(*arguments))[1])
    A = canonical(gallery.rlc_mesh(6, 6))
    lu = gs.splu(A, engine="supernodal")
    assert len(ran) == 1  # the first is not recorded
    lu.refactor(2 * A.data)
    assert len(ran) == 2
    lu.refactor(3 * A.data)
    assert len(ran) == 2  # replayed


@pytest.mark.parametrize("trans", ["N", "T"])
def test_a_call_is_one_graph(device, system, trans):
    A, factor, b = system
    values = 1.5 * A.data
    assert cost(device, lambda: factor.refactor(values))[1] == {"replay": 1, "synchronize": 1}
    x, counts = cost(device, lambda: factor.solve(b, trans))
    assert counts == {"replay": 1, "synchronize": 1}
    both, counts = cost(device, lambda: factor.refactor_solve(values, b, trans))
    assert counts == {"replay": 1, "synchronize": 1}
    assert type(both) is np.ndarray and both.flags.owndata
    np.testing.assert_array_equal(both, x)
    scaled = 1.5 * (A.T if trans == "T" else A)
    assert backward_error(sp.csc_array(scaled), x, b) < 10 * EPS["d"]


@pytest.mark.parametrize("refine", ["auto", "never"])
def test_answers_are_of_the_values_and_the_right_hand_side_given(device, refine):
    A = canonical(gallery.rlc_mesh(6, 6))
    factor = gs.splu(A, engine="supernodal", refine=refine)
    for scale in (1.0, 2.0, 3.0):
        for b in (rhs(A.shape[0]), scale * np.ones(A.shape[0])):
            x = factor.refactor_solve(scale * A.data, b)
            assert backward_error(scale * A, x, b) < 1e3 * EPS["d"]
    assert factor.stats.n_refactor == 6


def test_values_in_the_order_of_the_caller(device):
    A = canonical(gallery.rlc_mesh(6, 6))
    order = np.concatenate([np.arange(*A.indptr[j : j + 2])[::-1] for j in range(A.shape[1])])
    given = sp.csc_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)
    factor, b = gs.splu(given, engine="supernodal"), rhs(A.shape[0])
    for scale in (2.0, 0.5):
        assert backward_error(scale * A, factor.refactor_solve(scale * given.data, b), b) < 10 * EPS["d"]


def test_one_triangle_of_a_definite_matrix(device):
    K = canonical(gallery.poisson(6, 6))
    lower = sp.csc_array(sp.tril(K))
    factor, b = gs.cholesky(lower, engine="supernodal"), rhs(36)
    for scale in (2.0, 0.5):
        assert backward_error(scale * K, factor.refactor_solve(scale * lower.data, b), b) < 10 * EPS["d"]


@pytest.mark.parametrize("dtype", "dD")
def test_column_engines_take_them_the_same_way(device, dtype):
    A = canonical(gallery.rlc_mesh(5, 5)).astype(dtype)
    factor, b = gs.splu(A, engine="sflu"), rhs(A.shape[0]).astype(dtype)
    for scale in (2.0, 0.5):
        assert backward_error(scale * A, factor.refactor_solve(scale * A.data, b), b) < 10 * EPS["d"]
    _, counts = cost(device, lambda: factor.refactor_solve(A.data, b))
    assert counts == {"replay": 1, "synchronize": 1}


def test_what_is_not_finite_leaves_the_factor_as_it_was(system):
    A, factor, b = system
    expected = factor.refactor_solve(2 * A.data, b)
    factor.refactor_solve(2 * A.data, b)
    bad = A.data.copy()
    bad[7] = np.inf
    with pytest.raises(gs.NonFiniteError, match="inf"):
        factor.refactor_solve(bad, b)
    np.testing.assert_array_equal(factor.solve(b), expected)


def test_refined_solutions_come_back(system, monkeypatch):
    A, factor, b = system
    measure_first(monkeypatch, 1.0, 1.0)  # when it is looked at, and by the ladder
    x = factor.refactor_solve(A.data, b)
    assert factor.stats.n_refinement > 0
    assert backward_error(A, x, b) < 2 * EPS["d"]
    vector = factor._core._recorded.buffers.vectors(1).x
    np.testing.assert_array_equal(x, memory_at(vector.pointer, vector.nbytes).view(float))


def test_large_arrays_take_the_detour(system, monkeypatch):
    A, factor, b = system
    expected = factor.refactor_solve(2 * A.data, b)
    monkeypatch.setattr(program, "STAGED", 8)
    factor = gs.splu(A, engine="supernodal")
    for _ in range(2):
        np.testing.assert_array_equal(factor.refactor_solve(2 * A.data, b), expected)
    factor.refactor(A.data)
    assert backward_error(A, factor.solve(b), b) < 10 * EPS["d"]


def test_status_has_the_members_of_the_struct():
    assert program.Status._fields == program.STATUS.names
