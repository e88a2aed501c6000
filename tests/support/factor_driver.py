"""Runs the factor kernels in the emulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusplu.cuda import layout
from gpusplu.engines.supernodal.plan import Plan

from . import emulated

# File and kernel by phase
SMALL = (
    ("fronts/warp_fronts.cu", "factor_warps"),
    ("fronts/block_fronts.cu", "factor_small"),
    ("fronts/block_fronts.cu", "factor_blocks"),
)
WARPS = layout.constant("shared/fronts.hpp", "WARP_FRONTS")


@dataclass
class Factored:
    """Arenas after the factorization, its status, and how many children of a front of a later phase are done."""

    factor: np.ndarray
    blocks: np.ndarray
    status: np.ndarray
    arrivals: np.ndarray


def factor(
    plan: Plan,
    values: np.ndarray,
    tiny: float = 1e-10,
    seed: int = 0,
    sanitize: bool = False,
    first: int = 0,
    arrived: np.ndarray | None = None,
) -> Factored:
    """Phases `first` to 2 of a plan; what no kernel writes stays NaN.

    `arrived`: fronts whose children of earlier phases have arrived before.
    """
    dtype = values.dtype
    result = Factored(
        np.full(int(plan.factor_size), np.nan, dtype),
        np.full(max(int(plan.block_size), 1), np.nan, dtype),
        np.zeros((), layout.struct("shared/values.hpp", "Status")),
        np.zeros(plan.nf, np.uint32),
    )
    counters, arrivals = np.zeros(plan.nf, np.uint32), result.arrivals
    if arrived is not None:
        records = plan.front_records[arrived]
        arrivals[arrived] = records["children"] - records["pending"]
    arrays = {
        "fronts": plan.front_records,
        "owner_ptr": np.asarray(plan.owner_ptr),
        "items": plan.items,
        "partial": np.asarray(plan.partial),
        "entry_source": np.asarray(plan.entry_source),
        "entry_place": np.asarray(plan.entry_place),
        "entry_scale": np.asarray(plan.entry_scale),
        "values": values,
        "factor": result.factor,
        "blocks": result.blocks,
        "counters": counters,
        "arrivals": arrivals,
        "status": result.status,
    }
    for launch in plan.launches:
        if not first <= launch["phase"] < 3:
            continue
        file, kernel = SMALL[launch["phase"]]
        library = emulated.compile(file, dtype.char, int(plan.cholesky), sanitize=sanitize)
        args = np.zeros((), layout.struct(file, "FactorArgs"))
        for name, array in arrays.items():
            args[name] = array.ctypes.data if array.size else 0
        start = np.ascontiguousarray(plan.start[launch["begin"] : launch["begin"] + launch["count"]])
        args["start"], args["count"], args["walk"], args["tiny"] = start.ctypes.data, len(start), 1, tiny
        grid = -(-len(start) // WARPS) if launch["phase"] == 0 else len(start)
        library.launch(kernel, grid, int(launch["threads"]), int(launch["shared_bytes"]), args, seed)
    records, large = plan.front_records, np.asarray(plan.phase) == 3
    assert not counters.any() and not arrivals[~large].any()
    if first == 0:
        assert (arrivals[large] == (records["children"] - records["pending"])[large]).all()
    return result
