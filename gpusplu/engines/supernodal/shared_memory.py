"""Plans for several devices within their memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...common.matrix import Pattern
from ...cost.calibration import costs_of, for_core
from ...cuda.devices import usable_bytes
from ..device.buffers import STATUS
from ..interface import Analysis
from .branches import link_of
from .front_mapping import FrontMapping, map_fronts
from .memory import (
    BLOCK_SHARE,
    all_vector_bytes,
    arena_bytes,
    buffer_bytes,
    factor_memory,
    limits_of,
    needed_bytes,
    plan_bytes,
)
from .plan import Limits, Plan, make_best_plan, predict
from .shared_plan import SharedPlan, share_plan, shares_of

MOST_HALVINGS = 8  # of the memory for contribution blocks that a device has at a time


def plan_shared(
    cores: list[Any], pattern: Pattern, dtype: Any, devices: Sequence[Any], device_memory: int | None
) -> Analysis:
    """The best analysis and its fronts as `plan_within` returns them if they fit, mapped to the devices.

    If they do not fit, the plan is the closest one.
    """
    limits = common_limits(devices, device_memory)
    core, plan, seconds = make_best_plan(cores, pattern, dtype, limits)
    compared = tuple((one.ordering, took) for one, took in zip(cores, seconds, strict=True)) if len(cores) > 1 else ()
    usable = [usable_bytes(device, device_memory) for device in devices]
    overhead = needed_bytes(plan, pattern) - arena_bytes(plan)
    available = [max(0, int((1 - BLOCK_SHARE) * (free - overhead))) for free in usable]
    peers = reach_each_other(devices)
    link = link_of(costs_of(devices[0].name), peers)
    speeds = speeds_of(devices, core, dtype, limits)
    values = pattern.nnz * np.dtype(dtype).itemsize
    mapping = map_fronts(plan, speeds, available, link, values=values)
    shared = shared_within(plan, mapping, pattern, usable)
    if mapping.shared and not fits(shared, pattern, usable):  # a front that all devices share takes memory of all
        shared = shared_within(
            plan, map_fronts(plan, speeds, available, link, share=False, values=values), pattern, usable
        )
    shared.peer_to_peer = peers
    return Analysis(core, shared, compared)


def shared_within(plan: Plan, mapping: FrontMapping, pattern: Pattern, usable: list[int]) -> SharedPlan:
    """The plan with its fronts as mapped, with as much memory for blocks as there is, or the least."""
    block_bytes = int(BLOCK_SHARE * min(usable))
    shared = share_plan(plan, mapping, len(usable), block_bytes)
    for _ in range(MOST_HALVINGS):
        if fits(shared, pattern, usable):
            break
        block_bytes //= 2
        smaller = share_plan(plan, mapping, len(usable), block_bytes)
        if max(smaller.block_sizes) >= 0.95 * max(shared.block_sizes):
            break
        shared = smaller
    return shared


def fits(plan: SharedPlan, pattern: Pattern, usable: list[int]) -> bool:
    """Whether each device has the memory that it needs."""
    needed = needed_of_each(plan, pattern)
    return all(wanted <= free for wanted, free in zip(needed, usable, strict=True))


def common_limits(devices: Sequence[Any], device_memory: int | None) -> Limits:
    """Limits of the first device, with an amount of shared memory that all devices have."""
    shared = min(device.shared_memory_bytes for device in devices)
    return replace(limits_of(devices[0], device_memory), shared_memory_bytes=shared, block_bytes=0)


def speeds_of(devices: Sequence[Any], core: Any, dtype: Any, limits: Limits) -> list[float]:
    """Predicted speeds for this analysis, relative to the first device."""

    def seconds(device: Any) -> float:
        known = {"multiprocessors": device.multiprocessors, "arch": device.arch, "costs": for_core(device.name)}
        return predict(core, dtype, replace(limits, **known))[0]

    kinds = [(device.name, device.multiprocessors) for device in devices]
    found = {kind: seconds(device) for kind, device in zip(kinds, devices, strict=True)}
    return [found[kinds[0]] / found[kind] for kind in kinds]


def reach_each_other(devices: Sequence[Any]) -> bool:
    """Whether all devices have peer access, so that no copy goes through the host."""
    return all(one.reaches(other) for one in devices for other in devices)


def needed_of_each(plan: SharedPlan, pattern: Pattern) -> list[int]:
    """Memory of each device for a factor and one right-hand side at a time [bytes]."""
    itemsize, shares = np.dtype(plan.scalar).itemsize, shares_of(plan)
    staged = sum(share.ld for share in shares[1:]) * itemsize
    found = [needed_bytes(shares[0], pattern) + staged]
    for share in shares[1:]:
        memory = factor_memory(share)
        sizes = [*memory.empty.values(), *memory.zeros.values(), pattern.nnz * itemsize, STATUS.itemsize]
        own = buffer_bytes([*sizes, *2 * [share.ld * itemsize]])  # with rows of b and x
        found.append(own + plan_bytes(share) + all_vector_bytes(share, 1))
    return found
