"""Several devices, on a machine of one: it stands for each, with streams, memory and a part of the fronts of its own.

What that cannot show is how fast copies from one device to another are, and that memory of another device is meant.
"""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import devices, several
from gpusplu.engines.supernodal import shared_memory
from gpusplu.patterns import STORE
from support.deals import random_deal
from support.small_matrices import phased

pytestmark = pytest.mark.gpu

COUNT = 3


class Stand(devices.Device):
    """One of several that the device stands for."""

    def reaches(self, other):
        return True


@pytest.fixture
def stands(cupy, monkeypatch):
    """`device=[...]` of any numbers: as many devices; pieces go to random ones, and large fronts that are pieces are
    shared. The plans that are made."""
    plans, share_plan = [], shared_memory.share_plan

    def dealt(plan, speeds, memory, link, **options):
        return random_deal(plan, len(speeds), 40, 1, shared=1.0)

    def shared_plan(*arguments):
        plans.append(share_plan(*arguments))
        return plans[-1]

    opened = tuple(Stand(0) for _ in range(COUNT))
    monkeypatch.setattr(several, "open_devices", lambda which: opened[: len(which)])
    monkeypatch.setattr(shared_memory, "deal", dealt)
    monkeypatch.setattr(shared_memory, "share_plan", shared_plan)
    STORE.clear()
    yield plans
    STORE.clear()


CASES = [(gs.cholesky, "d"), (gs.cholesky, "F"), (gs.splu, "d"), (gs.splu, "D"), (gs.ldlt, "d"), (gs.ldlt, "f")]


@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_same_bits_as_alone(stands, make, dtype):
    A = phased(gallery.named("elast:16x16x16"), dtype, hermitian=True)
    b = np.random.default_rng(0).standard_normal(A.shape[0]).astype(dtype)

    def answers(device):
        factor = make(A, engine="supernodal", device=device)
        found = [factor.solve(b), factor.solve(b, "T")]
        for scale in (2, 3, 5):  # recorded once, replayed later
            factor.refactor(A.data * scale)
            found.append(factor.solve(b))
        return found

    alone = answers(0)
    STORE.clear()
    together = answers(list(range(COUNT)))
    assert stands[-1].tiles, "no front is shared"
    for found, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, wanted)
