"""Predicted seconds of a front with tiles that several devices share (tiles.py), stage by stage.

The time of a stage is the largest of: the tasks of the device with most tasks relative to its speed, the chain of the
diagonal tiles of the next chunk, and the data that a device sends meanwhile; then the rows of the next chunk must have
arrived. The constants are those that order tasks of large fronts, except the rate of arithmetic: it follows from the
plan's prediction for the front on one device, so that the total work of these devices equals that of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .tiles import Tiles, tiles_of

CHUNKS = 1, 2, 4, 8, 16, 32  # numbers of tile columns of a stage that are tried


class Shared(NamedTuple):
    """Of a front: predicted seconds, bytes that are sent, and the corresponding number of tile columns of a stage."""

    seconds: float
    sent: int
    chunk: int


def best_shared(plan: Any, front: int, single_seconds: float, speeds: Sequence[float], link: Any) -> Shared:
    """The fastest way to share a large front.

    Parameters
    ----------
    plan : Plan
    front : int
    single_seconds : float
        Seconds on the device that the plan is for.
    speeds : sequence of float
        Of the devices that share it; 1 for the one that the plan is for.
    link : Link
    """
    most = max(1, int(plan.width[front]) // int(plan.large_tile))
    tilings = [tiles_of(plan, front, chunk, speeds) for chunk in CHUNKS if chunk <= most]
    return min(Shared(*predicted(plan, tiling, single_seconds, speeds, link), tiling.chunk) for tiling in tilings)


def predicted(plan: Any, tiles: Tiles, single_seconds: float, speeds: Sequence[float], link: Any) -> tuple[float, int]:
    """Seconds, and bytes that go from device to device."""
    times, size = plan.tile_times, np.dtype(plan.scalar).itemsize
    speed, others = np.asarray(speeds, float)[:, None], len(speeds) - 1
    triangles, panels = 1 if plan.one_triangle else 2, tiles.panels
    height = tiles.count - tiles.pivots
    all_tasks = tiles.count * (tiles.count + 1) / 2 if plan.one_triangle else tiles.count**2
    products = triangles * (tiles.count**3 - height**3) / 6  # of two tiles
    product = max(0.0, single_seconds * times["blocks"] - all_tasks * times["task"]) / products  # by one block [s]
    step = times["pivot"] + times["column"]
    mine = tiles.owner == np.arange(len(speeds))[:, None]
    owned = np.zeros((len(speeds), tiles.count + 1))  # tile rows from each row on, by device
    owned[:, :-1] = np.cumsum(mine[:, ::-1], axis=1)[:, ::-1]

    def rounds(tasks: np.ndarray, seconds: Any) -> np.ndarray:
        """Seconds for these numbers of equal tasks on each device, stage by stage."""
        longest: np.ndarray = np.max(np.ceil(tasks / times["blocks"]) * seconds / speed, axis=0)
        return longest

    begin = np.arange(tiles.chunks) * tiles.chunk
    end = np.minimum(begin + tiles.chunk, tiles.pivots)
    columns, goes_on = end - begin, end < tiles.pivots
    task = times["task"] + (begin + (columns + 1) / 2 + 1) * product
    work = rounds(triangles * columns * owned[:, end], task)
    chain = goes_on * (task + columns * times["column"] + tiles.chunk * step) / speed.min()
    # Rows below go to all devices; so do rows of the chunk after the next one, and of the next one, which all wait for.
    tile_bytes = tiles.tile**2 * size
    panel = columns * tile_bytes
    rows = goes_on * tiles.chunk * begin * tile_bytes * panels
    next_rows = panels * 2 * tiles.chunk * panel
    most = others * (panel * owned[:, tiles.pivots].max() + rows)
    total = times["front"] + tiles.chunk * step + (link.launch + link.seconds) * tiles.chunks
    total += float(np.sum(np.maximum(np.maximum(work, chain), most / link.rate) + others * next_rows / link.rate))
    sent = others * float(np.sum(panel * height + rows + next_rows))
    if height:
        tall = tiles.count - np.arange(tiles.pivots, tiles.count) if plan.one_triangle else np.full(height, height)
        tasks = (mine[:, tiles.pivots :] * tall).sum(axis=1, keepdims=True)
        total += float(rounds(tasks, times["task"] + tiles.pivots * product)[0]) + link.launch
    return total, int(sent)
