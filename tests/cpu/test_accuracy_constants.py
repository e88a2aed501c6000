"""common/accuracy.py has the constants of the core's accuracy policy."""

import numpy as np
import pytest

from gpusplu import _core
from gpusplu.common import accuracy


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
