"""The plan of systems in lockstep, carried out by NumPy word for word."""

import numpy as np
import pytest

from gpusplu import _core, gallery
from gpusplu.cost.calibration import for_core
from gpusplu.cuda.layout import struct
from gpusplu.engines.supernodal.lockstep import for_lanes
from support.small_matrices import canonical, random_matrix, spd_matrix

FRONT, TASK = (struct("shared/lockstep.hpp", name) for name in ("LockstepFront", "LockstepTask"))


class Carried:
    """A factorization by a plan: every block lies where the plan has it, in memory that is NaN before."""

    def __init__(self, A, cholesky, grain):
        ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        analysis = _core.analyze_fronts(ptr, ind, A.data, for_core(), cholesky=cholesky)[0]
        self.plan = plan = _core.make_lockstep_plan(analysis, ptr, ind, for_core(), grain=grain)
        self.fronts, self.tasks = plan.front_bytes.view(FRONT), plan.task_bytes.view(TASK)
        self.factor, self.shared = np.full(plan.factor_size, np.nan), np.full(plan.shared_size, np.nan)
        self.values, self.cholesky = A.data, cholesky
        for task in self.tasks:
            self.own = np.full(plan.task_size, np.nan)
            for f in range(task["first"], task["last"] + 1):
                self.eliminate(self.fronts[f])

    def block(self, front):
        H = front["rows"] - front["width"]
        memory = self.shared if front["block_shared"] else self.own
        return memory[front["block"] : front["block"] + H * H].reshape(H, H).T

    def assemble(self, front):
        R, W, plan = int(front["rows"]), int(front["width"]), self.plan
        M, panels = np.zeros((R, R)), np.zeros(R * W + (0 if self.cholesky else W * (R - W)))
        k = slice(front["entry_begin"], front["entry_end"])
        scale = plan.entry_scale[k] if plan.entry_scale.size else 1
        assert np.unique(plan.entry_target[k]).size == plan.entry_target[k].size
        panels[plan.entry_target[k]] = self.values[plan.entry_source[k]] * scale
        M[:, :W] = panels[: R * W].reshape(W, R).T
        if not self.cholesky:
            M[:W, W:] = panels[R * W :].reshape(W, R - W)
        for c in plan.child[front["child_begin"] : front["child_end"]]:
            child = self.fronts[c]
            rows = plan.place[child["below"] :][: child["rows"] - child["width"]].astype(int)
            assert (np.diff(rows) > 0).all() and child["above_pivots"] == (rows < W).sum()
            block = self.block(child)
            M[np.ix_(rows, rows)] += np.tril(block) if self.cholesky else block
        return M

    def eliminate(self, front):
        M, W, R = self.assemble(front), int(front["width"]), int(front["rows"])
        for p in range(W):
            if self.cholesky:
                M[p, p] = np.sqrt(M[p, p])
                M[p + 1 :, p] /= M[p, p]
                M[p + 1 :, p + 1 :] -= np.tril(np.outer(M[p + 1 :, p], M[p + 1 :, p]))
            else:
                M[p + 1 :, p] /= M[p, p]
                M[p + 1 :, p + 1 :] -= np.outer(M[p + 1 :, p], M[p, p + 1 :])
        to = self.factor[front["factor"] :]
        to[: R * W] = M[:, :W].T.ravel()
        if not self.cholesky:
            to[R * W :][: W * (R - W)] = M[:W, W:].ravel()
        if R > W:
            self.block(front)[...] = M[W:, W:]

    def factors(self):
        n = self.plan.n
        L, U = np.zeros((n, n)), np.zeros((n, n))
        for front in self.fronts:
            R, W, first = (int(front[name]) for name in ("rows", "width", "first"))
            rows = [*range(first, first + W), *self.plan.below[front["below"] :][: R - W]]
            panels = self.factor[front["factor"] :]
            lower = panels[: R * W].reshape(W, R).T
            L[np.ix_(rows, rows[:W])] = np.tril(lower)
            if not self.cholesky:
                U[np.ix_(rows[:W], rows[:W])] = np.triu(lower[:W])
                U[np.ix_(rows[:W], rows[W:])] = panels[R * W :][: W * (R - W)].reshape(W, R - W)
        if self.cholesky:
            return L, L.T
        np.fill_diagonal(L, 1)
        return L, U


@pytest.mark.parametrize("grain", [0, 100, 1000, 1e9])
@pytest.mark.parametrize("cholesky", [False, True])
def test_factors_by_the_plan(cholesky, grain):
    A = spd_matrix(60) if cholesky else random_matrix(80, density=0.03)
    carried = Carried(canonical(A), cholesky, grain)
    plan = carried.plan
    L, U = carried.factors()
    rows, columns = (scale if scale.size else np.ones(plan.n) for scale in (plan.row_scale, plan.col_scale))
    B = (A.toarray() * rows[:, None] * columns)[plan.row_perm][:, plan.col_perm]
    np.testing.assert_allclose(L @ U, B, atol=1e-12 * abs(B).max())
    assert plan.tallest == carried.fronts["rows"].max() and plan.work > 0


@pytest.mark.parametrize("grain", [0, 30, 1000, 1e9])
def test_tasks_are_a_forest_of_the_fronts(grain):
    A = random_matrix(300, density=0.01)
    carried = Carried(A, False, grain)
    tasks, fronts = carried.tasks, carried.fronts
    np.testing.assert_array_equal(tasks["first"], [0, *(tasks["last"][:-1] + 1)])
    assert tasks["last"][-1] == carried.plan.nf - 1 and tasks["work"].sum() == pytest.approx(carried.plan.work)
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
    fronts = _core.analyze_fronts(ptr, ind, A.data, for_core())[0]
    with pytest.raises(ValueError, match="grain"):
        _core.make_lockstep_plan(fronts, ptr, ind, for_core(), grain=-1.0)


def test_a_device_merges_more_than_a_processor():
    """By constants of its own: those of the processor may be fitted to it."""
    A = canonical(gallery.named("rlc:20x20"))
    ptr, ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)
    analysis = _core.analyze_fronts(ptr, ind, A.data, for_core())[0]
    plans = [_core.make_lockstep_plan(analysis, ptr, ind, costs) for costs in (for_core(), for_lanes())]
    assert plans[0].nf > plans[1].nf
    assert plans[0].factor_size < plans[1].factor_size
