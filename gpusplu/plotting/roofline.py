"""Roofline: the rate of a machine by arithmetic intensity, and where the phases of a factor lie below it.

S. Williams, A. Waterman and D. Patterson (Roofline: an insightful visual performance model, CACM 52, 2009): what does F
operations with B bytes cannot go faster than ``min(peak, bandwidth * F / B)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..common.timing import nothing, repeated, synchronizer
from ..engines import registry
from .drawing import BLUE, GREEN, RED, counted, is_dark, new_axes, plain_ticks

COPIED, ORDER, BUDGET = 96 << 20, 1400, 0.3  # bytes; of dense matrices; seconds of each measurement


@dataclass(frozen=True)
class Machine:
    """Measured peak rates of a machine.

    Attributes
    ----------
    name : str
    bandwidth : float
        Of memory: bytes read and written by copies [byte/s].
    rate : float
        Of products of dense matrices [flop/s].

    See Also
    --------
    machine, draw_roofline

    Examples
    --------
    >>> gs.plotting.Machine("my laptop", bandwidth=40e9, rate=200e9).rate
    200000000000.0
    """

    name: str
    bandwidth: float
    rate: float


@dataclass(frozen=True)
class Point:
    """A phase of a factor.

    Attributes
    ----------
    phase : str
    flops, bytes, seconds : float
        Of its last call; bytes are those that it cannot do without.

    See Also
    --------
    points, draw_roofline

    Examples
    --------
    >>> point = gs.plotting.Point("solve", flops=2e6, bytes=16e6, seconds=1e-3)
    >>> point.intensity, point.rate
    (0.125, 2000000000.0)
    """

    phase: str
    flops: float
    bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        """Operations for each byte [flop/byte]."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """Operations per second [flop/s]."""
        return self.flops / self.seconds


def machine(on_device: bool = False, dtype: Any = "d") -> Machine:
    """Measure the machine, for about a second: copies of large arrays and products of dense matrices.

    Parameters
    ----------
    on_device : bool, optional
        CuPy's current device; default: the processor.
    dtype : optional
        Of the matrices.

    Returns
    -------
    Machine

    See Also
    --------
    draw_roofline

    Examples
    --------
    >>> here = gs.plotting.machine()
    >>> here.bandwidth > 1e8 and here.rate > 1e8
    True
    """
    xp, finish, name = np, nothing, f"processor, {_core.num_threads()} threads"
    if on_device:
        import cupy

        xp, finish = cupy, synchronizer()
        name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    source, target = xp.ones(COPIED // 8), xp.zeros(COPIED // 8)
    a = xp.ones((ORDER, ORDER), dtype)
    copy = (lambda: xp.copyto(target, source)) if on_device else (lambda: _core.copy(target, source))
    bandwidth = 2 * COPIED / repeated(copy, BUDGET, finish)
    flops = 2 * ORDER**3 * (4 if np.dtype(dtype).kind == "c" else 1)
    return Machine(name, bandwidth, flops / repeated(lambda: a @ a, BUDGET, finish))


def points(factor: Any) -> list[Point]:
    """The phases of a factor that were called.

    A factorization reads A and writes the factor; a solve with one right-hand side reads the factor, that of one
    triangle twice. More traffic than that, as fronts make it, shows as distance from the roof.

    Parameters
    ----------
    factor : LUFactor, CholeskyFactor or LDLFactor

    Returns
    -------
    list of Point

    See Also
    --------
    draw_roofline

    Examples
    --------
    >>> lu = gs.splu(gs.gallery.poisson(20, 20))
    >>> x = lu.solve(np.ones(400))
    >>> [point.phase for point in gs.plotting.points(lu)]
    ['factor', 'solve']
    """
    stats, symbolic = factor.stats, factor.symbolic
    complex_by = 4 if factor.dtype.kind == "c" else 1
    passes = 1 if symbolic.kind == "lu" and not stats.symmetric else 2
    read = stats.nnz * factor.dtype.itemsize
    work = {
        "factor": (stats.flops, read + stats.bytes),
        "refactor": (stats.flops, read + stats.bytes),
        "solve": (2 * passes * stats.nnz_factor, passes * stats.bytes),
    }
    return [
        Point(phase, complex_by * flops, float(traffic), stats.seconds[phase])
        for phase, (flops, traffic) in work.items()
        if stats.seconds.get(phase, 0) > 0 and flops > 0
    ]


def draw_roofline(here: Machine, phases: list[Point], ax: Any = None) -> Any:
    """The roof of a machine, and phases of a factor below it.

    Parameters
    ----------
    here : Machine
    phases : list of Point
    ax : Axes, optional
        To draw on.

    Returns
    -------
    Axes

    See Also
    --------
    machine, points

    Examples
    --------
    >>> here = gs.plotting.Machine("my laptop", bandwidth=40e9, rate=200e9)
    >>> axes = gs.plotting.draw_roofline(here, [gs.plotting.Point("solve", 2e6, 16e6, 1e-3)])
    >>> axes.get_xscale()
    'log'
    """
    ax = ax if ax is not None else new_axes((7.2, 5.0))
    ridge, own = here.rate / here.bandwidth, [point.intensity for point in phases]
    low, high = min([ridge, *own]) / 4, max([ridge, *own]) * 8
    x = np.geomspace(low, high, 200)
    ax.plot(x, np.minimum(here.rate, here.bandwidth * x), color="white" if is_dark(ax) else "black", lw=2)
    for point, color in zip(phases, (BLUE, RED, GREEN), strict=False):
        roof = min(here.rate, here.bandwidth * point.intensity)
        ax.vlines(point.intensity, point.rate, roof, color=color, lw=1, ls=":")
        above = point.rate > roof
        share = "in the cache, above the roof of memory" if above else f"{point.rate / roof:.0%} of the roof"
        label = f"{point.phase}: {counted(point.rate)}flop/s, {share}"
        ax.plot(point.intensity, point.rate, "o", color=color, ms=8, label=label)
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(None, here.rate * 3))
    ax.set(xlabel="arithmetic intensity [flop/byte]", ylabel="rate [flop/s]")
    ax.set_title(f"{here.name}: {counted(here.bandwidth)}byte/s, {counted(here.rate)}flop/s", fontsize="medium")
    for axis in (ax.xaxis, ax.yaxis):
        plain_ticks(axis)
    ax.grid(alpha=0.3)
    if phases:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize="small")
    return ax


def engine_roof(factor: Any) -> Machine:
    """`machine` of the engine that a factor runs on, for its dtype."""
    return machine(registry.named(factor.engine).capabilities.on_device, factor.dtype)
