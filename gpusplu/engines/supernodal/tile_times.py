"""Predicted seconds of a front whose tiles all devices share (tiles.py), stage by stage.

A stage takes as long as the device with most tasks for its share, as the chain of the diagonal tiles of the next chunk,
or as what a device has to send meanwhile; then the rows of the next chunk have to be there. Constants are those by
which tasks of large fronts are put in order, but for the rate of their arithmetic: it is what the plan predicts for the
front on one device, so that the work of all devices together is what that one has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .tiles import Tiles, tiles_of

CHUNKS = 1, 2, 4, 8, 16, 32  # tile columns of a stage that are tried
LAUNCH_SECONDS = 6e-6  # of a stage besides: two kernels, one after the other


class Shared(NamedTuple):
    """Of a front: predicted seconds, bytes that are sent, and the tile columns of a stage with which that holds."""

    seconds: float
    sent: int
    chunk: int


def best_shared(plan: Any, front: int, alone: float, speeds: Sequence[float], link: Any) -> Shared:
    """The fastest way to share a large front.

    Parameters
    ----------
    plan : Plan
    front : int
    alone : float
        Seconds on the device that the plan is for.
    speeds : sequence of float
        Of the devices; 1 for the one that the plan is for.
    link : Link
    """
    most = max(1, int(plan.width[front]) // int(plan.large_tile))
    ways = [tiles_of(plan, front, chunk, speeds) for chunk in CHUNKS if chunk <= most]
    return min(Shared(*predicted(plan, way, alone, speeds, link), way.chunk) for way in ways)


def predicted(plan: Any, tiles: Tiles, alone: float, speeds: Sequence[float], link: Any) -> tuple[float, int]:
    """Seconds, and bytes that go from device to device."""
    times, size = plan.tile_times, np.dtype(plan.scalar).itemsize
    speed, others = np.asarray(speeds, float), len(speeds) - 1
    triangles, panels = 1 if plan.one_triangle else 2, tiles.panels
    height = tiles.count - tiles.pivots
    tasks = tiles.count * (tiles.count + 1) / 2 if plan.one_triangle else tiles.count**2
    products = triangles * (tiles.count**3 - height**3) / 6  # of two tiles
    product = max(0.0, alone * times["blocks"] - tasks * times["task"]) / products  # by one block [s]
    step = times["pivot"] + times["column"]
    owned = np.zeros((tiles.devices, tiles.count + 1))  # tile rows from each row on, by device
    for device in range(tiles.devices):
        owned[device, :-1] = np.cumsum((tiles.owner == device)[::-1])[::-1]
    below, column_bytes = owned[:, tiles.pivots], tiles.tile * size  # of a row in the columns of a tile

    def rounds(tasks: np.ndarray, seconds: float) -> float:
        """Of so many equal tasks on each device."""
        return float(np.max(np.ceil(tasks / times["blocks"]) * seconds / speed))

    total, sent = times["front"] + tiles.chunk * step, 0.0
    for stage in range(tiles.chunks):
        begin, end = tiles.columns(stage)
        task = times["task"] + (begin + (end - begin + 1) / 2 + 1) * product
        work = rounds(triangles * (end - begin) * owned[:, end], task)
        chain = (task + (end - begin) * times["column"] + tiles.chunk * step) / speed.min() if end < tiles.pivots else 0
        # Rows below to all; rows of the chunk after the next one to all; rows of the next one.
        panel = (end - begin) * tiles.tile * column_bytes
        rows = tiles.chunk * tiles.tile * begin * column_bytes * panels * others if end < tiles.pivots else 0
        most = panel * others * float(below.max()) + rows
        total += max(work, chain, most / link.rate) + LAUNCH_SECONDS
        total += link.seconds + panels * others * 2 * panel * tiles.chunk / link.rate
        sent += others * (panel * (float(below.sum()) + 2 * panels * tiles.chunk) + rows / max(others, 1))
    if height:
        at = np.arange(tiles.pivots, tiles.count)
        tall = np.where(plan.one_triangle, tiles.count - at, height)
        owned_tasks = np.bincount(tiles.owner[at], weights=tall, minlength=tiles.devices)
        total += rounds(owned_tasks, times["task"] + tiles.pivots * product) + LAUNCH_SECONDS
    return total, int(sent)
