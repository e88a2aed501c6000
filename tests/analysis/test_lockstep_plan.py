"""The plan of systems in lockstep: its tasks, its arguments, and the constants that it is made with."""

import numpy as np
import pytest

from gpusplu import _core, gallery
from gpusplu.cost.calibration import for_core
from gpusplu.cuda.layout import struct
from gpusplu.engines.supernodal.lockstep import for_lanes
from support.small_matrices import canonical, random_matrix

FRONT, TASK = (struct("shared/lockstep.hpp", name) for name in ("LockstepFront", "LockstepTask"))


@pytest.mark.parametrize("grain", [0, 30, 1000, 1e9])
def test_tasks_are_a_forest_of_the_fronts(grain):
    A = random_matrix(300, density=0.01)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    analysis = _core.analyze_candidates(ptr, ind, A.data, for_core(), method="front")[0]
    plan = _core.make_lockstep_plan(analysis, ptr, ind, for_core(), grain=grain)
    fronts, tasks = plan.fronts.view(FRONT), plan.tasks.view(TASK)
    np.testing.assert_array_equal(tasks["first"], [0, *(tasks["last"][:-1] + 1)])
    assert tasks["last"][-1] == plan.nf - 1 and tasks["work"].sum() == pytest.approx(plan.work)
    task_of = np.repeat(np.arange(tasks.size), tasks["last"] - tasks["first"] + 1)
    for t, task in enumerate(tasks):
        above = fronts[task["last"]]["parent"]
        assert task["parent"] == (task_of[above] if above >= 0 else -1)
        below = np.flatnonzero(tasks["parent"] == t)
        assert task["children"] == below.size
        assert task["level"] == (tasks["level"][below].max() + 1 if below.size else 0)
        assert grain == 0 or task["first"] == task["last"] or task["work"] <= grain
        if grain:  # a subtree: all its fronts but the last have their parents in it
            assert (fronts["parent"][task["first"] : task["last"]] <= task["last"]).all()


def test_what_has_no_plan():
    A = random_matrix(20)
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    columns = _core.analyze(ptr, ind, A.data, for_core(), method="column")
    with pytest.raises(ValueError, match="'front'"):
        _core.make_lockstep_plan(columns, ptr, ind, for_core())
    fronts = _core.analyze_candidates(ptr, ind, A.data, for_core(), method="front")[0]
    with pytest.raises(ValueError, match="grain"):
        _core.make_lockstep_plan(fronts, ptr, ind, for_core(), grain=-1.0)


def test_a_device_merges_more_than_a_processor():
    """By constants of its own: those of the processor may be fitted to it."""
    A = canonical(gallery.named("rlc:20x20"))
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    analysis = _core.analyze_candidates(ptr, ind, A.data, for_core(), method="front")[0]
    plans = [_core.make_lockstep_plan(analysis, ptr, ind, costs) for costs in (for_core(), for_lanes())]
    assert plans[0].nf > plans[1].nf
    assert plans[0].factor_size < plans[1].factor_size
