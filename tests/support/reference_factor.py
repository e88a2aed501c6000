"""The factor of a GPU plan in NumPy, laid out as factor kernels must leave it and solve kernels read it.

Entries that no kernel writes are NaN here: whoever reads one shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusplu.cuda.layout import constant

PANEL = constant("shared/fronts.hpp", "PANEL")  # columns of a panel in phases 0 to 2


@dataclass
class ReferenceFactor:
    """Arenas of scalars, laid out as in core/plan/fronts/plan.hpp."""

    factor: np.ndarray
    blocks: np.ndarray


def even(k: int) -> int:
    return k + (k & 1)


def assemble(plan, values: np.ndarray, f: int, block: list[np.ndarray | None], lower_only: bool) -> np.ndarray:
    """The R x R front: entries of A, then the children's contribution blocks in plan order."""
    R = int(plan.rows[f])
    front = np.zeros((R, R), values.dtype)
    entries = slice(int(plan.entry_ptr[f]), int(plan.entry_ptr[f + 1]))
    place = np.asarray(plan.entry_place[entries])
    entry = values[plan.entry_source[entries]]
    if len(plan.entry_scale):
        entry = entry * plan.entry_scale[entries]
    np.add.at(front, (place & 0xFFFF, place >> 16), entry.astype(values.dtype))
    for child in plan.child[int(plan.child_ptr[f]) : int(plan.child_ptr[f + 1])]:
        to = np.asarray(plan.place[int(plan.below_ptr[child]) : int(plan.below_ptr[child + 1])], dtype=np.intp)
        front[np.ix_(to, to)] += block[child]
        block[child] = None
    if lower_only:
        front = np.tril(front)
        front = front + np.tril(front, -1).conj().T
    return front


def eliminate(front: np.ndarray, width: int, panel: int) -> tuple[np.ndarray, np.ndarray]:
    """Block elimination with inverted diagonal blocks, in place; (front, inverses by columns)."""
    inverse = np.zeros((width, panel), front.dtype)
    for k in range(0, width, panel):
        n = min(k + panel, width)
        D = np.linalg.inv(front[k:n, k:n])
        front[n:, k:n] = front[n:, k:n] @ D
        front[n:, n:] -= front[n:, k:n] @ front[k:n, n:]
        inverse[k:n, : n - k] = D
    return front, inverse


def store(arena: np.ndarray, offset: int, matrix: np.ndarray, ld: int) -> int:
    """Column-major at `offset` with leading dimension `ld`; returns the next offset."""
    rows, columns = matrix.shape
    arena[offset : offset + ld * columns].reshape(columns, ld)[:, :rows] = matrix.T
    return offset + ld * columns


def small_front(plan, factor: np.ndarray, offset: int, front: np.ndarray, W: int, phase: int) -> np.ndarray:
    """Phases 0 to 2: `lower` R x W and for LU `upper` W x H."""
    R = len(front)
    front, inverse = eliminate(front, W, PANEL)
    lower = front[:, :W].copy()
    for k in range(0, W, PANEL):
        n = min(k + PANEL, W)
        lower[k:n, k:n] = inverse[k:n, : n - k]
        if plan.cholesky:
            lower[:k, k:n] = np.nan
    offset = store(factor, offset, lower, R)
    if not plan.cholesky:
        upper = front[:W, W:]
        store(factor, offset, inverse[:W, :W] @ upper if phase == 0 else upper, W)
    return front[W:, W:]


def large_front(plan, factor: np.ndarray, offset: int, front: np.ndarray, W: int, tile: int) -> np.ndarray:
    """Phase 3: tall panels with even leading dimensions, then a tile x tile inverse for every tile column."""
    R = len(front)
    H = R - W
    if plan.cholesky:
        L = np.linalg.cholesky(front[:W, :W])
        X = np.linalg.solve(L, front[:W, W:]).conj().T  # A21 L^-H
        offset = store(factor, offset, strict_tiles(L, tile, True), even(W))
        offset = store(factor, offset, X, even(H))
        for k in range(0, W, tile):
            n = min(k + tile, W)
            store(factor, offset, whole_tile(np.linalg.inv(L[k:n, k:n]).conj().T, tile), tile)
            offset += tile * tile
        return front[W:, W:] - X @ X.conj().T
    front, inverse = eliminate(front, W, tile)
    offset = store(factor, offset, strict_tiles(front[:W, :W], tile, False), even(W))
    offset = store(factor, offset, front[W:, :W], even(H))
    offset = store(factor, offset, strict_tiles(front[:W, :W].T, tile, False), even(W))
    offset = store(factor, offset, front[:W, W:].T, even(H))
    for k in range(0, W, tile):
        n = min(k + tile, W)
        store(factor, offset, whole_tile(inverse[k:n, : n - k], tile), tile)
        offset += tile * tile
    return front[W:, W:]


def whole_tile(block: np.ndarray, tile: int) -> np.ndarray:
    """The identity beyond the block."""
    out = np.eye(tile, dtype=block.dtype)
    out[: len(block), : len(block)] = block
    return out


def strict_tiles(matrix: np.ndarray, tile: int, diagonal: bool) -> np.ndarray:
    """Tiles below the diagonal (and the lower triangles on it), the rest NaN."""
    out = np.full_like(matrix, np.nan)
    for k in range(0, len(matrix), tile):
        n = min(k + tile, len(matrix))
        out[n:, k:n] = matrix[n:, k:n]
        if diagonal:
            out[k:n, k:n] = np.where(np.tri(n - k, dtype=bool), matrix[k:n, k:n], np.nan)
    return out


def reference_factor(plan, values: np.ndarray, tile: int) -> ReferenceFactor:
    """Factor with canonical `values` (of the plan's dtype); `tile` is the NB of phase 3 for this scalar."""
    factor = np.full(int(plan.factor_size), np.nan, values.dtype)
    blocks = np.full(max(1, int(plan.block_size)), np.nan, values.dtype)
    pending: list[np.ndarray | None] = [None] * plan.nf
    for f in range(plan.nf):
        W, phase, offset = int(plan.width[f]), int(plan.phase[f]), int(plan.factor_offset[f])
        front = assemble(plan, values, f, pending, plan.cholesky)
        if phase == 3:
            block = large_front(plan, factor, offset, front, W, tile)
        else:
            block = small_front(plan, factor, offset, front, W, phase)
        pending[f] = block
        if len(block):
            H = len(block)
            stored = np.where(np.tri(H, dtype=bool), block, np.nan) if plan.cholesky else block
            store(blocks, int(plan.block_offset[f]), stored, even(H) if phase == 3 else H)
    return ReferenceFactor(factor, blocks)
