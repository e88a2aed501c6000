"""U12 and the Schur complement: the columns after the division, the last tickets of the columns' factorization."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import record
from ...cuda.stream import Buffer
from ..columns.groups import CONTROL_BYTES, RESERVED_BYTES, RESIDENT
from ..columns.plan import ColumnPlan
from ..device.program import Part
from ..sflu.factorization import LONG_SCALARS, TRAILING_ARRAYS

LEAST_BATCH, MOST_BATCH = 16384, 49152  # of terms of a column that lies in shared memory [bytes]


class Trailing(Part):
    """The terms of the trailing block's columns.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    division : int
        First column of the trailing block.
    dtype : dtype
    """

    kernel_name = "columns/crisscross.cu", "factor_crisscross"  # and its file

    def __init__(self, device: Any, plan: ColumnPlan, division: int, dtype: np.dtype):
        super().__init__(device, dtype)
        self._plan, self._division = plan, division
        itemsize = self.dtype.itemsize
        longest = int(np.diff(plan.col_ptr[division:]).max(initial=0)) * itemsize
        taken = RESERVED_BYTES + CONTROL_BYTES + LONG_SCALARS * itemsize
        available = int(device.shared_memory_bytes) // RESIDENT - taken & ~15
        # Shared memory for a column and its terms [bytes], and most entries for it.
        self.capacity, self.kept = available, (available - LEAST_BATCH) // itemsize
        if longest + LEAST_BATCH <= available:
            self.capacity, self.kept = min(available, longest + MOST_BATCH), longest // itemsize

    def count_bytes(self) -> int:
        """Memory of the terms, and of the pointer, place in the order, step and wait of each entry [bytes]."""
        plan = self._plan
        entries = plan.nnz - plan.col_ptr[self._division]
        terms = plan.count_trailing_terms(self._division)
        return int(20 * entries + 8 * terms)

    @cached_property
    def _terms(self) -> dict[str, Buffer | None]:
        """Terms by the names of the kernel's arguments."""
        sizes = self.capacity, self.kept, RESIDENT * int(self.device.multiprocessors), self.dtype.itemsize
        return self.upload_all(self._plan.trailing_terms(self._division, *sizes))

    def record(self) -> np.ndarray:
        """``struct TrailingArrays`` of kernels/columns/trailing_columns.cuh."""
        return record(TRAILING_ARRAYS, **self._terms, capacity=self.capacity, kept=self.kept)
