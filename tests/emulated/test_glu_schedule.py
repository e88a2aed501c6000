"""Launches of the glu engine: every update once, behind what it reads, and none that two blocks do at the same time."""

import numpy as np
import pytest

from gpusplu.common.matrix import canonicalize, read_matrix
from gpusplu.cost.calibration import for_core
from gpusplu.cuda.layout import struct
from gpusplu.engines.columns.plan import make_column_plan
from gpusplu.engines.glu.program import MODES, RUN, SHARED
from support import column_reference as reference

CHAIN, STEP, UPDATE = (struct(SHARED, name) for name in ("GluChain", "GluStep", "GluUpdate"))
PIECE, TASK = (struct(SHARED, name) for name in ("GluChunk", "GluTask"))


class Schedule:
    """A plan of a random matrix and its schedule, with the arrays' types."""

    def __init__(self, n, density, mode=None, seed=0, symmetric=False, **options):
        A, expected = reference.random_columns(n, density, seed=seed, symmetric=symmetric)
        perms = expected.row_perm.astype(np.int32), expected.col_perm.astype(np.int32)
        self.plan = plan = make_column_plan(canonicalize(read_matrix(A))[0], *perms, **options)
        core = plan.glu_schedule(for_core(), MODES.index(mode) if mode else -1)
        self.tasks, self.chunks = core.tasks.view(TASK), core.chunks.view(PIECE)
        self.chains, self.steps = core.chains.view(CHAIN), core.steps.view(STEP)
        self.flat, self.runs, self.places = core.updates.view(UPDATE), core.runs.view(RUN), core.places
        self.laid_out()
        self.level_chunk, self.predicted_seconds = core.level_chunk, core.predicted_seconds
        self.column = np.repeat(np.arange(n), np.diff(plan.col_ptr))
        self.below = plan.col_ptr[1:] - plan.diag - 1

    def laid_out(self):
        """Updates, by places."""
        self.target, self.lower, self.upper = (np.zeros(len(self.flat), int) for _ in range(3))
        self.pivot = np.zeros(len(self.steps), int)
        for chain in self.chains:
            own = self.places[chain["places_begin"] : chain["places_end"]]
            for s in range(chain["begin"], chain["end"]):
                begin, middle, end = (self.steps[name][s] for name in ("begin", "middle", "end"))
                self.pivot[s] = own[self.steps["pivot"][s]]
                self.lower[begin:end] = own[self.flat["lower"][begin:end]]
                self.upper[begin:end] = own[self.flat["upper"][begin:end]]
                self.target[begin:middle] = own[self.flat["target"][begin:middle]]
                self.target[middle:end] = self.flat["target"][middle:end]

    def of_task(self, task):
        """(source column, updated column, places of its targets)."""
        source, k = self.column[task["pivot"]], self.column[task["upper"]]
        rows = self.plan.row[self.plan.col_ptr[k] : self.plan.col_ptr[k + 1]]
        lower = self.plan.row[task["pivot"] + 1 : task["pivot"] + 1 + task["count"]]
        return source, k, self.plan.col_ptr[k] + np.searchsorted(rows, lower)

    def work(self):
        """(run, block or piece, step, source, place of U, places of targets) in the order of the launches."""
        for number, run in enumerate(self.runs):
            for at in range(run["begin"], run["end"]):
                if MODES[run["mode"]] == "pipeline":
                    for s in range(self.chains["begin"][at], self.chains["end"][at]):
                        for u in range(self.steps["begin"][s], self.steps["end"][s]):
                            yield number, at, s, self.column[self.pivot[s]], self.upper[u], [self.target[u]]
                else:
                    for task in self.tasks[self.chunks["begin"][at] : self.chunks["end"][at]]:
                        source, _, targets = self.of_task(task)
                        yield number, at, at, source, task["upper"], targets


CASES = [(1, 1.0, False), (90, 0.04, False), (150, 0.008, False), (150, 0.008, True), (40, 1.0, False)]


