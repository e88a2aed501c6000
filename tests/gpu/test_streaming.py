"""Factors larger than the device memory allowed: the same bits, from page-locked and from pageable memory."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import devices
from support.solves import check_same_answers
from support.streaming import limit_between

pytestmark = pytest.mark.gpu

CASES = [("convdiff:20", gs.splu), ("elast:10x10x10", gs.cholesky), ("poisson:24x24x24", gs.cholesky)]


def pageable(self, nbytes):
    memory = np.empty(nbytes, np.uint8)
    return devices.Buffer(memory, memory.ctypes.data, nbytes)


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "pageable"])
@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize(("name", "factorize"), CASES, ids=[case[0] for case in CASES])
def test_streaming(cupy, monkeypatch, name, factorize, share, locked):
    if not locked:
        monkeypatch.setattr(devices.Device, "host", pageable)
    A = gallery.named(name)
    whole = factorize(A, engine="supernodal")
    limit = limit_between(whole.symbolic, share)
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    factor = factorize(A, engine="supernodal", device_memory=limit)
    assert factor.stats.n_windows > 1 and "streaming" in factor.explain()
    check_same_answers(whole, factor, A, (1.0, 3.0, 2.0), (9,), lambda b: cupy.asarray(np.asfortranarray(b)))
    del whole
    assert pool.used_bytes() - before < limit
