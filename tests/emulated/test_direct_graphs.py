"""Graphs over the caller's own arrays on an emulated device: nothing is copied for arrays that come again."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.engines.device.recorded import DIRECT_GRAPHS, SIGHTINGS
from support.accuracy_policy import measure_first
from support.fake_cupy import aligned
from support.small_matrices import EPS, canonical, rhs


class Problem:
    """A factor, and solutions that come to lie where the one before was, as in CuPy's pool."""

    def __init__(self, device, monkeypatch, scale=1.0):
        self.A = canonical(gallery.poisson(6, 6))
        self.factor, self.device = gs.splu(self.A, engine="supernodal"), device
        self.x = aligned(np.zeros(36))
        monkeypatch.setattr(device, "array", lambda shape, dtype: self.x)

    def copies(self, function):
        before = self.device.counts.get("copy", 0)
        result = np.array(function())
        return result, self.device.counts.get("copy", 0) - before


def test_steps_with_the_same_arrays_copy_nothing(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    values, b = aligned(problem.A.data), aligned(rhs(36))
    copied = []
    for step in range(SIGHTINGS + 3):
        values[...] = problem.A.data * (1 + step)
        x, count = problem.copies(lambda: problem.factor.refactor_solve(values, b))
        assert backward_error(problem.A * (1 + step), x, np.array(b)) < 10 * EPS["d"]
        copied.append(count)
    assert copied[-1] == 0 < copied[0]
    solved = [problem.copies(lambda: problem.factor.solve(b)) for _ in range(SIGHTINGS + 1)]
    assert solved[-1][1] == 0 < solved[0][1]
    assert all(np.array_equal(x, solved[0][0]) for x, _ in solved)


def test_other_arrays_are_copied(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    kept, expected = [], None
    for step in range(SIGHTINGS + 2):
        values, b = aligned(problem.A.data), aligned(rhs(36), offset=8 * (step % 2))
        kept.append((values, b))
        x, count = problem.copies(lambda: problem.factor.refactor_solve(values, b))  # noqa: B023
        assert count > 0
        expected = x if expected is None else expected
        np.testing.assert_array_equal(x, expected)
    odd = aligned(rhs(36), offset=8)
    assert all(problem.copies(lambda: problem.factor.solve(odd))[1] for _ in range(SIGHTINGS + 2))


def test_so_many_graphs_and_no_more(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    arrays = [aligned(rhs(36)) for _ in range(DIRECT_GRAPHS + 2)]
    for b in arrays:
        counts = [problem.copies(lambda: problem.factor.solve(b))[1] for _ in range(SIGHTINGS + 1)]  # noqa: B023
    assert counts[-1] > 0
    assert problem.copies(lambda: problem.factor.solve(arrays[0]))[1] == 0


def test_refinement_and_failures_after_a_direct_solve(device, monkeypatch):
    problem = Problem(device, monkeypatch)
    b, values = aligned(rhs(36)), aligned(problem.A.data)
    for _ in range(SIGHTINGS + 1):
        expected = np.array(problem.factor.refactor_solve(values, b))
    b[...] = b[::-1] - 2  # others than those that were copied at first
    expected = np.array(problem.factor.refactor_solve(values, b))
    measure_first(monkeypatch, 1.0, 1.0)  # when it is looked at, and by the ladder
    x = np.array(problem.factor.refactor_solve(values, b))
    assert backward_error(problem.A, x, np.array(b)) < 2 * EPS["d"]
    np.testing.assert_allclose(x, expected, rtol=1e-12)
    values[7] = np.nan
    with pytest.raises(gs.NonFiniteError):
        problem.factor.refactor_solve(values, b)
    np.testing.assert_array_equal(np.array(problem.factor.solve(b)), expected)  # the values before
