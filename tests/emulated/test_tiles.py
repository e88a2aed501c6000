"""Fronts that devices share, stage by stage, without numbers: whoever makes a tile has what the kernel reads for it."""

import numpy as np
import pytest

from gpusplu.engines.supernodal.tiles import Tiles

TILE = 4
KINDS = {"cholesky": (1, True), "ldlt": (2, True), "lu": (2, False)}  # panels, one triangle
SIZES = [(30, 30), (9, 50), (33, 70), (3, 5), (8, 41)]  # pivots and rows
SPEEDS = [(1.0,), (1.0, 1.0), (1.0, 3.0, 1.0), (0.0, 1.0, 0.0, 1.0), (1.0,) * 5]


class Devices:
    """What each has of the factor of a front, entry by entry."""

    def __init__(self, tiles, one_triangle):
        self.tiles, self.one, self.upper = tiles, one_triangle, tiles.panels - 1
        self.has = {k: np.zeros(tiles.entries, bool) for k in tiles.group}

    def places(self, part):
        return (part.begin + part.ld * np.arange(part.columns)[:, None] + np.arange(part.rows)).ravel()

    def tile(self, panel, row, col):
        """Places of a tile, or None where there is no such column."""
        tiles = self.tiles
        columns = col * TILE, min((col + 1) * TILE, tiles.width)
        if row < tiles.pivots:
            return self.places(tiles.pivot_part(panel, (row * TILE, min((row + 1) * TILE, tiles.width)), columns))
        first, height = (row - tiles.pivots) * TILE, tiles.rows - tiles.width
        return self.places(tiles.below_part(panel, (first, min(first + TILE, height)), columns))

    def needs(self, k, panel, row, columns):
        for col in range(columns):
            assert self.has[k][self.tile(panel, row, col)].all(), (k, panel, row, col)

    def make(self, k, row, col):
        """What fronts/large_fronts.cu does for a task."""
        tiles, has = self.tiles, self.has[k]
        step, right = min(row, col, tiles.pivots), not self.one and row < col and row < tiles.pivots
        tall, flat = (col, row) if right else (row, col)
        self.needs(k, self.upper if right else 0, tall, step)
        self.needs(k, 0 if right else self.upper, flat, step)
        if step == tiles.pivots:
            return
        inverse = self.places(tiles.inverse_part(step, step + 1))
        if row == col:
            has[inverse] = True
        elif not right:
            assert has[inverse].all()
        has[self.tile(self.upper if right else 0, tall, step)] = True
        if self.one and self.upper and row > col:
            has[self.tile(1, tall, step)] = True

    def run(self, home):
        tiles = self.tiles
        row, col = np.indices((tiles.count, tiles.count)).reshape(2, -1)
        if self.one:
            row, col = row[row >= col], col[row >= col]
        stage, owner = tiles.stages(row, col)
        assert set(owner.tolist()) <= set(tiles.group)
        for now in range(-1, tiles.chunks + 1):
            mine = np.flatnonzero(stage == now)
            for task in mine[np.lexsort((np.maximum(row, col)[mine], np.minimum(row, col)[mine]))]:
                self.make(int(owner[task]), int(row[task]), int(col[task]))
            for each in tiles.sent(now, home):
                for part in each.parts:
                    places = self.places(part)
                    self.has[each.target][places] |= self.has[each.source][places]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("speeds", SPEEDS)
@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_everything_is_there(kind, size, speeds, chunk):
    panels, one_triangle = KINDS[kind]
    tiles = Tiles(*size, TILE, chunk, speeds, panels)
    for home in tiles.group:
        devices = Devices(tiles, one_triangle)
        devices.run(home)
        made = np.any(list(devices.has.values()), axis=0)
        np.testing.assert_array_equal(devices.has[home], made)
