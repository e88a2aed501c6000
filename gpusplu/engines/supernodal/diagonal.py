"""Positions of the inverted diagonal blocks in a factor of fronts, for kernels that read nothing else."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer, Stream
from ..device.program import Part
from .plan import SHARED as FRONTS
from .plan import Plan

SHARED = "shared/diagonal.hpp"
PANEL, THREADS = constant(FRONTS, "PANEL"), constant(SHARED, "DIAGONAL_THREADS")
BLOCK = struct(SHARED, "DiagonalBlock")


class OverDiagonal(Part):
    """A kernel that reads the diagonal blocks of factors by one plan that does not stream."""

    def __init__(self, device: Any, plan: Plan):
        super().__init__(device, np.dtype(plan.scalar), plan.cholesky)
        self._plan = plan

    @cached_property
    def _blocks(self) -> tuple[Buffer | None, np.ndarray]:
        """On the device, and type BLOCK."""
        blocks = diagonal_blocks(self._plan)
        return self.upload(blocks), blocks

    def _launch(self, stream: Stream, file: str, name: str, **fields: Any) -> None:
        """Launch the kernel, after its arguments have been uploaded."""
        self.load(file)
        on_device, blocks = self._blocks
        count, order = len(blocks), int(blocks["order"].max())
        self.device.own_stream().synchronize()
        shape = self.blocks(count, 1, 16), THREADS, order * order * self.dtype.itemsize
        self.launch(stream, file, name, shape, blocks=on_device, count=count, **fields)


def are_tiles(plan: Plan) -> np.ndarray:
    """Which of the diagonal blocks are those of large fronts."""
    large: np.ndarray = np.repeat(plan.is_large, blocks_of(plan)[1])
    return large


def blocks_of(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Order of the diagonal blocks of each front, except the last one, and their number."""
    size = np.where(plan.is_large, int(plan.large_tile), PANEL)
    return size, -(-np.asarray(plan.width, dtype=np.int64) // size)


def diagonal_blocks(plan: Plan) -> np.ndarray:
    """Type BLOCK: panels of fronts of phases before the last, tiles of large ones, front by front."""
    width, rows = (np.asarray(of, dtype=np.int64) for of in (plan.width, plan.rows))
    large, (size, count) = plan.is_large, blocks_of(plan)
    front = np.repeat(np.arange(plan.nf), count)
    k = np.arange(len(front)) - np.repeat(np.cumsum(count) - count, count)  # among the front's blocks
    panels = plan.factor_entries - count * size * size  # of large fronts, ahead of the tiles
    found = np.zeros(len(front), BLOCK)
    found["ld"] = np.where(large, size, rows)[front]
    step = np.where(large, size * size, PANEL * (rows + 1))
    found["at"] = (np.asarray(plan.factor_offset) + np.where(large, panels, 0))[front] + k * step[front]
    found["order"] = np.minimum(size[front], width[front] - k * size[front])
    return found
