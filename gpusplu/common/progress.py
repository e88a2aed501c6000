"""Progress of long calls: passed to a caller's function, shown as a bar, and logged now and then.

While it works, the core calls `tick` every 50 ms in the thread of the call; short calls never do. An exception from
`tick` stops the call, so a caller's function can stop it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from .. import _core
from ..typing import Progress
from .bars import Line, TqdmBar, is_terminal, of_tqdm
from .listeners import NOBODY, Caller, caller, log_context, log_enabled, read_caller, tell

INTERVAL = 0.05  # between calls of `tick` [s]
LONG = 2.0  # expected duration from which on a phase has a bar without a request [s]
RELIABLE_AFTER = 0.5  # after which the work done predicts the total time [s]
P = ParamSpec("P")
R = TypeVar("R")


class Phase(threading.local):
    """Current phase of a thread."""

    name = ""
    done = start = 0.0
    beat = LONG
    bar: Any = None

    def begin(self, name: str) -> None:
        """Start the phase `name`; "" for none."""
        if self.bar is not None:
            self.bar.close()
        self.start = perf_counter() - (0 if self.name else INTERVAL)
        self.name, self.done, self.beat, self.bar = name, 0.0, LONG, None


_phase = Phase()


def tick(name: str, done: float, total: float) -> None:
    """Report the progress of a phase; `total` is 0 if it is not known, `name` is "" at the end of the call."""
    if name != _phase.name or done < _phase.done:
        _phase.begin(name)
    if not name:
        return
    _phase.done = done
    seconds, share, who = perf_counter() - _phase.start, done / total if total > 0 else None, caller()
    if callable(who.progress):
        who.progress(name, done, total)
    elif who.progress is not False and _phase.bar is None and deserves_bar(who, seconds, share):
        _phase.bar = bar_for(name, seconds, share is not None)
    if seconds >= _phase.beat and log_enabled():
        _phase.beat *= 2
        if _phase.bar is not None:
            _phase.bar.erase()
        tell(
            f"{name} has taken {seconds:.0f} s" + (f", {share:.0%} done" if share is not None else ""),
            phase=name,
        )
    if _phase.bar is not None:
        _phase.bar.show(share, seconds)


def deserves_bar(who: Caller, seconds: float, share: float | None) -> bool:
    """Whether a bar was requested, or the phase is expected to take long and standard error is a terminal."""
    if who.progress:
        return True
    if seconds < RELIABLE_AFTER or (seconds / share if share else seconds) < LONG:
        return False
    return is_terminal(sys.stderr) and os.environ.get("GPUSPLU_PROGRESS") != "0"


def bar_for(name: str, seconds: float, measured: bool) -> TqdmBar | Line:
    """A tqdm bar if tqdm is installed, else a `Line`."""
    bars = of_tqdm()
    return Line(name) if bars is None else TqdmBar(bars, name, seconds, measured)


def seen(work: Callable[P, R], verbose: int, progress: Progress) -> Callable[P, R]:
    """`work` with the logs and progress that the keyword arguments request; usually `work` itself."""
    if not verbose and progress is None:
        return work
    one = read_caller(verbose, progress)

    def seen_work(*arguments: P.args, **named: P.kwargs) -> R:
        with _shown(one):
            return work(*arguments, **named)

    return seen_work


def shown_to(one: Caller) -> AbstractContextManager[None]:
    """Context that applies the keyword arguments of an earlier call to the calls inside; does nothing if there were
    none."""
    return _NOTHING if one is NOBODY else _shown(one)


@contextmanager
def _shown(one: Caller) -> Iterator[None]:
    before = _core.watch(tick)
    try:
        with log_context(one):
            yield
    finally:
        _core.watch(before)


_NOTHING = nullcontext()


if threading.current_thread() is threading.main_thread():
    _core.watch(tick)
