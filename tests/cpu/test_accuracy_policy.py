"""The rules for what is accurate, refined and re-pivoted, with errors that are made up."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from gpusplu import _core
from gpusplu.common import accuracy

EPS, NAN = float(np.finfo("d").eps), float("nan")


@dataclass
class Script:
    """What is measured of a solution and after every step, and what should come of it."""

    errors: list  # normwise and by rows, in units of the precision
    calls: str  # m: measured, r: measured by rows too, s: a step, b: back to the solution before
    accurate: bool
    sizes: list = field(default_factory=list)  # of the steps, relative to the solution
    pivots: dict = field(default_factory=dict)

    @property
    def steps(self):
        """That are kept."""
        return self.calls.count("s") - self.calls.count("b")

    def report(self):
        return _core.PivotReport(**self.pivots)


PERTURBED, STEEP = {"n_perturbed": 1}, {"max_multiplier": 1e9}


SCRIPTS = {
    "accurate at once": Script([(8, 0)], "m", True),
    "one step": Script([(50, 0), (3, 0)], "msm", True),
    "a step that does not halve the error is the last": Script([(1000, 0), (600, 0)], "msm", False),
    "a step that makes it worse is undone": Script([(50, 0), (60, 0)], "msmb", True),
    "three steps at most": Script([(1e6, 0), (1e5, 0), (1e4, 0), (1e3, 0)], "msmsmsm", False),
    "not a number": Script([(NAN, 0), (NAN, 0)], "msmb", False),
    "perturbed pivots": Script([(1, 1), (1, 1)], "rsr", True, [1e-9], PERTURBED),
    "steps until they are small": Script([(1, 1), (1, 1), (1, 1)], "rsrsr", True, [1e-3, 1e-9], PERTURBED),
    "the first digit moves": Script([(1, 1)] * 4, "rsrsrsr", False, [0.5] * 3, PERTURBED),
    "the step that is undone was large": Script([(1, 1), (20, 1)], "rsrb", False, [0.5], PERTURBED),
    "rows that no norm shows": Script([(1, 1e9), (1, 9e8)], "rsr", False, [1e-9], PERTURBED),
    "large multipliers": Script([(1, 1), (1, 1)], "rsr", True, [1e-9], STEEP),
    "large multipliers and steps": Script([(1, 1)] * 4, "rsrsrsr", False, [0.5] * 3, STEEP),
}


class Played:
    """A solution of which a script says what is measured; `calls` grows as the ladder asks."""

    def __init__(self, script):
        self.script, self.calls, self.taken = script, "", 0

    def measure(self, by_rows):
        self.calls += "r" if by_rows else "m"
        normwise, rowwise = self.script.errors[self.taken]
        return normwise * EPS, rowwise * EPS

    def step(self, sized):
        assert sized == bool(self.script.sizes)
        self.calls += "s"
        self.taken += 1
        return self.script.sizes[self.taken - 1] if sized else 0.0

    def go_back(self):
        self.calls += "b"


def play(script, policy):
    """On the processor, as the core's factor does."""
    played = Played(script)
    return played, policy.refine(script.report(), played.measure, played.step, played.go_back)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_errors_lead_to_steps(script):
    played, refined = play(script, _core.AccuracyPolicy("d"))
    assert (played.calls, refined.steps, refined.accurate) == (script.calls, script.steps, script.accurate)
    assert refined.accurate_at_start == (max(script.errors[0]) <= 8)
    np.testing.assert_equal(refined.error, script.errors[script.steps][0] * EPS)


@pytest.mark.parametrize("refine", ["auto", "never"])
def test_large_multipliers_need_a_solve_or_other_pivots(refine):
    """Where solves are not measured only other pivots help a factor that is in doubt."""
    policy = _core.AccuracyPolicy("d", refine=refine)
    measured, steep = policy.must_measure(), _core.PivotReport(max_multiplier=1e9)
    assert policy.is_suspect(steep)
    expected = _core.Decision.accept if measured else _core.Decision.solve_known_system
    assert policy.after_factorization(steep, measured) == expected
    assert policy.after_factorization(_core.PivotReport(max_multiplier=1e7), measured) == _core.Decision.accept
    assert policy.after_factorization(_core.PivotReport(n_tiny=1), measured) == _core.Decision.choose_pivots


def test_pivots_without_numbers_are_never_kept():
    policy = _core.AccuracyPolicy("d", pivoting="static")
    assert policy.after_factorization(_core.PivotReport(failed=True), True) == _core.Decision.choose_pivots
    assert policy.after_factorization(_core.PivotReport(n_tiny=1), True) == _core.Decision.accept


def test_constants_are_those_of_the_core():
    assert accuracy.ENOUGH == _core.REFINE_ABOVE
    assert accuracy.MOST_STEPS == _core.MOST_STEPS
    assert accuracy.INERTIA_SAMPLES == _core.INERTIA_SAMPLES
    assert accuracy.CERTAIN_DISTANCE == _core.CERTAIN_DISTANCE


@pytest.mark.parametrize("dtype", "fdFD")
def test_errors_are_accepted_up_to_the_same_bounds(dtype):
    policy, eps = _core.AccuracyPolicy(dtype), float(np.finfo(dtype).eps)
    for bound, holds in ((accuracy.ENOUGH, policy.is_enough), (accuracy.ACCEPTED, policy.is_accurate)):
        assert holds(0.999 * bound * eps)
        assert not holds(1.001 * bound * eps)
