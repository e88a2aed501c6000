"""The supernodal engine's program; determinants and inertia, which are those of its inverted diagonal blocks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ... import _core
from ...common.matrix import Pattern
from ...cuda.layout import constant, struct
from ...cuda.nvrtc import HERMITIAN
from ...cuda.stream import Buffer, Stream
from ..device.buffers import Buffers, Memory, Vectors
from ..device.interrupted import outliving
from ..device.program import Part, Program, joined, outer_determinant
from .fronts import Fronts, kind_of_plan
from .memory import factor_memory, missing_bytes, needed_bytes, vector_memory
from .plan import SHARED as FRONTS
from .plan import Plan

DIAGONAL = "fronts/diagonal.cu"
PANEL, THREADS = constant(FRONTS, "PANEL"), constant(DIAGONAL, "DIAGONAL_THREADS")
BLOCK = struct(DIAGONAL, "DiagonalBlock")


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
        on_device, blocks = self._blocks
        count, order = len(blocks), int(blocks["order"].max())
        self.device.own_stream().synchronize()
        shape = self.blocks(count, 1, 16), THREADS, order * order * self.dtype.itemsize
        self.launch(stream, file, name, shape, blocks=on_device, count=count, **fields)


def are_tiles(plan: Plan) -> np.ndarray:
    """Which of the diagonal blocks are those of large fronts."""
    return np.repeat(plan.is_large, blocks_of(plan)[1])


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


class Determinants(OverDiagonal):
    """Of factors by one plan that does not stream."""

    @cached_property
    def _outer(self) -> tuple[float, float]:
        """The part that is the same for all values."""
        return outer_determinant(self._plan)

    def slogdet(self, stream: Stream, factor: Buffer) -> tuple[Any, float]:
        """Sign and logarithm of the modulus of the determinant of A; waits."""
        _, blocks = self._blocks
        wide = np.dtype("D" if self.dtype.kind == "c" else "d")
        logs, signs = np.empty(len(blocks)), np.empty(len(blocks), wide)
        out = self.device.empty(logs.nbytes + signs.nbytes)
        fields = {"factor": factor, "signs": out, "logs": out.pointer + signs.nbytes}
        self._launch(stream, DIAGONAL, "block_determinants", **fields)
        with outliving(self.device, out):
            stream.read(signs, out.pointer, signs.nbytes)
            stream.read(logs, out.pointer + signs.nbytes, logs.nbytes)
        sign, shift = self._outer
        if self._plan.cholesky:  # for large fronts it is the inverted triangle
            return 1.0, shift - float((logs * np.where(are_tiles(self._plan), 2, 1)).sum())
        return sign * np.conj(joined(signs)), shift - float(logs.sum())


COUNTS = constant(DIAGONAL, "INERTIA_COUNTS")
LEAST = 1e3  # eigenvalues of a block below this many roundings of its largest entry may have either sign


class Signs(OverDiagonal):
    """Signs of Hermitian D, for factors by one plan that does not stream."""

    @property
    def files(self) -> tuple[str, ...]:
        return (DIAGONAL,)

    def count(self, stream: Stream, factor: Buffer) -> tuple[int, int, int]:
        """How many eigenvalues are positive, negative, and too small to tell; waits."""
        sums, found = self.device.zeros(4 * COUNTS), np.zeros(COUNTS, np.uint32)
        least = LEAST * np.finfo(self.dtype).eps
        self._launch(stream, DIAGONAL, "count_signs", factor=factor, least=least, counts=sums)
        with outliving(self.device, sums):
            stream.read(found, sums.pointer, found.nbytes)
        positive, negative, small = found.tolist()
        return positive, negative, small


class FrontProgram(Program):
    """A plan of fronts in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : Plan
        For the limits of `device`.
    pattern : Pattern
    hermitian : bool, optional
        False of LDL^T of a complex symmetric matrix.
    pivots : ndarray, optional
        The order of the CPU engine's pivots, if the plan is for it.
    """

    def __init__(
        self, device: Any, plan: Plan, pattern: Pattern, hermitian: bool = True, pivots: np.ndarray | None = None
    ):
        super().__init__(device, pattern, np.dtype(plan.scalar), kind_of_plan(plan, hermitian))
        self.plan, self._pivots = plan, pivots
        width, height = plan.width.astype(np.int64), (plan.rows - plan.width).astype(np.int64)
        triangle = int((width * (width + 1) // 2 + width * height).sum())
        self.nnz = triangle if plan.one_triangle else 2 * triangle
        self.flops = plan.flops
        self.factor_seconds, self.solve_seconds = plan.factor_seconds, plan.solve_seconds
        self.n_windows, self.host_bytes = plan.streamed, plan.host_size * self.dtype.itemsize
        self.fronts = Fronts(device, plan, *self.small_pivots(), hermitian)
        self._signs = Signs(device, plan) if self.kind == HERMITIAN and not plan.streamed else None
        self.parts = (self.fronts, self._signs) if self._signs else (self.fronts,)

    def small_pivots(self) -> tuple[float, float]:
        """Pivots below the first are perturbed, pivots below the second may mean a singular matrix."""
        if self.plan.cholesky:  # scales nothing: its pivots must be positive
            return 0.0, 0.0
        perturbed, tiny = _core.small_pivots_of_fronts(self.dtype.char, self.n)
        # LDL^T has no perturbed pivots and accepts small ones: growth shows whether they were too small.
        return (tiny, tiny) if self.plan.ldlt else (perturbed, tiny)

    def has_pivots_of(self, cpu: Any) -> bool:
        return self._pivots is not None and np.array_equal(self._pivots, cpu.pivot_columns)

    @cached_property
    def needed_bytes(self) -> int:  # type: ignore[override]
        return needed_bytes(self.plan, self.pattern)

    def missing_bytes(self, usable: int) -> int:
        return missing_bytes(self.plan, self.pattern, usable)

    def factor_memory(self) -> Memory:
        return factor_memory(self.plan)

    def vector_memory(self, capacity: int) -> Memory:
        return vector_memory(self.plan, capacity)

    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        self.fronts.factor(stream, buffers, values)

    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        self.fronts.solve(stream, buffers, vectors, trans, nrhs, b, x)

    def signs_of_pivots(self, stream: Stream, buffers: Buffers) -> tuple[int, int, int] | None:
        return self._signs.count(stream, buffers.own["factor"]) if self._signs else None

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        if self.plan.streamed or self.plan.ldlt:
            return None
        return self._determinants.slogdet(stream, buffers.own["factor"])

    @cached_property
    def _determinants(self) -> Determinants:
        return Determinants(self.device, self.plan)

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        self.fronts.factor_solve(stream, buffers, values, vectors, trans, nrhs)
