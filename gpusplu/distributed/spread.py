"""Right-hand sides on one rank, scattered to all ranks and gathered again."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rows import Rows


class Spread:
    """Distribution of the rows of a vector over ranks."""

    def __init__(self, rows: Rows):
        self._comm = rows.comm
        self._counts = self._comm.allgather(rows.count)
        self._n = rows.n

    def scatter(self, whole: Any, root: int) -> np.ndarray:
        """The part of this rank of an array that is on `root`."""
        is_root = self._comm.rank == root
        if is_root:
            whole = np.ascontiguousarray(whole)
        kind = self._comm.bcast((whole.dtype, whole.shape[1:]) if is_root else None, root=root)
        part = np.empty((self._counts[self._comm.rank], *kind[1]), dtype=kind[0])
        self._comm.Scatterv([whole, self._numbers(kind)] if is_root else None, part, root=root)
        return part

    def gather(self, part: np.ndarray, root: int) -> np.ndarray | None:
        """The whole on `root`, of the parts; None elsewhere."""
        is_root = self._comm.rank == root
        part = np.ascontiguousarray(part)
        whole = np.empty((self._n, *part.shape[1:]), dtype=part.dtype, order="C") if is_root else None
        self._comm.Gatherv(part, [whole, self._numbers((part.dtype, part.shape[1:]))] if is_root else None, root=root)
        return None if whole is None else np.asfortranarray(whole)

    def _numbers(self, kind: tuple[np.dtype, tuple[int, ...]]) -> list[int]:
        """Number of entries on each rank."""
        columns = int(np.prod(kind[1]))
        return [count * columns for count in self._counts]
