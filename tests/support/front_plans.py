"""Plans of the supernodal engine for small matrices, deals of their fronts to devices, and their memory."""

from dataclasses import replace

import numpy as np

from gpusplu.engines.supernodal import memory
from gpusplu.engines.supernodal.front_mapping import FrontMapping, Fronts, Turn, place_of
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support.analyses import analyze

# Caps that put small matrices into all phases.
PARAMETERS = {
    "default": {},
    "small": {"warp_rows": 4, "small_rows": 12, "block_rows": 24, "large_tile": 8},
    "block": {"warp_rows": 2, "block_rows": 16, "large_tile": 4},
    "large": {"warp_rows": 0, "block_rows": 1, "large_tile": 16},
    "segments": {"warp_rows": 3, "block_rows": 10, "large_tile": 16, "block_bytes": 1},
}

# Limits of the classes of fronts that put small matrices into every phase.
PHASES = {
    "block": {"warp_rows": 4, "small_rows": 0, "block_rows": 240},
    "small": {"warp_rows": 4, "small_rows": 16, "block_rows": 240},
    "large": {"warp_rows": 0, "block_rows": -1},
    "mixed": {"warp_rows": 4, "small_rows": 8, "block_rows": 12},
}


class Pattern:
    """As planners take it."""

    def __init__(self, A):
        self.ptr, self.ind = A.indptr.astype(np.int64), A.indices.astype(np.int32)


def plan_of(
    A,
    cholesky=False,
    ordering="auto",
    multiprocessors=Limits.multiprocessors,
    block_bytes=0,
    memory_bytes=0,
    **parameters,
):
    pattern = Pattern(A)
    symbolic = analyze(pattern.ptr, pattern.ind, A.data, cholesky=cholesky, ordering=ordering, method="front")
    limits = Limits(multiprocessors=multiprocessors, block_bytes=block_bytes, memory_bytes=memory_bytes)
    return make_plan(symbolic, pattern, A.dtype, limits, **parameters)


def pieces(plan, f):
    """Names, offsets in the factor arena and shapes of what front f stores (core/plan/fronts/plan.hpp)."""
    W, R = int(plan.width[f]), int(plan.rows[f])
    H = R - W
    if plan.phase[f] < 3:
        shapes = {"lower": (R, W), "upper": (W, H)}
        if plan.cholesky:
            del shapes["upper"]
    else:
        tall, below, tile = W + W % 2, H + H % 2, plan.large_tile
        shapes = {"lower11": (tall, W), "lower21": (below, W), "upper11": (tall, W), "upper21": (below, W)}
        if plan.cholesky:
            del shapes["upper11"], shapes["upper21"]
        shapes["inverse"] = (tile, tile * -(-W // tile))
    at, out = int(plan.factor_offset[f]), {}
    for name, (rows, columns) in shapes.items():
        out[name] = (at, rows, columns)
        at += rows * columns
    return out


def block_view(plan, blocks, f):
    """The contribution block of front f, column by column."""
    H = int(plan.rows[f] - plan.width[f])
    ld = H if plan.phase[f] < 3 else H + H % 2
    at = int(plan.block_offset[f])
    return blocks[at : at + ld * H].reshape(H, ld).T[:H]


def random_deal(plan, devices, cuts, seed, shared=0.0, chunks=(1, 2, 3)):
    """A deal that no search would find.

    Pieces that are cut as often as that go to random devices, in a random order; large fronts that are pieces of their
    own are shared with that probability, by all devices or all but one, in stages of one of `chunks`; devices then have
    random speeds.
    """
    rng, fronts = np.random.default_rng(seed), Fronts(plan)
    branches = fronts.trees()
    for _ in range(cuts):
        able = [branch for branch in branches if fronts.can_cut(branch)]
        if not able:
            break
        chosen = able[rng.integers(len(able))]
        branches.remove(chosen)
        branches += fronts.cut(chosen, rng.choice([0.0, chosen.seconds / 3]))
    branches.sort()
    begins = [branch.begin for branch in branches]
    above = [{place_of(begins, int(fronts.parent[root])) for root in branch.roots} - {-1} for branch in branches]
    waiting = np.zeros(len(branches), int)
    for ups in above:
        for up in ups:
            waiting[up] += 1
    turns, ready = [], [k for k in range(len(branches)) if not waiting[k]]
    while ready:
        k = ready.pop(rng.integers(len(ready)))
        chunk = int(rng.choice(chunks)) if fronts.can_share(branches[k]) and rng.random() < shared else 0
        count = int(rng.integers(max(2, devices - 1), devices + 1)) if chunk else 1
        group = tuple(sorted(rng.permutation(devices)[:count].tolist()))
        home, begin = int(rng.choice(group)), float(len(turns))
        turns.append(Turn(branches[k], home, begin, begin + 1, group if chunk else (), chunk))
        for up in above[k]:
            waiting[up] -= 1
            if not waiting[up]:
                ready.append(up)
    assert len(turns) == len(branches)
    speeds = rng.uniform(0.5, 2.0, devices) if shared else np.ones(devices)
    return FrontMapping(tuple(turns), 1.0, 1.0, 0, tuple(speeds.tolist()))


def limit_between(symbolic, share, plan=None, **parameters):
    """Bytes between the least that a factor can do with (share 0) and what it takes (1).

    `parameters` are those that the plan was made with; `plan`: if it is not the one of the analysis.
    """
    problem, analysis = symbolic.parts()
    pattern, plan = problem.pattern, plan or analysis.plan
    least = make_plan(analysis.core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1), **parameters)
    most = memory.needed_bytes(plan, pattern)
    few = memory.needed_bytes(least, pattern) + memory.all_vector_bytes(least, 4)
    assert few < most
    return int(few + share * (most - few))
