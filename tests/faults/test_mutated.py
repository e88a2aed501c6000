"""Mutated pickles and matrix files: an object that works, or one line that says why not."""

import pytest

from tests.faults.batches import run_batch


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "count", "more_than"),
    [("pickles", 3000, {"works": 100, "ValueError": 100}), ("files", 40, {"works": 0, "CommandError": 10})],
)
def test_mutated(kind, count, more_than):
    outcomes, failure = run_batch(kind, 0, count)
    assert not failure, failure
    assert all(outcomes[name] > least for name, least in more_than.items()), outcomes
    assert not outcomes["several lines"]
