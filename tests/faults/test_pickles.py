"""Mutated pickles: no crash, no hang, no wrong answer."""

import pytest

from tests.faults.batches import run_batch


@pytest.mark.thorough
def test_mutated_pickles():
    outcomes, failure = run_batch("pickles", 0, 3000)
    assert not failure, failure
    assert outcomes["works"] > 100
    assert outcomes["ValueError"] > 100
