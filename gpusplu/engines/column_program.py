"""What the programs of the column engines (glu.py, sflu.py, crisscross.py) share: the plan's arrays on the device.

L + U of the plan lies in `buffers.own["factor"]`, in the order of its compressed columns: U's part of a column with the
pivot, then L's without the unit diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..kernels.layout import record, struct
from ..kernels.queue import Buffer
from ..matrix import Pattern
from ..plans.columns import ColumnPlan
from .buffers import Memory
from .program import Program, addresses

# Multipliers may grow by this factor over what partial pivoting with the threshold would allow before pivots are called
# bad, as in the CPU engine's column LU (core/numeric/column_lu.cpp).
GROWTH_ALLOWANCE = 100


class ColumnProgram(Program):
    """A plan of columns in the memory of a device.

    Parameters
    ----------
    device : kernels.launch.Device
    plan : ColumnPlan
    pattern : Pattern
    dtype : dtype
    remake : callable, optional
        Makes another program of the pivots of a CPU factor.
    pivot_threshold : float, optional
        That the CPU engine chose pivots by.
    """

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        pattern: Pattern,
        dtype: np.dtype,
        remake: Callable[[Any], Program] | None = None,
        pivot_threshold: float = 0.1,
    ):
        super().__init__(device, pattern, dtype)
        self._remake, self.can_follow = remake, remake is not None
        # Pivots were chosen by partial pivoting, so one may be small where its column is; growth tells the others. Of
        # the scaled matrix, whose entries are at most 1, only what may as well be zero is replaced.
        self.tiny = self.singular = float(np.finfo(self.dtype).eps) ** 2
        self.growth_bound = GROWTH_ALLOWANCE / max(pivot_threshold, 1e-3)
        self.plan = self._arranged(plan)
        self.nnz = self.plan.nnz + self.plan.n
        self.flops = self._count_flops()
        self.needed_bytes = self._count_bytes()

    def _arranged(self, plan: ColumnPlan) -> ColumnPlan:
        """The plan as the engine takes it."""
        return plan

    def _count_flops(self) -> float:
        return float(2.0 * self.plan.flops + self.plan.nnz)

    def _count_bytes(self) -> int:
        """Of the plan, a factor, and one right-hand side at a time [bytes]."""
        pattern, itemsize = self.pattern, self.dtype.itemsize
        residual = 12 * pattern.nnz + 8 * pattern.n
        values = (2 * pattern.nnz + pattern.size + 6 * pattern.n) * itemsize
        return int(self.plan.nbytes + 4 * self.plan.nnz + residual + values + self.factor_memory().nbytes)

    def factor_memory(self) -> Memory:
        return Memory({"factor": self.plan.nnz * self.dtype.itemsize}, {})

    def repivoted(self, cpu: Any) -> Program | None:
        plan = self.plan
        same = is_planned(cpu, plan, plan.row_perm, plan.col_perm)
        return None if same or self._remake is None else self._remake(cpu)

    # ---- the plan on the device

    @cached_property
    def _column_arrays(self) -> dict[str, Buffer | None]:
        plan = self.plan
        names = ("col_ptr", "row", "diag", "row_ptr", "col", "place", "u_ptr")
        places = plan.map if plan.map.size else np.zeros(1, plan.map.dtype)  # read from even if there are none
        maps = {"map_ptr": plan.map_ptr, "map16": places, "map32": places}
        if not plan.has_maps:
            maps = dict.fromkeys(maps)
        else:
            maps["map32" if plan.map.dtype == np.uint16 else "map16"] = None
        arrays = {name: getattr(plan, name) for name in names} | maps
        return {name: self.upload(array) for name, array in arrays.items()}

    def column_record(self, file: str) -> np.ndarray:
        """``struct ColumnArrays`` of columns.cuh."""
        return record(struct(file, "ColumnArrays"), **addresses(self._column_arrays), n=self.plan.n)

    @cached_property
    def _entries(self) -> tuple[Buffer | None, Buffer | None]:
        """The canonical value at each place of L + U, -1 where there is fill, and the scale of canonical values."""
        plan = self.plan
        source = np.full(plan.nnz, -1, np.int32)
        source[plan.entry_place] = plan.entry_source
        return self.upload(source), self.upload(plan.entry_scale)

    @cached_property
    def _orders(self) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        plan = self.plan
        return [
            (self.upload(plan.row_perm), self.upload(plan.row_scale)),
            (self.upload(plan.col_perm), self.upload(plan.col_scale)),
        ]


def is_planned(cpu: Any, plan: ColumnPlan, row_perm: np.ndarray, col_perm: np.ndarray) -> bool:
    """Whether the CPU engine's factor has these pivots and the scales of the plan."""
    scales = ((cpu.symbolic.row_scale, plan.row_scale), (cpu.symbolic.col_scale, plan.col_scale))
    return all(np.array_equal(*pair) for pair in ((cpu.row_perm, row_perm), (cpu.col_perm, col_perm), *scales))
