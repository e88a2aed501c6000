"""Launches of the glu engine: every update once, behind what it reads, by the modes that were asked for."""

import column_reference as reference
import numpy as np
import pytest

from gpusplu import _core
from gpusplu.column_plan import make_column_plan
from gpusplu.engines.glu import MODES, PIECE, RUN, STEP, TASK, UPDATE
from gpusplu.matrix import canonicalize, read_matrix


def schedule_of(n, density, mode=None, seed=0, **options):
    A, expected = reference.random_columns(n, density, seed=seed)
    perms = expected.row_perm.astype(np.int32), expected.col_perm.astype(np.int32)
    plan = make_column_plan(canonicalize(read_matrix(A))[0], *perms, **options)
    made = _core.make_glu_schedule(plan._core, MODES.index(mode) if mode else -1)
    return plan, made.task_bytes.view(TASK), made.piece_bytes.view(PIECE), made.run_bytes.view(RUN), made


def work_in_order(runs, pieces, tasks):
    """(run, piece or -1, task) in the order of the launches."""
    for number, run in enumerate(runs):
        if MODES[run["mode"]] == "pipeline":
            yield from ((number, -1, t) for t in range(run["begin"], run["end"]))
        else:
            for p in range(run["begin"], run["end"]):
                yield from ((number, p, t) for t in range(pieces["begin"][p], pieces["end"][p]))


@pytest.mark.parametrize("mode", ["cluster", "batch", "pipeline"])
@pytest.mark.parametrize(("n", "density"), [(1, 1.0), (120, 0.03), (300, 0.004)])
def test_every_update_once_and_in_order_of_levels(n, density, mode):
    plan, tasks, pieces, runs, _ = schedule_of(n, density, mode)
    column = np.repeat(np.arange(n), np.diff(plan.col_ptr))
    below = plan.col_ptr[1:] - plan.diag - 1
    upper = np.flatnonzero((plan.row < column) & (below[plan.row] > 0))
    order = np.array([t for _, _, t in work_in_order(runs, pieces, tasks)], int)
    np.testing.assert_array_equal(np.sort(tasks["upper"][order]), upper)
    assert (np.diff(plan.level[tasks["source"][order]]) >= 0).all()
    np.testing.assert_array_equal(plan.row[tasks["upper"]], tasks["source"])
    np.testing.assert_array_equal(column[tasks["upper"]], tasks["column"])
    np.testing.assert_array_equal(plan.diag[tasks["source"]], tasks["pivot"])
    np.testing.assert_array_equal(below[tasks["source"]], tasks["count"])
    np.testing.assert_array_equal(tasks["upper"] - plan.col_ptr[tasks["column"]], tasks["offset"])


def test_chains_are_laid_out_flat():
    plan, tasks, pieces, runs, made = schedule_of(120, 0.03, "chain")
    updates, steps = made.update_bytes.view(UPDATE), made.step_bytes.view(STEP)
    assert len(tasks) == len(pieces) == 0
    assert (len(runs), runs["begin"][0], runs["end"][0]) == (1, 0, len(steps))
    column = np.repeat(np.arange(120), np.diff(plan.col_ptr))
    target, lower, upper = (updates[name] for name in ("target", "lower", "upper"))
    assert len(updates) == plan.flops == len({*zip(lower.tolist(), upper.tolist(), strict=True)})
    np.testing.assert_array_equal(plan.row[target], plan.row[lower])
    np.testing.assert_array_equal(column[target], column[upper])
    np.testing.assert_array_equal(plan.row[upper], column[lower])
    source = np.repeat(column[steps["pivot"]], steps["end"] - steps["begin"])
    np.testing.assert_array_equal(source, column[lower])
    assert (np.diff(plan.level[source]) >= 0).all()
    np.testing.assert_array_equal(plan.diag[column[steps["pivot"]]], steps["pivot"])


def test_where_updates_land():
    for options in ({}, {"most_mapped": 0}):
        plan, tasks, *_ = schedule_of(100, 0.04, **options)
        number = plan.u_ptr[tasks["column"]] + tasks["offset"]
        wanted = plan.map_ptr[number] if plan.has_maps else plan.col_ptr[tasks["column"] + 1]
        np.testing.assert_array_equal(tasks["map"], wanted)


def test_batches_wait_for_the_level_before():
    plan, tasks, pieces, runs, made = schedule_of(200, 0.01, "batch")
    assert len(runs) == 1
    assert (tasks["count"][pieces["begin"]] <= 2 << pieces["lanes_log2"]).all()
    assert (pieces["end"] - pieces["begin"] <= 256 >> pieces["lanes_log2"]).all()
    before, level_piece = -1, made.level_piece
    for level in range(plan.n_levels):
        here = pieces[level_piece[level] : level_piece[level + 1]]
        if len(here):
            assert set(here["level"]) == {level}
            assert set(here["wait_level"]) == {before}
            if before >= 0:
                assert set(here["wait_pieces"]) == {level_piece[before + 1] - level_piece[before]}
            before = level


def test_pipelines_count_the_updates_of_their_columns():
    plan, tasks, _, runs, _ = schedule_of(150, 0.02, "pipeline")
    applied = np.zeros(plan.n, int)
    for task in tasks:
        assert task["before"] == applied[task["column"]]
        assert task["needed"] == np.sum(tasks["column"] == task["source"])
        applied[task["column"]] += 1
    level = plan.level[tasks["source"]]
    same = level[1:] == level[:-1]
    assert (np.diff(plan.level[tasks["column"]])[same] >= 0).all()  # those first whose columns are needed next


def test_model_prefers_a_chain_for_single_columns_and_several_modes_otherwise():
    dense = schedule_of(60, 1.0)[3]
    assert [MODES[mode] for mode in dense["mode"]] == ["chain"]
    made = schedule_of(600, 0.004, seed=5)
    assert made[4].predicted_seconds > 0
    assert len(made[3]) > 1
