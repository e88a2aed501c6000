"""Tickets of the solve: every front once, children first."""

import numpy as np
import pytest

from gpusplu import _core, gallery
from gpusplu.cuda.layout import constant, struct
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support.analyses import analyze
from support.front_plans import Pattern

SLOT, SLOTS = struct("shared/solve.hpp", "SolveFront"), constant("shared/solve.hpp", "SOLVE_SLOTS")
TINY, WARP, BLOCK = 0, 1, 2


@pytest.mark.parametrize("multiprocessors", [1, 20])
@pytest.mark.parametrize("name", ["poisson:70x70", "poisson:12x12x12", "power:30x30"])
def test_children_come_first(name, multiprocessors):
    A = gallery.named(name)
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, cholesky=True, method="front")
    plan = make_plan(symbolic, pattern, "d", Limits(multiprocessors=multiprocessors), warp_rows=6)
    slots = _core.make_solve_schedule(plan._core).slot_bytes.view(SLOT).reshape(-1, SLOTS)
    ticket, kind = np.full(plan.nf, -1), np.full(plan.nf, -1)
    for number, records in enumerate(slots):
        fronts = records["front"][records["kind"] >= 0]
        if records["kind"][0] == BLOCK:
            assert (records == records[0]).all()
            fronts = fronts[:1]
        assert (ticket[fronts] == -1).all() and len(set(fronts)) == len(fronts)
        ticket[fronts], kind[fronts] = number, records["kind"][0]
    phase, parent = np.asarray(plan.phase), np.asarray(plan.parent)
    assert ((ticket >= 0) == (phase < 3)).all()
    assert {TINY, WARP, BLOCK} <= set(kind)
    inner = np.flatnonzero((parent >= 0) & (phase < 3) & (phase[np.maximum(parent, 0)] < 3))
    before, after = ticket[inner], ticket[parent[inner]]
    assert ((before < after) | ((before == after) & (kind[inner] != BLOCK))).all()
