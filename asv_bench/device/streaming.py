"""Factors larger than the device memory allowed: seconds beside those of a factor that has all it needs.

    python asv_bench/device/streaming.py --out records.jsonl [--shares 1 0.3 0.15] [case ...]

Needs CuPy; GPUSPLU_MATRICES for real matrices. `shares` are parts of what a factor needs if nothing is saved, in the
order in which they are measured; the first has to be 1. One JSON line a case and share is appended to --out:

    {"case", "share", "memory_bytes", "host_bytes", "n_windows", "refactor_s", "predicted_refactor_s", "solve_s",
     "predicted_solve_s", "both_s", "same", "backward_error", ...}

Values and right-hand side are on the device; seconds are those of a call up to the end of a synchronization, medians.
`both`: refactor_solve; `same`: whether the solution has the bits of the first one. Printed besides: what copies alone
can do, what the branches below the large fronts would be for the CPU engine, and its rate on a case that is small
enough to wait for (docs/decisions).
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from cases import select
from clocks import DeviceClock, HostClock
from common import load, table
from harness import append, commit_name

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines import front_memory

CASES = ["elast:40x40x40", "poisson:80x80x80"]
SHARES = [1, 0.6, 0.3, 0.2, 0.15, 0.12]
COPIED = 1 << 29


def copy_rates(clock):
    """GB/s from and to the device, page-locked memory, and seconds to lock a GB."""
    import cupy

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    locking, memory = clock.call(lambda: cupy.cuda.PinnedMemory(COPIED))
    there = cupy.empty(COPIED, np.uint8)
    pairs = (memory.ptr, there.data.ptr), (there.data.ptr, memory.ptr)
    rates = [
        1e-9 * COPIED / clock.wall(lambda a=a: runtime.memcpyAsync(*a, COPIED, runtime.memcpyDefault, stream.ptr))
        for a in pairs
    ]
    return rates, locking / (1e-9 * COPIED)


def measure(A, definite, memory, clock, whole=None):
    """Numbers of one factor, and its solution."""
    import cupy

    factorize = gs.cholesky if definite else gs.splu
    factor = whole or factorize(A, engine="supernodal", ordering="nd", device_memory=memory)
    values, b = cupy.asarray(A.data), cupy.asarray(np.random.default_rng(0).normal(size=A.shape[0]))
    refactor = clock.wall(lambda: factor.refactor(values))
    solve = clock.wall(lambda: factor.solve(b))
    both = clock.wall(lambda: factor.refactor_solve(values, b))
    stats, plan = factor.stats, factor._symbolic._plan
    numbers = {
        "memory_bytes": memory,
        "arena_bytes": plan.factor_size * A.dtype.itemsize,
        "block_bytes": plan.block_size * A.dtype.itemsize,
        "host_bytes": stats.host_bytes,
        "n_windows": stats.n_windows,
        "n_segments": len(plan.segment_ptr) - 1,
        "refactor_s": refactor,
        "predicted_refactor_s": stats.predicted_factor_seconds,
        "solve_s": solve,
        "predicted_solve_s": stats.predicted_solve_seconds,
        "both_s": both,
        "n_refinement": stats.n_refinement,
        "backward_error": factor.backward_error,
    }
    return numbers, np.asarray(factor.solve(b).get())


def measure_case(case, shares, clock):
    A = load(case.name)
    whole = (gs.cholesky if case.definite else gs.splu)(A, engine="supernodal", ordering="nd")
    needed = front_memory.needed_bytes(whole._symbolic._plan, whole._symbolic._pattern)
    first = None
    for share in shares:
        line = {"case": case.name, "share": share, "needed_bytes": needed}
        try:
            numbers, x = measure(A, case.definite, int(share * needed), clock, whole if share == 1 else None)
        except gs.DeviceMemoryError as error:
            yield line | {"memory_bytes": int(share * needed), "smallest_bytes": error.needed}
            continue
        first = x if first is None else first
        yield line | numbers | {"same": bool((x == first).all()), "commit": commit_name()}
    yield {"case": case.name, "branches": branches(whole._symbolic._plan)}


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


def cpu_rate(clock):
    """Flop/s of the CPU engine on a case of large fronts."""
    A = gallery.elasticity(20, 20, 20)
    factor = gs.cholesky(A, engine="cpu", ordering="nd")
    return factor.stats.flops / clock.wall(lambda: factor.refactor(A.data))


def row(line):
    def cell(name, scale, digits=1):
        return f"{scale * line[name]:.{digits}f}"

    start = [line["case"], f"{line['share']:.2f}", cell("memory_bytes", 1e-9, 2)]
    if "smallest_bytes" in line:
        return [*start, f"needs {cell('smallest_bytes', 1e-9, 2)} GB", *8 * ["-"]]
    times = [cell(f"{kind}_s", 1e3) for what in ("refactor", "solve") for kind in (what, f"predicted_{what}")]
    windows = f"{line['n_windows']} of {line['n_segments']}"
    error = f"{line['backward_error']:.0e}"
    return [*start, windows, cell("host_bytes", 1e-9, 2), *times, cell("both_s", 1e3), str(line["same"]), error]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    arguments = parser.parse_args()
    clock = DeviceClock()
    (down, up), locking = copy_rates(clock)
    print(f"page-locked memory: {down:.1f} GB/s from and {up:.1f} GB/s to the device; {locking:.2f} s a GB to lock")
    times = ("refactor", "pred", "solve", "pred", "both [ms]")
    names = ("case", "share", "GB", "windows", "host GB", *times, "same", "error")
    for case in select(arguments.cases):
        lines = list(measure_case(case, arguments.shares, clock))
        append(arguments.out, lines)
        print(table(names, [row(line) for line in lines if "share" in line]))
        print(f"branches of {case.name}: {lines[-1]['branches']}\n", flush=True)
    print(f"CPU engine: {1e-9 * cpu_rate(HostClock()):.0f} Gflop/s")


if __name__ == "__main__":
    main()
