"""Determinants from a factor of fronts: those of its inverted diagonal blocks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Stream
from ..device.determinants import joined, outer_determinant
from ..device.part import Part, address
from .plan import SHARED as FRONTS
from .plan import Plan

FILE, SHARED = "fronts/determinants.cu", "shared/diagonal.hpp"
PANEL, THREADS = constant(FRONTS, "PANEL"), constant(SHARED, "DIAGONAL_THREADS")
BLOCK = struct(SHARED, "DiagonalBlock")


class Determinants(Part):
    """Of factors by one plan that does not stream."""

    def __init__(self, device: Any, plan: Plan):
        super().__init__(device, np.dtype(plan.scalar), plan.cholesky)
        self._plan = plan

    @cached_property
    def _blocks(self) -> tuple[Buffer | None, np.ndarray]:
        blocks = diagonal_blocks(self._plan)
        return self.upload(blocks), blocks

    @cached_property
    def _outer(self) -> tuple[float, float]:
        """What is the same for all values."""
        return outer_determinant(self._plan)

    def slogdet(self, stream: Stream, factor: Buffer) -> tuple[Any, float]:
        """Sign and logarithm of the modulus of the determinant of A; waits."""
        self.load(FILE)
        on_device, blocks = self._blocks
        kernel, wide = self.kernel(FILE, "block_determinants"), np.dtype("D" if self.dtype.kind == "c" else "d")
        count, order = len(blocks), int(blocks["order"].max())
        logs, signs = np.empty(count), np.empty(count, wide)
        out = self.device.empty(logs.nbytes + signs.nbytes)
        self.device.own_stream().synchronize()
        args = record(
            kernel.arguments,
            factor=factor.pointer,
            blocks=address(on_device),
            count=count,
            signs=out.pointer,
            logs=out.pointer + signs.nbytes,
        )
        stream.launch(kernel, self.blocks(count, 1, 16), THREADS, order * order * self.dtype.itemsize, args)
        stream.copy(signs.ctypes.data, out.pointer, signs.nbytes)
        stream.copy(logs.ctypes.data, out.pointer + signs.nbytes, logs.nbytes)
        stream.synchronize()
        sign, shift = self._outer
        if self._plan.cholesky:  # of large fronts it is the triangle that was inverted
            return 1.0, shift - float((logs * np.where(is_large(self._plan, blocks), 2, 1)).sum())
        return sign * np.conj(joined(signs)), shift - float(logs.sum())


def is_large(plan: Plan, blocks: np.ndarray) -> np.ndarray:
    """Which of the diagonal blocks are tiles of large fronts."""
    large: np.ndarray = np.repeat(np.asarray(plan.phase) == 3, blocks_of(plan)[1])
    return large


def blocks_of(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Order of the diagonal blocks of each front, the last one aside, and their number."""
    size = np.where(np.asarray(plan.phase) == 3, int(plan.large_tile), PANEL)
    return size, -(-np.asarray(plan.width, dtype=np.int64) // size)


def diagonal_blocks(plan: Plan) -> np.ndarray:
    """Type BLOCK: panels of fronts of phases 0 to 2, tiles of those of phase 3, front by front."""
    width, rows = (np.asarray(of, dtype=np.int64) for of in (plan.width, plan.rows))
    large, (size, count) = np.asarray(plan.phase) == 3, blocks_of(plan)
    front = np.repeat(np.arange(plan.nf), count)
    k = np.arange(len(front)) - np.repeat(np.cumsum(count) - count, count)  # among the front's blocks
    height = rows - width
    triangles = 1 if plan.cholesky else 2
    panels = triangles * width * (width + width % 2 + height + height % 2)  # ahead of the tiles
    found = np.zeros(len(front), BLOCK)
    found["ld"] = np.where(large, size, rows)[front]
    step = np.where(large, size * size, PANEL * (rows + 1))
    found["at"] = (np.asarray(plan.factor_offset) + np.where(large, panels, 0))[front] + k * step[front]
    found["order"] = np.minimum(size[front], width[front] - k * size[front])
    return found
