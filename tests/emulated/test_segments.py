"""The supernodal GPU engine with its fronts cut into segments, on an emulated device: memory of blocks is shared."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.timing import backward_error
from gpusplu.cuda import devices
from gpusplu.engines.supernodal import memory as front_memory
from gpusplu.engines.supernodal.fronts import dependent_launches
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support.emulated_device import EmulatedDevice, memory_at
from support.small_matrices import EPS, canonical, rhs


@pytest.mark.parametrize("make", [gs.splu, gs.cholesky])
def test_segments(monkeypatch, make):
    monkeypatch.setattr(devices, "open_device", lambda which=None: EmulatedDevice())
    plans = []

    def small_blocks(cores, pattern, dtype, limits, **parameters):
        limits = Limits(limits.shared_memory_bytes, limits.multiprocessors, limits.arch, block_bytes=1)
        plans.append(make_plan(cores[0], pattern, dtype, limits, warp_rows=8, block_rows=16, **parameters))
        return cores[0], plans[-1], [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", small_blocks)
    A = canonical(gallery.poisson(20, 20))
    factor = make(A, engine="supernodal", ordering="nd")
    (plan,) = plans
    assert len(plan.segment_ptr) > 3
    assert sum(plan.launches["phase"] == 3) > 1
    b = rhs(A.shape[0])
    first = np.isin(np.arange(len(plan.launches)), plan.launch_ptr)  # of a segment: it waits for all before
    np.testing.assert_array_equal(dependent_launches(plan), ~first)
    for scale in (1, 3):  # the counters of the large fronts live on from one to the next
        A.data *= scale
        factor.refactor(A.data)
        assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]


def test_large_fronts_only(monkeypatch):
    """Then it is they who count the solves, which packets are told apart by."""
    monkeypatch.setattr(devices, "open_device", lambda which=None: EmulatedDevice(seed=1))
    plans = []

    def all_large(cores, pattern, dtype, limits):
        plans.append(make_plan(cores[0], pattern, dtype, limits, warp_rows=8, block_rows=16))
        return cores[0], plans[-1], [0.0] * len(cores)

    monkeypatch.setattr(front_memory, "make_best_plan", all_large)
    leaves, size, above = 3, 100, 50
    block = sp.kron(sp.eye_array(leaves), np.ones((size, size)))
    border = np.ones((leaves * size, above))
    A = sp.block_array([[block, border], [border.T, np.ones((above, above))]], format="csc")
    A.data = np.random.default_rng(3).normal(size=A.nnz)
    A = canonical(A + A.shape[0] * sp.eye_array(A.shape[0]))
    factor = gs.splu(A, engine="supernodal", ordering="natural")
    assert (plans[-1].phase == 3).all() and plans[-1].nf > 2
    for seed in range(3):
        b = rhs(A.shape[0], seed=seed)
        assert backward_error(A, factor.solve(b), b) < 100 * EPS["d"]
        assert factor.stats.n_refinement == factor.stats.n_repivoted == 0
    counters = factor._core._recorded.buffers.vectors(1).own["counters"]
    assert memory_at(counters.pointer, 4).view(np.uint32)[0] == 3
