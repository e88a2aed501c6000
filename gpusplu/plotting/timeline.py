"""Timeline of a factorization: its phases, and the fronts of each thread over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .drawing import BLUE, GREEN, GREY, ORANGE, RED, SKY, import_pyplot

PHASES = {"canonicalize": GREY, "analyze": ORANGE, "factor": BLUE, "refactor": SKY, "solve": GREEN}
# struct FrontSpan of core/base/stopwatch.hpp.
SPAN = np.dtype([("thread", "i4"), ("front", "i4"), ("begin", "f8"), ("end", "f8")])
# Fronts that take less than this share of the time are drawn as one box with their neighbours.
SEEN = 1 / 800


@dataclass(frozen=True)
class Timeline:
    """Times of the phases and tasks of a factorization.

    Attributes
    ----------
    seconds : dict
        Seconds of the phases [s], the last call of each.
    thread, front : ndarray, shape (m,), int32
        Thread and front of every task; a front that several threads factor together is one task for each of them. None
        if the engine does not report them: if columns are eliminated without fronts, and on a device.
    begin, end : ndarray, shape (m,), float64
        Since the factorization began [s].

    See Also
    --------
    timeline, draw_timeline

    Examples
    --------
    >>> times = gs.plotting.timeline(gs.cholesky(gs.gallery.poisson(40, 40)))
    >>> bool((times.begin <= times.end).all())
    True
    """

    seconds: dict[str, float]
    thread: np.ndarray
    front: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def timeline(factor: Any) -> Timeline:
    """Factor the values of a factor once more, separately, and record thread, front and time.

    Parameters
    ----------
    factor : LUFactor, CholeskyFactor or LDLFactor

    Returns
    -------
    Timeline

    See Also
    --------
    draw_timeline

    Examples
    --------
    >>> times = gs.plotting.timeline(gs.cholesky(gs.gallery.poisson(40, 40)))
    >>> times.thread.size == times.front.size > 0
    True
    """
    core, _ = factor.parts()
    symbolic, seconds = factor.symbolic, dict(factor.stats.seconds)
    spans = _core.with_fronts_recorded(lambda: symbolic.make(core.values()))[1].view(SPAN)
    return Timeline(seconds, *(spans[name].copy() for name in SPAN.names or ()))


def draw_timeline(times: Timeline, figure: Any = None) -> Any:
    """Phases as parts of a bar, and, if fronts were recorded, one line per thread below.

    Parameters
    ----------
    times : Timeline
    figure : Figure, optional
        To draw on.

    Returns
    -------
    Figure

    See Also
    --------
    timeline

    Examples
    --------
    >>> times = gs.plotting.timeline(gs.cholesky(gs.gallery.poisson(40, 40)))
    >>> figure = gs.plotting.draw_timeline(times)
    >>> len(figure.axes)
    2
    """
    pyplot = import_pyplot()
    threads = int(times.thread.max()) + 1 if times.thread.size else 0
    height = 1.7 + (1.1 + 0.32 * threads if threads else 0)
    figure = figure if figure is not None else pyplot.figure(figsize=(8.6, height), layout="constrained")
    rows = (1.0, 0.9 + 0.45 * threads)[: 2 if threads else 1]
    axes = figure.subplots(len(rows), 1, squeeze=False, height_ratios=rows)[:, 0]
    _draw_phases(times.seconds, axes[0])
    if threads:
        _draw_fronts(times, threads, axes[1])
    return figure


def scale_of(seconds: float) -> tuple[float, str]:
    """A unit in which a time is a short number."""
    for scale, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * scale >= 1:
            return scale, unit
    return 1e6, "us"


def _draw_phases(seconds: dict[str, float], ax: Any) -> None:
    """One bar with one part per phase, in the order of the phases."""
    spent = {phase: value for phase, value in seconds.items() if value > 0}
    scale, unit = scale_of(sum(spent.values()))
    left = 0.0
    for phase, value in spent.items():
        label = f"{phase} {value * scale:.3g} {unit}"
        ax.barh(0, value * scale, left=left, color=PHASES.get(phase, RED), label=label)
        left += value * scale
    ax.set(yticks=[], xlim=(0, left or 1), xlabel=f"time [{unit}], the last call of each phase")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(spent) or 1, frameon=False, fontsize="small")


def _draw_fronts(times: Timeline, threads: int, ax: Any) -> None:
    """One line per thread: fronts that it factored alone, and with others."""
    from matplotlib.patches import Patch

    scale, unit = scale_of(times.end.max())
    shared = np.bincount(times.front)[times.front] > 1
    for thread in range(threads):
        for which, color in ((~shared, SKY), (shared, RED)):
            own = np.flatnonzero((times.thread == thread) & which)
            begin, end = merged(times.begin[own], times.end[own], times.end.max() * SEEN)
            spans = np.column_stack((begin, end - begin)) * scale
            ax.broken_barh(spans, (thread - 0.38, 0.76), facecolor=color, edgecolor=ax.get_facecolor(), lw=0.3)
    busy = (times.end - times.begin).sum() / (threads * times.end.max())
    team = "1 thread" if threads == 1 else f"{threads} threads"
    ax.set_title(f"{np.unique(times.front).size:,} fronts, {team}, {busy:.0%} busy", fontsize="medium")
    ax.set(yticks=range(threads), ylabel="thread", xlabel=f"time of the factorization [{unit}]")
    ax.set(xlim=(0, times.end.max() * scale), ylim=(threads - 0.4, -0.6))
    handles = [Patch(color=SKY, label="fronts of one thread")]
    handles += [Patch(color=RED, label="fronts of all threads")] if shared.any() else []
    ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.62 / (1 + 0.3 * threads)), ncols=2, frameon=False
    )


def merged(begin: np.ndarray, end: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Spans in order; those that are shorter than `least` are merged with the adjacent ones."""
    order = np.argsort(begin)
    begin, end = begin[order], end[order]
    small = end - begin < least
    joins = (begin[1:] - end[:-1] < least / 4) & small[1:] & small[:-1]
    first = np.concatenate(([True], ~joins)) if begin.size else np.zeros(0, bool)
    return begin[first], end[np.concatenate((first[1:], [True]))] if begin.size else end
