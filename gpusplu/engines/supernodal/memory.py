"""Device memory of fronts: the uploaded arrays of a plan, their total size, and plans within a limit."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from ...common.matrix import Pattern
from ...cost.calibration import for_core
from ...cuda.devices import SMALLEST, usable_bytes
from ...cuda.layout import constant
from ..device.buffers import GROUP, STATUS, Memory, vector_sizes
from ..interface import Analysis
from .plan import Limits, Plan, make_best_plan, make_plan

BLOCK_SHARE = 0.25  # of the free memory for contribution blocks; above this they share memory, with more launches
STREAM_SHARE = 0.9  # of the free memory that a streaming factor fills: others need some too
SHARED = "shared/solve.hpp"
CONTROL = constant(SHARED, "SOLVE_CONTROL")  # words ahead of the counters of a solve
TICKETS = constant(SHARED, "SOLVE_TICKETS")  # words of every part of a solve
MOST_PLANS = 3  # for one limit: a plan that streams has a little more to upload than the previous one


# Uploaded arrays of a plan: names of the kernels' arguments, and of the plan's attributes.
FACTOR_ARRAYS = {
    "fronts": "front_records",
    "start": "start",
    "owner_ptr": "owner_ptr",
    "items": "items",
    "partial": "partial",
    "entry_source": "entry_source",
    "entry_place": "entry_place",
    "entry_scale": "entry_scale",
    "large": "large_fronts",
    "tasks": "large_tasks",
    "chunk_ptr": "large_chunk_ptr",
    "chunks": "large_chunks",
    "place": "place",
}
SOLVE_ARRAYS = {
    "slots": "solve_schedule.slots",
    "below": "below",
    "chunk_ptr": "solve_schedule.chunk_ptr",
    "chunks": "solve_schedule.chunks",
    "fronts": "solve_schedule.large",
    "forward": "solve_schedule.large_forward",
    "backward": "solve_schedule.large_backward",
}
ORDER_ARRAYS = {name: name for name in ("row_perm", "row_scale", "col_perm", "col_scale")}
ALL_ARRAYS = (FACTOR_ARRAYS, SOLVE_ARRAYS, ORDER_ARRAYS)


def arrays_of(plan: Plan, names: dict[str, str]) -> dict[str, np.ndarray | None]:
    """Arrays of a plan, by the names of arguments."""
    return {argument: attrgetter(name)(plan) for argument, name in names.items()}


def factor_memory(plan: Plan) -> Memory:
    """Arrays that a factorization writes."""
    itemsize = np.dtype(plan.scalar).itemsize
    return Memory(
        {"factor": plan.factor_size * itemsize, "blocks": plan.block_size * itemsize},
        {"counters": 4 * plan.nf, "arrivals": 4 * plan.nf, "large_counters": 4 * plan.large_counters},
        {"host_factor": plan.host_size * itemsize},
    )


def vector_memory(plan: Plan, capacity: int) -> Memory:
    """Arrays that solves with up to `capacity` right-hand sides write, besides the vectors of any engine."""
    itemsize, below = np.dtype(plan.scalar).itemsize, max(1, plan.below.size)
    columns = plan.solve_columns(capacity)
    groups = -(-capacity // columns)
    sent = plan.n + below if capacity == 1 else plan.n * groups * columns
    return Memory(
        {"work": plan.n * groups * columns * itemsize, "vectors": below * groups * columns * itemsize},
        {
            "counters": 4 * (CONTROL + 2 * -(-capacity // GROUP) * plan.nf),  # for Vectors.groups
            "control": 4 * TICKETS * plan.solve_parts,
            "progress": 4 * groups * int(np.count_nonzero(plan.is_large)),
            "packets": 2 * sent * itemsize,
        },
    )


def estimated_bytes(plan: Plan, pattern: Pattern) -> int:
    """Estimate of `needed_bytes`, at no cost."""
    arrays = (plan.front_records, plan.items, plan.entry_source, plan.entry_place, plan.entry_scale, plan.gather_source)
    itemsize = np.dtype(plan.scalar).itemsize
    scalars = plan.factor_size + plan.block_size + 2 * pattern.nnz + pattern.size + 6 * plan.n + 3 * plan.below.size
    return int(sum(array.nbytes for array in arrays) + scalars * itemsize + 12 * pattern.nnz + 8 * plan.below.size)


def needed_bytes(plan: Plan, pattern: Pattern) -> int:
    """Device memory of the arrays of a plan and of a factor with one right-hand side at a time [bytes]."""
    n, nnz, itemsize = pattern.n, pattern.nnz, np.dtype(plan.scalar).itemsize
    core = pattern.core
    sizes = [] if core.identity else [core.source.nbytes, core.source_ptr.nbytes]
    sizes += [8 * (n + 1), 4 * nnz]  # A by columns
    # By rows, or which values are compared.
    sizes += [4 * nnz] if plan.one_triangle else [8 * (n + 1), 4 * nnz, 4 * nnz]
    sizes += [nnz * itemsize, nnz * itemsize, pattern.size * itemsize, STATUS.itemsize]
    memory = factor_memory(plan)
    own = buffer_bytes([*sizes, *memory.empty.values(), *memory.zeros.values()])
    return own + plan_bytes(plan) + all_vector_bytes(plan, 1)


def plan_bytes(plan: Plan) -> int:
    """Device memory of the arrays of a plan [bytes]."""
    arrays = [array for names in ALL_ARRAYS for array in arrays_of(plan, names).values()]
    return buffer_bytes([0 if array is None else array.nbytes for array in arrays])


def all_vector_bytes(plan: Plan, capacity: int) -> int:
    """Memory of `Vectors` [bytes]."""
    memory = vector_memory(plan, capacity)
    shared = vector_sizes(plan.n, capacity, np.dtype(plan.scalar).itemsize)
    return buffer_bytes([*shared, *memory.empty.values(), *memory.zeros.values()])


def buffer_bytes(sizes: list[int]) -> int:
    """Of buffers of these sizes [bytes]."""
    return int(sum(max(int(size), SMALLEST) for size in sizes))


def limits_of(device: Any, device_memory: int | None) -> Limits:
    """Limits of a plan for `device`."""
    block_bytes = int(BLOCK_SHARE * usable_bytes(device, device_memory))
    known = device.shared_memory_bytes, device.multiprocessors, device.arch
    return Limits(*known, block_bytes, costs=for_core(device.name))


def plan_within(cores: list[Any], pattern: Pattern, dtype: Any, device: Any, device_memory: int | None) -> Analysis:
    """The best analysis by `make_best_plan`, and a plan within the usable memory.

    If the factor does not fit, it streams; if that does not fit either, the plan is the one with the least memory.
    The choice of an analysis does not depend on the memory, so that results do not either.
    """
    limits, usable = limits_of(device, device_memory), usable_bytes(device, device_memory)
    core, plan, seconds = make_best_plan(cores, pattern, dtype, limits)
    compared = tuple((one.ordering, took) for one, took in zip(cores, seconds, strict=True)) if len(cores) > 1 else ()
    if missing_bytes(plan, pattern, usable) == 0:
        return Analysis(core, plan, compared)
    usable = min(usable, int(STREAM_SHARE * device.free_bytes()))
    memory_bytes = arena_bytes(plan) + usable - needed_bytes(plan, pattern) - all_vector_bytes(plan, GROUP)
    for _ in range(MOST_PLANS):
        plan = make_plan(core, pattern, dtype, replace(limits, memory_bytes=max(memory_bytes, 1)))
        excess = needed_bytes(plan, pattern) + all_vector_bytes(plan, GROUP) - usable
        if excess <= 0 or arena_bytes(plan) > memory_bytes:
            break
        memory_bytes -= excess
    return Analysis(core, plan, compared)


def missing_bytes(plan: Plan, pattern: Pattern, usable: int) -> int:
    """Bytes needed beyond `usable`; counted exactly only if it could be close."""
    if 2 * estimated_bytes(plan, pattern) < usable:  # the estimate omits less than it includes
        return 0
    return max(0, needed_bytes(plan, pattern) - usable)


def arena_bytes(plan: Plan) -> int:
    """Of factors and contribution blocks [bytes]."""
    return int(sum(factor_memory(plan).empty.values()))