@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize(("n", "density", "symmetric"), CASES)
def test_every_update_once_and_behind_those_that_write_what_it_reads(n, density, symmetric, mode):
    s = Schedule(n, density, mode, symmetric=symmetric)
    plan = s.plan
    written = np.zeros(plan.nnz, int)  # updates of every place so far
    wanted = np.zeros(plan.nnz, int)
    for k in range(n):
        for upper in range(plan.col_ptr[k], plan.diag[k]):
            j = plan.row[upper]
            rows = plan.row[plan.col_ptr[k] : plan.col_ptr[k + 1]]
            below = plan.row[plan.diag[j] + 1 : plan.col_ptr[j + 1]]
            wanted[plan.col_ptr[k] + np.searchsorted(rows, below)] += 1
    levels = {}
    for run, _, _, source, upper, targets in s.work():
        assert plan.row[upper] == source
        if MODES[s.runs["mode"][run]] == "pipeline":
            assert written[upper] == wanted[upper]
            assert written[plan.diag[source]] == wanted[plan.diag[source]]
        else:
            assert levels.setdefault(run, plan.level[source]) <= plan.level[source]
            levels[run] = plan.level[source]
        np.add.at(written, targets, 1)
    np.testing.assert_array_equal(written, wanted)


@pytest.mark.parametrize("mode", [None, "pipeline"])
@pytest.mark.parametrize(("n", "density", "symmetric"), CASES)
def test_chains_share_nothing_but_what_they_add_atomically(n, density, symmetric, mode):
    s = Schedule(n, density, mode, symmetric=symmetric)
    np.testing.assert_array_equal(s.plan.row[s.target], s.plan.row[s.lower])
    np.testing.assert_array_equal(s.column[s.target], s.column[s.upper])
    for run in s.runs[s.runs["mode"] == MODES.index("pipeline")]:
        owner = np.full(s.plan.nnz, -1)  # chain that has a place in its shared memory
        shared = []
        for c in range(run["begin"], run["end"]):
            own = s.places[s.chains["places_begin"][c] : s.chains["places_end"][c]]
            assert (owner[own] == -1).all()
            assert len(np.unique(own)) == len(own) <= run["slots"]
            owner[own] = c
            for step in s.steps[s.chains["begin"][c] : s.chains["end"][c]]:
                shared.append(s.target[step["middle"] : step["end"]])
                targets = s.target[step["begin"] : step["end"]]
                assert len(np.unique(targets)) == len(targets)
        assert (owner[np.concatenate(shared)] == -1).all()
        assert run["widest"] in (64, 128, 256, 512, 1024)


def test_batches_wait_for_the_level_before():
    s = Schedule(200, 0.01, "batch")
    assert len(s.runs) == 1
    assert (s.tasks["count"][s.chunks["begin"]] <= 2 << s.chunks["lanes_log2"]).all()
    assert (s.chunks["end"] - s.chunks["begin"] <= 256 >> s.chunks["lanes_log2"]).all()
    before = -1
    for level in range(s.plan.n_levels):
        here = s.chunks[s.level_chunk[level] : s.level_chunk[level + 1]]
        if len(here):
            assert set(here["level"]) == {level}
            assert set(here["wait_level"]) == {before}
            if before >= 0:
                assert set(here["wait_chunks"]) == {s.level_chunk[before + 1] - s.level_chunk[before]}
            before = level


def test_model_cuts_the_tree():
    """Many small subtrees side by side first, and single columns by one block in the end."""
    s = Schedule(1500, 0.0004, seed=3, symmetric=True)
    assert MODES[s.runs["mode"][0]] == MODES[s.runs["mode"][-1]] == "pipeline"
    assert s.runs["end"][0] - s.runs["begin"][0] > 20
    assert s.runs["end"][-1] - s.runs["begin"][-1] == 1
    assert s.predicted_seconds > 0


def test_threads_do_not_matter(threads):
    found = []
    for count in (1, 3):
        threads(count)
        s = Schedule(400, 0.01, seed=4)
        found.append([array.tobytes() for array in (s.tasks, s.chunks, s.chains, s.steps, s.flat, s.places, s.runs)])
    assert found[0] == found[1]
