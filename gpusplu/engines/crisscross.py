"""The crisscross engine: columns by busy waiting up to a division point, and a dense corner behind it.

Chen, Wang, Yang et al., crisscross blocked LU for circuit matrices on GPUs; crisscross_plan.py says what is done where,
crisscross_model.py how the division point is chosen. The sparse kernel is sflu's and leaves U12 and the Schur
complement behind; the corner is a front of the supernodal engine, factored and solved with by its kernels. A solve is
the sweep forward of the columns, the corner, and the sweep backward.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..column_plan import ColumnPlan
from ..crisscross_model import Curves, predict_divisions
from ..crisscross_plan import divide
from ..kernels.launch import Buffer, Queue
from ..matrix import Pattern
from ..plan import Limits
from .buffers import Buffers, Memory, Vectors
from .program import Program
from .sflu import SfluProgram
from .supernodal import FrontProgram

CORNER = "corner."  # before the names of what the corner's front writes


class CrisscrossProgram(SfluProgram):
    """A plan of columns and a corner in the memory of a device.

    Attributes
    ----------
    curves : Curves
        Predicted seconds by division point; what the division was chosen by, unless `forced`.
    """

    engine = "crisscross"
    forced: int | None = None  # a division point, for measurements

    def __init__(
        self,
        device: Any,
        plan: ColumnPlan,
        pattern: Pattern,
        dtype: np.dtype,
        remake: Callable[[Any], Program] | None = None,
        pivot_threshold: float = 0.1,
    ):
        self._limits = limits = Limits(device.shared_memory_bytes, device.multiprocessors, device.arch)
        self.curves: Curves = predict_divisions(plan, dtype, limits)
        self._parts = divide(plan, self.curves.best if self.forced is None else self.forced, dtype, limits)
        self.corner: FrontProgram | None = None
        if self._parts.corner is not None:
            nothing: Any = SimpleNamespace(n=self._parts.corner.n, nnz=0, size=0, core=SimpleNamespace(identity=True))
            self.corner = FrontProgram(device, self._parts.corner, nothing)  # its values are the columns'
        super().__init__(device, plan, pattern, dtype, remake, pivot_threshold)
        self.flops = 2.0 * self._parts.multiply_adds + plan.nnz + (self.corner.flops if self.corner else 0.0)

    def prepare(self) -> None:
        super().prepare()
        if self.corner is not None:
            self.corner.prepare()

    @property
    def division(self) -> int:
        return self._parts.division

    @property
    def factor_seconds(self) -> float:  # type: ignore[override]
        return float(sum(self._predicted))

    @cached_property
    def _predicted(self) -> tuple[float, float]:
        """Seconds of both parts at the division taken."""
        curves = self.curves
        if self.division not in curves.division:
            curves = predict_divisions(self.plan, self.dtype, self._limits, np.array([self.division]))
        here = int(np.flatnonzero(curves.division == self.division)[0])
        return float(curves.sparse[here]), float(curves.dense[here])

    @property
    def details(self) -> dict[str, Any]:
        sparse, dense = self._predicted
        return {"division": self.division, "predicted_sparse_seconds": sparse, "predicted_dense_seconds": dense}

    def _count_bytes(self) -> int:
        return super()._count_bytes() + (self.corner.needed_bytes if self.corner else 0)

    def factor_memory(self) -> Memory:
        return _with_corner(super().factor_memory(), self.corner.factor_memory() if self.corner else None)

    def vector_memory(self, capacity: int) -> Memory:
        memory = _with_corner(
            super().vector_memory(capacity), self.corner.vector_memory(capacity) if self.corner else None
        )
        order = self.n - self.division
        return memory._replace(empty={**memory.empty, "corner": order * capacity * self.dtype.itemsize})

    # ---- the plan on the device

    @property
    def _factored_pattern(self) -> tuple[np.ndarray, ...]:
        return self._parts.truncated

    @cached_property
    def _column_arrays(self) -> dict[str, Buffer | None]:
        return {**super()._column_arrays, "diag": self.upload(self._parts.diag)}

    @cached_property
    def _row_diag(self) -> Buffer | None:
        return self.upload(self._parts.row_diag)

    # ---- commands

    def factor(self, queue: Queue, buffers: Buffers, values: Buffer) -> None:
        super().factor(queue, buffers, values)
        if self.corner is not None:
            self.corner.factor(queue, _of_corner(buffers), buffers.own["factor"])

    def solve(
        self, queue: Queue, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        if self.corner is None:
            super().solve(queue, buffers, vectors, trans, nrhs, b, x)
            return
        count, inner = self.groups.count, vectors.own["corner"]
        self._solve_groups(queue, buffers, vectors, trans, nrhs, b, x, np.array([0, count]), more=True)
        self.corner.solve(queue, _of_corner(buffers), _of_corner(vectors), trans, nrhs, inner, inner)
        self._solve_groups(queue, buffers, vectors, trans, nrhs, b, x, np.array([count, 2 * count]))


def _with_corner(memory: Memory, corner: Memory | None) -> Memory:
    """What columns and corner need, the corner's under names of its own."""
    if corner is None:
        return memory
    named = [{CORNER + name: nbytes for name, nbytes in part.items()} for part in corner]
    return Memory(*({**own, **other} for own, other in zip(memory, named, strict=True)))


def _of_corner(buffers: Any) -> Any:
    """The corner's share of buffers or vectors, under the names that its program knows."""
    own = {name.removeprefix(CORNER): buffer for name, buffer in buffers.own.items() if name.startswith(CORNER)}
    if isinstance(buffers, Vectors):
        return SimpleNamespace(own=own, groups=buffers.groups)
    return SimpleNamespace(own=own, device_status=buffers.device_status)
