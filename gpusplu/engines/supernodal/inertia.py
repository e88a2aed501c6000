"""Where the inverted diagonal blocks of LDL^T lie in a factor of fronts, for the kernel that counts their signs."""

from __future__ import annotations

import numpy as np

from ...cuda.layout import constant, struct
from .plan import SHARED, Plan

PANEL = constant(SHARED, "PANEL")
BLOCK = struct("shared/inertia.hpp", "InertiaBlock")


def diagonal_blocks(plan: Plan) -> np.ndarray:
    """Type BLOCK: panels of fronts of phases 0 to 2, tiles of those of phase 3."""
    width, rows = (np.asarray(of, dtype=np.int64) for of in (plan.width, plan.rows))
    large, tile = np.asarray(plan.phase) == 3, int(plan.large_tile)
    size = np.where(large, tile, PANEL)
    count = -(-width // size)
    front = np.repeat(np.arange(plan.nf), count)
    k = np.arange(len(front)) - np.repeat(np.cumsum(count) - count, count)  # of the front's blocks
    height = rows - width
    panels = 2 * width * (width + width % 2 + height + height % 2)  # ahead of the tiles
    found = np.zeros(len(front), BLOCK)
    found["ld"] = np.where(large, tile, rows)[front]
    step = np.where(large, tile * tile, PANEL * (rows + 1))
    found["at"] = (np.asarray(plan.factor_offset) + np.where(large, panels, 0))[front] + k * step[front]
    found["order"] = np.minimum(size[front], width[front] - k * size[front])
    return found
