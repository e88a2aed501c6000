"""Where a solve on several devices has what they send each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .team import Copy

if TYPE_CHECKING:
    from .shared_program import SharedProgram


class Layout:
    """Where values of places and positions are in the work memory of a solve with up to so many right-hand sides."""

    def __init__(self, program: SharedProgram, capacity: int):
        plan = program.plan
        self._one, self._itemsize, self._n = capacity == 1, program.dtype.itemsize, int(plan.n)
        self._columns = int(plan.solve_columns(capacity))
        self._groups = -(-capacity // self._columns)
        self._below = max(1, int(plan.below.size))

    def places(self, begin: int, count: int) -> list[tuple[str, int, int]]:
        """Array, offset and bytes of what fronts add to their parents at these places."""
        size = self._itemsize
        if self._one:
            return [("packets", 2 * (self._n + begin) * size, 2 * count * size)]
        width = self._columns * size
        starts = [group * self._below + begin for group in range(self._groups)]
        return [("vectors", start * width, count * width) for start in starts]

    def positions(self, begin: int, end: int) -> list[tuple[str, int, int]]:
        """The same of solutions at these plan positions: packets, and with several also numbers."""
        width, count = self._columns * self._itemsize, end - begin
        starts = [group * self._n + begin for group in range(self._groups)]
        found = [("packets", 2 * start * width, 2 * count * width) for start in starts]
        return found if self._one else found + [("work", start * width, count * width) for start in starts]

    def copies(self, to: Any, source: Any, ranges: list[tuple[str, int, int]]) -> list[Copy]:
        """Between the work memories of two devices."""
        return [Copy(to[name].pointer + at, source[name].pointer + at, nbytes) for name, at, nbytes in ranges]
