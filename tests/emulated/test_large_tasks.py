"""Tasks of large fronts: every tile once, and no task waits for a later one."""

import numpy as np
import pytest

from gpusplu import gallery
from gpusplu.cuda.layout import struct
from support.front_plans import plan_of

FILE = "shared/fronts.hpp"
TASK = struct(FILE, "LargeTask")
CASES = {
    "poisson": lambda: gallery.poisson(90, 80),
    "poisson3": lambda: gallery.poisson(12, 11, 10),
    "convdiff": lambda: gallery.named("convdiff:9x8x7"),
}


def plan_with_large(case, cholesky):
    """A plan of small tiles; for "pairs" of tiles that tasks may take two of, on a small device."""
    if case == "pairs":
        return pairs(cholesky)
    plan = plan_of(CASES[case](), cholesky=cholesky, warp_rows=4, small_rows=0, block_rows=20, large_tile=8)
    assert (plan.phase == 3).any()
    return plan, plan.large_tasks.view(TASK)


def pairs(cholesky):
    A = gallery.elasticity(11, 10, 9)
    plan = plan_of(A, cholesky=cholesky, multiprocessors=1, warp_rows=0, block_rows=-1)
    tasks = plan.large_tasks.view(TASK)
    assert (tasks["tiles"] == 2).sum() > 10
    return plan, tasks


class Tiles:
    """How front f is cut."""

    def __init__(self, plan, f):
        self.width, self.rows, self.size = int(plan.width[f]), int(plan.rows[f]), plan.large_tile
        self.pivots = -(-self.width // self.size)
        self.count = self.pivots + -(-(self.rows - self.width) // self.size)

    def of(self, row):
        row = np.asarray(row, int)
        return np.where(row < self.width, row // self.size, self.pivots + (row - self.width) // self.size)


kinds = pytest.mark.parametrize(
    ("case", "cholesky"),
    [(c, True) for c in ("poisson", "poisson3", "pairs")] + [(c, False) for c in ("poisson3", "convdiff", "pairs")],
)


@kinds
def test_every_tile_once_and_in_order(case, cholesky):
    plan, tasks = plan_with_large(case, cholesky)
    assert set(tasks["tiles"]) <= {1, 2}
    place = {}
    for k, t in enumerate(tasks):
        f, row, col = (int(t[name]) for name in ("front", "row", "col"))
        tiles = Tiles(plan, f)
        if t["tiles"] == 2:  # in the contribution block and below its diagonal, the first one whole
            assert row >= tiles.pivots <= col and (row > col or not cholesky) and row + 1 < tiles.count
        for r in range(row, row + t["tiles"]):
            assert (f, r, col) not in place
            place[f, r, col] = k
    expected = 0
    for f in np.flatnonzero(plan.phase == 3):
        tiles = Tiles(plan, f)
        expected += tiles.count * (tiles.count + 1) // 2 if cholesky else tiles.count**2
    assert expected == len(place)
    last = {}
    for (f, row, col), k in place.items():
        last[f] = max(last.get(f, 0), k)
        pivots = Tiles(plan, f).pivots
        for step in range(min(row, col, pivots)):
            assert place[f, row, step] < k
            assert place[(f, col, step) if cholesky else (f, step, col)] < k
        if min(row, col) < pivots and row > col:
            assert place[f, col, col] < k
    for f in last:
        parent = int(plan.parent[f])
        assert parent < 0 or last[f] < min(k for (g, _, _), k in place.items() if g == parent)


def test_threads_do_not_matter(threads):
    found = []
    for count in (1, 3):
        threads(count)
        found.append(plan_with_large("poisson", True)[0].large_tasks.tobytes())
    assert found[0] == found[1]
