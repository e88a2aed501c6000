"""Fronts with tiles that several devices share: the owner and the order of tiles, and the data sent between devices.

A tile (row, col) belongs to the device that has row max(row, col) of L and of U transposed; in the contribution block,
to the one that has its column. Rows of the pivots are distributed round robin, in chunks of a few tiles; rows below in
two ranges for each device, the second ranges in reverse order, so that all have as many rows, and as much of a
triangle.

The kernel of large fronts is left-looking: to complete the tiles of a chunk of columns it needs their own rows, and the
rows of U that belong to these columns. So chunk k of columns is a stage: the device that has the rows of chunk k sends
them to all others (the diagonal tiles are complete by then), and each device completes its own tiles in these columns;
the device that has the rows of chunk k + 1 completes the tiles on their diagonal, too. Rows below go to all devices as
they are completed, and the last stage is the contribution block. Each stage is a launch of the kernel on each device
with the tasks of that stage, in that device's order: every tile results from the same arithmetic, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...cuda.layout import struct

SLOWEST = 1e-9  # relative speed assumed for a device without a part
LARGE = "shared/fronts.hpp"
TASK, LARGE_FRONT = struct(LARGE, "LargeTask"), struct(LARGE, "LargeFront")


class Range(NamedTuple):
    """Rows begin .. end - 1 of a front, or of a contribution block, that a device has."""

    device: int
    begin: int
    end: int


class Rectangle(NamedTuple):
    """Part of a contribution block sent from one device to another: rows and columns, begin and end."""

    source: int
    target: int
    rows: tuple[int, int]
    columns: tuple[int, int]


class Part(NamedTuple):
    """`columns` of `rows` scalars each, `ld` scalars from one to the next, the first one at `begin`."""

    begin: int
    ld: int
    rows: int
    columns: int


class Sent(NamedTuple):
    """Parts of a factor sent from one device to another before a stage or, for None, at the end."""

    source: int
    target: int
    stage: int | None
    parts: list[Part]


class Tiles:
    """A front of `width` pivots and `rows` rows in tiles of `tile` rows and columns.

    Parameters
    ----------
    width, rows, tile : int
    chunk : int
        Tile columns of a stage.
    speeds : sequence of float
        Of the devices; 0 for those without a part of it.
    panels : int
        Panels of the factor: 1 for L alone, 2 for L and U.

    Attributes
    ----------
    pivots, count : int
        Tile rows of pivots, and of the front.
    chunks : int
        The last stage is the contribution block's.
    group : list of int
        Devices that share it.
    owner : ndarray of int, shape (count,)
        Which device has a tile row.
    """

    def __init__(self, width: int, rows: int, tile: int, chunk: int, speeds: Sequence[float], panels: int):
        self.width, self.rows, self.tile, self.chunk, self.panels = width, rows, tile, chunk, panels
        self.pivots = -(-width // tile)
        self.count = self.pivots + -(-(rows - width) // tile)
        self.chunks = -(-self.pivots // chunk)
        self.group = [device for device, speed in enumerate(speeds) if speed > 0]
        below = self._ranges(np.asarray(speeds, float))
        self.owner = np.empty(self.count, np.int64)
        self.owner[: self.pivots] = np.repeat(turns(self.chunks, speeds), chunk)[: self.pivots]
        for device, begin, end in below:
            self.owner[self.pivots + begin : self.pivots + end] = device
        #: Of the rows below the pivots, and of the columns of the contribution block.
        self.below = [Range(k, b * tile, min(e * tile, rows - width)) for k, b, e in below]

    def _ranges(self, speeds: np.ndarray) -> list[Range]:
        parts = np.concatenate([speeds, speeds[::-1]])
        ends = np.rint(np.cumsum(parts) / parts.sum() * (self.count - self.pivots)).astype(int).tolist()
        devices = [*range(len(speeds)), *reversed(range(len(speeds)))]
        found = [Range(k, b, e) for k, (b, e) in zip(devices, pairwise([0, *ends]), strict=True)]
        return [each for each in found if each.begin < each.end]

    def chunk_owner(self, chunk: int) -> int:
        return int(self.owner[chunk * self.chunk])

    def columns(self, chunk: int) -> tuple[int, int]:
        """Begin and end of the tile columns of a stage; of the last one: the columns that are complete then."""
        return min(chunk * self.chunk, self.pivots), min((chunk + 1) * self.chunk, self.pivots)

    def pivot_rows(self, chunk: int) -> tuple[int, int]:
        """Begin and end of the pivot rows of a chunk."""
        begin, end = self.columns(chunk)
        return begin * self.tile, min(end * self.tile, self.width)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of the front's rows, ascending."""
        found = [Range(self.chunk_owner(k), *self.pivot_rows(k)) for k in range(self.chunks)]
        return found + [Range(k, self.width + begin, self.width + end) for k, begin, end in self.below]

    def stages(self, row: np.ndarray, col: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For tiles: in which stage they are completed, from -1 on, and by which device."""
        tall, flat = np.maximum(row, col), np.minimum(row, col)
        in_block = flat >= self.pivots
        stage = np.where(in_block, self.chunks, flat // self.chunk)
        stage -= ~in_block & (tall < self.pivots) & (tall // self.chunk == stage)
        return stage, self.owner[np.where(in_block, col, tall)]

    def sent(self, stage: int, owner: int) -> list[Sent]:
        """Data sent between devices after a stage: rows of the next chunk in the columns that others do not have yet,
        rows of the following chunk in the columns before, and rows below. The factor is at `owner` in the end."""
        found, panels = [], range(self.panels)
        done = max(stage, 0) * self.chunk * self.tile, max(min(self.columns(stage)[1] * self.tile, self.width), 0)
        for chunk, begin in ((stage + 1, done[0]), (stage + 2, 0)):
            end = self.pivot_rows(chunk)[1] if chunk == stage + 1 else done[1]
            if chunk >= self.chunks or begin >= end:
                continue
            parts = [self.pivot_part(panel, self.pivot_rows(chunk), (begin, end)) for panel in panels]
            if chunk == stage + 1:
                parts.append(self.inverse_part(*self.columns(chunk)))
            source = self.chunk_owner(chunk)
            found += [Sent(source, k, chunk, parts) for k in self.group if k != source]
        if 0 <= stage < self.chunks:
            for source, *rows in self.below:
                for k in self.group:
                    if k != source:
                        found.append(Sent(source, k, self.chunks, [self.below_part(0, (rows[0], rows[1]), done)]))
                        if k == owner and self.panels == 2:
                            found.append(Sent(source, k, None, [self.below_part(1, (rows[0], rows[1]), done)]))
        return found

    # ---- location of the factor, as FrontTiles of kernels/fronts/large.cuh defines it [scalars from its begin]

    @property
    def pivot_ld(self) -> int:
        return _core.large_ld(self.width)

    @property
    def below_ld(self) -> int:
        return _core.large_ld(self.rows - self.width)

    @property
    def inverse(self) -> int:
        """Begin of the inverted diagonal blocks."""
        return self.panels * self.width * (self.pivot_ld + self.below_ld)

    @property
    def entries(self) -> int:
        """Size of the factor."""
        return self.inverse + self.pivots * self.tile**2

    def pivot_part(self, panel: int, rows: tuple[int, int], columns: tuple[int, int]) -> Part:
        """Rows and columns of the pivots, begin and end, of L, or of U transposed."""
        begin = panel * self.width * (self.pivot_ld + self.below_ld) + columns[0] * self.pivot_ld + rows[0]
        return Part(begin, self.pivot_ld, rows[1] - rows[0], columns[1] - columns[0])

    def below_part(self, panel: int, rows: tuple[int, int], columns: tuple[int, int]) -> Part:
        """The same of rows below."""
        begin = panel * self.width * (self.pivot_ld + self.below_ld) + self.width * self.pivot_ld
        begin += columns[0] * self.below_ld + rows[0]
        return Part(begin, self.below_ld, rows[1] - rows[0], columns[1] - columns[0])

    def inverse_part(self, begin: int, end: int) -> Part:
        """Inverted diagonal blocks of these tile columns."""
        count = (end - begin) * self.tile**2
        return Part(self.inverse + begin * self.tile**2, count, count, 1)


def tiles_of(plan: Any, front: int, chunk: int, speeds: Sequence[float]) -> Tiles:
    """Tiles of a front of a plan."""
    size = int(plan.width[front]), int(plan.rows[front]), int(plan.large_tile)
    return Tiles(*size, chunk, speeds, 1 if plan.cholesky else 2)


def turns(count: int, speeds: Sequence[float]) -> np.ndarray:
    """Device of each of `count` equal units of work, in turn and by speed."""
    given, found = np.zeros(len(speeds)), np.empty(count, np.int64)
    for k in range(count):
        found[k] = np.argmin((given + 1) / np.maximum(speeds, SLOWEST))
        given[found[k]] += 1
    return found


def rectangles_of(plan: Any, device_of: np.ndarray, shared: dict[int, Tiles], child: int) -> list[Rectangle]:
    """Parts of a front's contribution block that other devices need, if it or its parent is shared by tiles.

    Parameters
    ----------
    plan : Plan
    device_of : ndarray of int
        Of every front.
    shared : mapping of int to Tiles
        By front.
    child : int
    """
    height, owner = int(plan.rows[child] - plan.width[child]), int(device_of[child])
    own = shared[child].below if child in shared else [Range(owner, 0, height)]
    return [
        Rectangle(source, target, (low, rows[1]), (begin, end))
        for target, rows, columns in wanted(plan, device_of, shared, child, height)
        for source, first, last in own
        for begin, end in [(max(first, columns[0]), min(last, columns[1]))]
        for low in [max(rows[0], begin) if plan.one_triangle else rows[0]]
        if source != target and begin < end and low < rows[1]
    ]


def wanted(
    plan: Any, device_of: np.ndarray, shared: dict[int, Tiles], child: int, height: int
) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
    """Devices, and the rows and columns that they need."""
    parent, both = int(plan.parent[child]), not plan.one_triangle
    if parent not in shared:
        yield int(device_of[parent]), (0, height), (0, height)
        return
    place = plan.place[plan.below_ptr[child] : plan.below_ptr[child] + height]
    width = int(plan.width[parent])
    pivots = int(np.searchsorted(place, width))
    for device, first, last in shared[parent].ranges:
        begin, end = np.searchsorted(place, [first, last]).tolist()
        if begin == end:
            continue
        if first < width:
            yield device, (begin, end), (0, end)
            if both:
                yield device, (0, begin), (begin, end)
        else:
            yield device, (begin, end), (0, pivots)
            yield device, (0 if both else begin, height), (begin, end)


# ---- Predicted seconds of such a front, stage by stage
#
# The time of a stage is the largest of: the tasks of the device with most tasks relative to its speed, the chain of the
# diagonal tiles of the next chunk, and the data that a device sends meanwhile; then the rows of the next chunk must
# have arrived. The constants are those that order tasks of large fronts, except the rate of arithmetic: it follows from
# the plan's prediction for the front on one device, so that the total work of these devices equals that of one.

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
    times, size = plan.tile_times(), np.dtype(plan.scalar).itemsize
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
        return np.max(np.ceil(tasks / times["blocks"]) * seconds / speed, axis=0)

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
