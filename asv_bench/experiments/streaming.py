"""Factors larger than the allowed device memory, compared with a factor that has all the memory it needs.

`shares` are parts of the memory that a factor needs, in the order of measurement; the first must be 1. Values and
right-hand side are on the device; seconds are medians of a call up to the end of a synchronization. `both_s`:
refactor_solve; `same`: whether the solution has the same bits as the first one. It also prints the rates of copies, the
work of the branches below the large fronts (`branches`), and the rate of the CPU engine on a small case
(docs/internals/decisions).
"""

import numpy as np

import gpusplu as gs
from gpusplu import gallery

from .. import internals, records
from ..matrices import load, select
from ..options import device_clock, measured, note
from ..phases import factored_by_fronts, wall_of_fronts
from ..timing import HostClock

CASES = ("elast:40x40x40", "poisson:80x80x80")
PEERS, BUDGET = (), 0.2
SHARES = [1, 0.6, 0.3, 0.2, 0.15, 0.12]
COPIED = 1 << 29
RATE_OF = 20  # elasticity of so many elements a side, for the CPU engine


def add_arguments(parser):
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)


def say_rates(clock):
    """GB/s from and to the device, page-locked memory, seconds to lock a GB; the CPU engine's Gflop/s."""
    import cupy

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    locking, memory = clock.call(lambda: cupy.cuda.PinnedMemory(COPIED))
    there = cupy.empty(COPIED, np.uint8)
    pairs = (memory.ptr, there.data.ptr), (there.data.ptr, memory.ptr)
    down, up = (
        1e-9 * COPIED / clock.wall(lambda a=a: runtime.memcpyAsync(*a, COPIED, runtime.memcpyDefault, stream.ptr))
        for a in pairs
    )
    lock = locking / (1e-9 * COPIED)
    note(f"page-locked memory: {down:.1f} GB/s from and {up:.1f} to the device; {lock:.2f} s a GB to lock")
    A = gallery.elasticity(RATE_OF, RATE_OF, RATE_OF)
    factor = gs.cholesky(A, engine="cpu", ordering="nd")
    rate = factor.stats.flops / HostClock().wall(lambda: factor.refactor(A.data))
    note(f"CPU engine: {1e-9 * rate:.0f} Gflop/s")


def measure(A, factor, clock):
    """Numbers of one factor, and its solution."""
    found, x = wall_of_fronts(A, factor, clock)
    stats, plan = factor.stats, internals.front_plan(factor)
    found |= {
        "arena_bytes": plan.factor_size * A.dtype.itemsize,
        "block_bytes": plan.block_size * A.dtype.itemsize,
        "host_bytes": stats.host_bytes,
        "n_windows": stats.n_windows,
        "n_segments": plan.n_segments,
        "predicted_refactor_s": stats.predicted_factor_seconds,
        "predicted_solve_s": stats.predicted_solve_seconds,
        "n_refinement": stats.n_refinement,
    }
    return found, x


def branches(plan):
    """Subtrees without large fronts, in all: what the CPU engine could take."""
    width, rows, small = plan.width.astype(float), plan.rows.astype(float), plan.phase < 3
    height = rows - width
    flops = (rows**3 - height**3) / 3 * (1 if plan.cholesky else 2)
    tops = np.flatnonzero(small & (plan.parent >= 0))
    tops = tops[plan.phase[plan.parent[tops]] == 3]
    return {
        "count": len(tops),
        "flop": float(flops[small].sum()),
        "of_flop": float(flops.sum()),
        "block_bytes": float(8 * (height[tops] ** 2).sum()),
        "device_s": float(sum(plan.phase_seconds[:3])),
    }


def measure_case(case, shares, clock):
    """A record of every share."""
    A, first = load(case.name), None
    whole = factored_by_fronts(A, case.definite)
    needed = internals.needed_bytes(whole)
    note(f"branches of {case.name}: {branches(internals.front_plan(whole))}")
    for share in shares:
        memory = int(share * needed)
        more = {"share": share, "needed_bytes": needed, "memory_bytes": memory}
        try:
            factor = whole if share == 1 else factored_by_fronts(A, case.definite, device_memory=memory)
        except gs.DeviceMemoryError as error:
            yield records.make(case.name, "supernodal", "step", None, **more, smallest_bytes=error.needed)
            continue
        found, x = measure(A, factor, clock)
        first = x if first is None else first
        more |= found | {"same": bool((x == first).all())}
        error = factor.backward_error
        yield records.make(case.name, "supernodal", "step", found["both_s"], backward_error=error, **more)


def run(arguments):
    clock = device_clock(arguments)
    if not arguments.emulated:
        say_rates(clock)
    yield from measured(arguments, select(arguments.cases), lambda case: measure_case(case, arguments.shares, clock))
