"""Plans of the supernodal engine for small matrices."""

import numpy as np

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
