"""The pattern of L + U found on the device, by the symbolic phase of SFLU (section III-B, algorithm 1).

The kernel: kernels/columns/sflu_symbolic.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...cuda.layout import constant
from ...errors import EngineUnavailableError
from ..columns.plan import LuPattern
from ..device.program import Part, address

FILE = "columns/sflu_symbolic.cu"
GUESS = 8  # capacity for rows of L + U at first, per entry of A
RESERVED_BYTES, WARP = (constant("shared/columns.hpp", name) for name in ("RESERVED_SHARED_BYTES", "WARP_SIZE"))
MOST_RESIDENT = 32  # one-warp blocks that a multiprocessor can have


def unsupported(device: Any, n: int) -> str:
    """Why a matrix of this order is too large for the kernel; empty if it is not."""
    needed, free = 4 * _core.bitmap_words(n), int(device.shared_memory_bytes)
    if needed <= free:
        return ""
    return f"marking {n:,} rows takes {needed:,} bytes of shared memory in the symbolic phase, and a block has {free:,}"


def lu_pattern(device: Any, ptr: np.ndarray, ind: np.ndarray, row_perm: np.ndarray, col_perm: np.ndarray) -> LuPattern:
    """The pattern of L + U of ``A[row_perm][:, col_perm]`` with all pivots on the diagonal.

    Parameters
    ----------
    device : cuda.devices.Device
    ptr, ind : ndarray of int64, shape (n + 1,), and int32, shape (nnz,)
        Canonical A in compressed columns.
    row_perm, col_perm : ndarray of int32, shape (n,)
        Gather.

    Raises
    ------
    DeviceMemoryError
        L + U do not fit.
    EngineUnavailableError
        The rows of a column do not fit shared memory.
    """
    n = len(ptr) - 1
    if n == 0:
        return LuPattern(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    if reason := unsupported(device, n):
        raise EngineUnavailableError(reason)
    with device:
        search = Search(device, ptr, ind, row_perm, col_perm)
        capacity = GUESS * (int(ptr[-1]) + n)
        while True:
            used = search.run(capacity)
            if used <= capacity:
                return search.result(used)
            capacity *= 4


class Search(Part):
    """Arrays that the kernel reads and writes on the device."""

    def __init__(self, device: Any, ptr: np.ndarray, ind: np.ndarray, row_perm: np.ndarray, col_perm: np.ndarray):
        super().__init__(device, np.dtype("d"))
        self.n = len(ptr) - 1
        inverse = np.empty(self.n, np.int32)
        inverse[row_perm] = np.arange(self.n, dtype=np.int32)
        arrays = {"ptr": ptr, "ind": ind, "inverse_row": inverse, "col_perm": col_perm}
        self.arrays = self.upload_all(arrays) | {
            name: device.empty(4 * self.n) for name in ("upper", "lower", "suffice")
        }
        self.arrays["begin"] = device.empty(8 * self.n)

    def run(self, capacity: int) -> int:
        """Number of rows found; if it exceeds `capacity` they are not complete."""
        device, shared = self.device, 4 * _core.bitmap_words(self.n)
        self.arrays |= {"rows": device.empty(4 * capacity), "done": device.zeros(4 * self.n)}
        self.arrays |= {"used": device.zeros(8), "tickets": device.zeros(4)}
        resident = max(1, min(MOST_RESIDENT, device.shared_memory_bytes // (shared + RESERVED_BYTES)))
        shape = min(self.n, resident * int(device.multiprocessors)), WARP, shared
        self.launch(device.own_stream(), FILE, "sflu_symbolic", shape, **self.arrays, n=self.n, capacity=capacity)
        return int(self.download("used", np.int64, 1)[0])

    def download(self, name: str, dtype: Any, count: int) -> np.ndarray:
        array = np.empty(count, dtype)
        self.device.own_stream().read(array, address(self.arrays[name]), array.nbytes)
        return array

    def result(self, used: int) -> LuPattern:
        """Columns in ascending order."""
        begin, rows = self.download("begin", np.int64, self.n), self.download("rows", np.int32, used)
        upper, lower = (self.download(name, np.int32, self.n) for name in ("upper", "lower"))
        count = upper + lower + 1
        col_ptr = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
        places = np.arange(used) + np.repeat(begin - col_ptr[:-1], count)
        return LuPattern(col_ptr, rows[places], col_ptr[:-1] + upper)
