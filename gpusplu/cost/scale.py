"""What a factorization needs: one GPU, several, or several machines; measurements are in docs/use/scaling.md.

Predictions are right within a factor of two, for decisions that differ by ten; engines predict better after planning.
The constants are not entries of the table: they describe machines that are not present, so nothing can be fitted, and
only the text of explain() depends on them.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..common.stats import duration

#: Memory of the device that rates were measured on, an H200; used if no device is present [bytes].
DEVICE_BYTES = 141_000_000_000
#: Of a host with such devices, and of a machine of a cluster [bytes].
HOST_BYTES, MACHINE_BYTES = 1_000_000_000_000, 512_000_000_000
#: Devices of one host, and the speedup of a refactorization on two, three and more of them, as predicted by schedules
#: of large factors in three dimensions with too little memory to share fronts (docs/use/scaling.md); not measured.
MOST_DEVICES, SEVERAL = 8, {1: 1.0, 2: 1.4, 3: 1.6}
MANY = 1.75
# Memory besides the bytes of factors: contribution blocks on a device that keeps everything; MUMPS' ranks together.
UNSPLIT, BY_MUMPS = 4.0, 2.3
# Rates of large fronts on a device, and of the cores of a machine, 14 GFLOP/s each, at half of that together [flop/s].
DEVICE_RATE, MACHINE_RATE = 28e12, 64 * 14e9 / 2
# Factors that stream go to the host and come back [bytes/s].
LINK_RATE = 50e9
#: Arithmetic below which rates of large fronts are not applicable [flop].
LARGE = 1e11


class Needs(NamedTuple):
    """Memory and time of one factorization.

    Attributes
    ----------
    factors, device, front : float
        Bytes of the factors; of a device that holds all at once; of the largest front.
    on_device, streamed, on_machines : float
        Predicted seconds of a refactorization on one device that is large enough, on one that is not, and on as many
        machines as it takes [s].
    machines : int
    """

    factors: float
    device: float
    front: float
    on_device: float
    streamed: float
    on_machines: float
    machines: int


def needs(fill: float, flops: float, itemsize: int, triangles: int, widest: float) -> Needs:
    """For factors with `fill` entries in each of one or two triangles, and a widest supernode of `widest` columns."""
    factors = fill * itemsize * triangles
    machines = ceil(BY_MUMPS * factors / MACHINE_BYTES)
    on_device = flops / DEVICE_RATE
    return Needs(
        factors,
        UNSPLIT * factors,
        itemsize * widest**2,
        on_device,
        max(on_device, factors / LINK_RATE),
        flops / (machines * MACHINE_RATE) if machines else 0.0,
        machines,
    )


def needs_of(core: Any, itemsize: int) -> Needs:
    """For the factors that a ``_core.Symbolic`` predicts."""
    widest = int(np.diff(core.super_ptr).max(initial=0))
    return needs(core.lnz, core.flops, itemsize, 2 if core.kind == "lu" else 1, widest)


def may_stream(needed: Needs, device_bytes: float) -> bool:
    """Whether one device can factor out of core: the host holds the factor, and the largest front fits twice."""
    return needed.factors <= HOST_BYTES and 2 * needed.front <= device_bytes


def on_several(needed: Needs, devices: int) -> float:
    """Predicted seconds of a refactorization on this number of devices [s]."""
    return needed.on_device / SEVERAL.get(devices, MANY)


def advice(needed: Needs, flops: float, device_bytes: float = DEVICE_BYTES, devices: int = 1) -> str:
    """A sentence for explain(); `device_bytes`: memory of each of the `devices` requested devices."""
    memory = f"{size(needed.factors)} of factors, about {size(needed.device)} on a device"
    large = flops >= LARGE
    if devices > 1 and device_bytes < needed.device <= devices * device_bytes:
        seconds = f", {lasting(on_several(needed, devices))} a refactorization" if large else ""
        return f"{memory}, more than {size(device_bytes)}: these {devices} GPUs hold them{seconds}"
    if needed.device <= device_bytes:
        seconds = f", {lasting(needed.on_device)} a refactorization on an H200" if large else ""
        return f"{memory}: one GPU is enough{seconds}"
    several = ceil(needed.device / device_bytes)
    alternatives = []
    if may_stream(needed, device_bytes):
        alternatives.append(f"streaming through one GPU, {lasting(needed.streamed)} a refactorization")
    if several <= MOST_DEVICES:
        alternatives.append(f"{several} GPUs of one host, device='all', {lasting(on_several(needed, several))}")
    cluster = (
        f"a cluster, {needed.machines} x {size(MACHINE_BYTES)}" if needed.machines > 1 else "a machine without GPUs"
    )
    alternatives.append(f"{cluster}, {lasting(needed.on_machines)}: gpusplu.distributed")
    return f"{memory}, more than {size(device_bytes)}: {', or '.join(alternatives)}"


def lasting(seconds: float) -> str:
    """Seconds with a unit that also fits long times."""
    for scale, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * scale:
            return f"{seconds / scale:.2g} {unit}"
    return duration(float(f"{seconds:.2g}"))


def size(count: float) -> str:
    """Bytes with a unit."""
    for scale, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
