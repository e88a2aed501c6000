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
