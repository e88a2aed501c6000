"""Mutated pickles and matrix files: an object that works, or one line that says why not."""

import pytest

from tests.faults.batches import run_batch


@pytest.mark.thorough
def test_mutated_pickles():
    outcomes, failure = run_batch("pickles", 0, 3000)
    assert not failure, failure
    assert outcomes["works"] > 100
    assert outcomes["ValueError"] > 100


@pytest.mark.thorough
def test_mutated_files():
    outcomes, failure = run_batch("files", 0, 40)
    assert not failure, failure
    assert outcomes["works"] > 0
    assert not outcomes["several lines"]
    assert outcomes["CommandError"] > 10
