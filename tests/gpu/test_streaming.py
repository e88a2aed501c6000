"""Factors larger than the device memory allowed: the same bits, from page-locked and from pageable memory."""

from dataclasses import replace

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cuda import devices
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.plan import make_plan

pytestmark = pytest.mark.gpu

CASES = [("convdiff:20", gs.splu), ("elast:10x10x10", gs.cholesky), ("poisson:24x24x24", gs.cholesky)]


def limit_for(A, cholesky, share):
    """Bytes between the least that the factor can do with (share 0) and what it takes (1)."""
    symbolic = gs.analyze(A, cholesky=cholesky, engine="supernodal")
    plan, pattern = symbolic.parts()[1].plan, symbolic.parts()[0].pattern
    least = make_plan(symbolic.parts()[1].core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1))
    few = front_memory.needed_bytes(least, pattern) + front_memory.all_vector_bytes(least, 4)
    return int(few + share * (front_memory.needed_bytes(plan, pattern) - few))


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
    limit = limit_for(A, factorize is gs.cholesky, share)
    whole = factorize(A, engine="supernodal")
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    factor = factorize(A, engine="supernodal", device_memory=limit)
    assert factor.stats.n_windows > 1 and "streaming" in factor.explain()
    rng = np.random.default_rng(0)
    b, many = cupy.asarray(rng.normal(size=A.shape[0])), cupy.asarray(rng.normal(size=(A.shape[0], 9)), order="F")
    for scale in (1.0, 3.0, 2.0):
        values = cupy.asarray(scale * A.data)
        for each in (whole, factor):
            each.refactor(values)
        for trans in "NTH":
            assert (factor.solve(b, trans) == whole.solve(b, trans)).all()
        assert (factor.solve(many) == whole.solve(many)).all()
        assert (factor.refactor_solve(values, b) == whole.refactor_solve(values, b)).all()
    del whole
    assert pool.used_bytes() - before < limit
