"""A column plan in the memory of a device.

L + U of the plan lies in `buffers.own["factor"]`, in the order of its compressed columns: U's part of a column with the
pivot, then L's without the unit diagonal.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...cuda.layout import record, struct
from ...cuda.stream import Buffer
from ..device.program import Part
from .plan import ColumnPlan

NAMES = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "u_ptr")


class ColumnArrays(Part):
    """The arrays that all column engines read.

    Parameters
    ----------
    device : cuda.devices.Device
    plan : ColumnPlan
    dtype : dtype
    diag, row_diag : ndarray of int64, shape (n,), optional
        Where the part of L begins in a column and in a row, if not after the diagonal.
    """

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        dtype: np.dtype,
        diag: np.ndarray | None = None,
        row_diag: np.ndarray | None = None,
    ):
        super().__init__(device, dtype)
        self.plan = plan
        self._diag = plan.diag if diag is None else diag
        self._given_row_diag = row_diag

    @cached_property
    def arrays(self) -> dict[str, Buffer | None]:
        """Pattern and maps, by the members of ``struct ColumnArrays``."""
        plan = self.plan
        maps: dict[str, Any] = {"map_ptr": None, "map": None}
        if plan.has_maps:  # kernels read a map even if it is empty
            maps = {"map_ptr": plan.map_ptr, "map": plan.map if plan.map.size else np.zeros(1, plan.map.dtype)}
        return self.upload_all({name: getattr(plan, name) for name in NAMES} | {"diag": self._diag} | maps)

    def record(self, file: str) -> np.ndarray:
        """``struct ColumnArrays`` of columns.cuh."""
        return record(struct(file, "ColumnArrays"), **self.arrays, n=self.plan.n)

    @cached_property
    def entries(self) -> tuple[Buffer | None, Buffer | None]:
        """The canonical value at each place of L + U, -1 for fill, and the scale of canonical values."""
        plan = self.plan
        source = np.full(plan.nnz, -1, np.int32)
        source[plan.entry_place] = plan.entry_source
        return self.upload(source), self.upload(plan.entry_scale)

    @cached_property
    def orders(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        plan = self.plan
        return [
            (self.upload(plan.row_perm), self.upload(plan.row_scale)),
            (self.upload(plan.col_perm), self.upload(plan.col_scale)),
        ]

    @cached_property
    def row_diag(self) -> Buffer | None:
        """Position of the diagonal in the rows."""
        given = self._given_row_diag
        return self.upload(self.plan.row_diagonals() if given is None else given)
