"""Device memory that factors write, and how much of it they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceMemoryError
from ..kernels.layout import struct
from ..matrix import Pattern
from ..plan import Plan

if TYPE_CHECKING:
    from .program import Program

CONTROL = 8  # words ahead of the counters of a solve
GROUP = 4  # right-hand sides that a solve kernel takes together where there are several
STAGED = 1 << 26  # bytes of pinned memory at most; larger arrays are copied from and to pageable memory
STATUS = struct("front.cuh", "Status")


class Buffers:
    """What one factor writes on the device, all of it allocated here or, for right-hand sides, on first use.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    def __init__(self, program: Program, limit: int | None = None):
        self._program, device = program, program.device
        plan, pattern, itemsize = program.plan, program.pattern, program.dtype.itemsize
        nnz_bytes = pattern.nnz * itemsize
        sizes = {
            "values": nnz_bytes,
            "previous": nnz_bytes,
            "input": pattern.size * itemsize,
            "factor": plan.factor_size * itemsize,
            "blocks": plan.block_size * itemsize,
        }
        needed, free = needed_bytes(plan, pattern) - program.nbytes, usable_bytes(device, limit)
        if needed > free:
            raise DeviceMemoryError(needed, free)
        self.values, self.previous, self.input, self.factor, self.blocks = map(device.empty, sizes.values())
        self.counters = device.zeros(4 * plan.nf)
        self.large_counters = device.zeros(4 * plan.large_counters)
        self.device_status = device.zeros(STATUS.itemsize)
        self.status = device.pinned(STATUS, 1)[0:1].reshape(())
        # residual, x_norm, b_norm, a_norm, the last members of the struct
        self.norms = self.status.reshape(1).view(np.uint8)[-32:].view(np.float64)
        self._staging: np.ndarray | None = None
        self._vectors: dict[bool, Vectors] = {}
        self.nbytes = sum(sizes.values()) + self.counters.nbytes + self.device_status.nbytes
        device.own_queue().synchronize()

    def vectors(self, nrhs: int) -> Vectors:
        """Buffers for that many right-hand sides."""
        several = nrhs > 1
        if several not in self._vectors:
            self._vectors[several] = Vectors(self._program, self.rhs_at_once(32) if several else 1)
            self.nbytes += self._vectors[several].nbytes
        return self._vectors[several]

    def rhs_at_once(self, nrhs: int) -> int:
        """Right-hand sides that are solved for together if `nrhs` are given: fewer where memory is short."""
        if nrhs == 1:
            return 1  # the driver is not asked for free memory at every solve
        if True in self._vectors:
            return min(nrhs, self._vectors[True].capacity)
        capacity = 32
        while capacity > GROUP and Vectors.bytes_for(self._program, capacity) > self._program.device.free_bytes() // 2:
            capacity //= 2
        return min(nrhs, capacity)

    def staging(self, nbytes: int) -> np.ndarray:
        """Host memory of that size, pinned unless it is large."""
        if nbytes > STAGED:
            return np.empty(nbytes, np.uint8)
        if self._staging is None or self._staging.size < nbytes:
            self._staging = self._program.device.pinned(np.dtype(np.uint8), nbytes)
        return self._staging[:nbytes]

    def stage(self, array: np.ndarray) -> np.ndarray:
        """`array`, column by column, where copies can take it from."""
        if array.nbytes > STAGED:
            return array
        staged = self.staging(array.nbytes)
        staged.view(array.dtype)[...] = array.reshape(-1, order="F")
        return staged


class Vectors:
    """Work memory of solves with up to `capacity` right-hand sides."""

    def __init__(self, program: Program, capacity: int):
        device, plan, itemsize = program.device, program.plan, program.dtype.itemsize
        self.capacity = capacity
        columns = 1 if capacity == 1 else GROUP
        self.groups = -(-capacity // columns)
        dense = plan.n * capacity * itemsize
        self.b, self.x, self.residual, self.step, self.kept = (device.empty(dense) for _ in range(5))
        self.work = device.empty(plan.n * self.groups * columns * itemsize)
        self.vectors = device.empty(max(1, plan.below.size) * self.groups * columns * itemsize)
        self.counters = device.zeros(4 * (CONTROL + 2 * self.groups * plan.nf))
        self.progress = device.zeros(16 * self.groups * program.large_fronts)
        self.mail = device.zeros(2 * (plan.n + max(1, plan.below.size)) * itemsize)
        self.norms = device.zeros(8 * (1 + 3 * capacity))
        self.done = device.zeros(4)
        self.nbytes = Vectors.bytes_for(program, capacity)
        device.own_queue().synchronize()

    @staticmethod
    def bytes_for(program: Program, capacity: int) -> int:
        """Device memory that vectors of this capacity take [bytes]."""
        plan = program.plan
        values = (6 * plan.n + plan.below.size) * capacity + 2 * (plan.n + plan.below.size)
        return int(values * program.dtype.itemsize + 8 * capacity * plan.nf)


def needed_bytes(plan: Plan, pattern: Pattern) -> int:
    """Device memory of the arrays of a plan and of a factor with one right-hand side at a time [bytes]."""
    arrays = (plan.front_records, plan.items, plan.entry_source, plan.entry_place, plan.entry_scale, plan.gather_source)
    itemsize = np.dtype(plan.scalar).itemsize
    scalars = plan.factor_size + plan.block_size + 2 * pattern.nnz + pattern.size + 6 * plan.n + 3 * plan.below.size
    return int(sum(array.nbytes for array in arrays) + scalars * itemsize + 12 * pattern.nnz + 8 * plan.below.size)


def usable_bytes(device: Any, limit: int | None) -> int:
    """Device memory that may be used: what is free, but no more than the caller allows [bytes]."""
    free = int(device.free_bytes())
    return free if limit is None else min(limit, free)
