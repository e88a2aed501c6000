"""What a device needs to know of a matrix, made beside the caller: by threads with a pool of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread, current_thread, main_thread
from typing import Any

from .. import _core
from ..cuda import presence
from ..cuda.background import background_work
from ..engines import registry
from ..engines.problem import Problem
from .request import AUTO
from .selection import is_likely, predicted

THREAD = "gpusplu-moving"
#: Processors at least, to begin before there is use.
LEAST_PROCESSORS = 4
#: How long a thread that prepares a move may keep the interpreter from the caller [s]: Python's 5e-3 are many steps.
SWITCH_INTERVAL = 5e-5


class BackgroundAnalysis:
    """The analyses that devices need, made beside the processor's own where they are going to be asked for.

    They take as long as the processor's or longer, so that who only begins when that is over is late by all of it.

    Parameters
    ----------
    problem : Problem
        Gets what was made.
    """

    def __init__(self, problem: Problem):
        self._memo = problem.memo
        self._memo.put("ahead", self)
        request = problem.request._replace(may_migrate=False)
        values = problem.values.copy()  # the caller's, who may write into them before this is over
        own = Problem(problem.pattern, values, problem.kind, problem.options, request)
        self._thread = start_background(partial(self._analyze, own))

    def _analyze(self, own: Problem) -> None:
        with suppress(Exception):  # whoever needs it does it himself, and says what is wrong
            engines = engines_for(own)
            if presence.no_device() or all(engine.first_use(engine.device(own), own) for engine in engines):
                return
            predicted(own, engines)
            for key, value in own.memo.items():
                if isinstance(key, str):
                    self._memo.put(key, value)

    def wait(self) -> None:
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join()


def start_background_analysis(problem: Problem) -> None:
    """Begin with what devices need, if a factor of this may move soon and there are processors for it."""
    request = problem.request
    may_migrate = request.may_migrate and request.engine == AUTO and problem.options.precision == "double"
    able = may_migrate and presence.is_loaded() and processors() >= LEAST_PROCESSORS
    # From there on the processor's analysis tries dissection too, which a device goes on with.
    if able and problem.n < _core.BOTH_ORDERINGS_FROM and not is_likely(problem):
        BackgroundAnalysis(problem)


def start_background(work: Callable[[], None]) -> Thread | None:
    """Have `work` done by a thread with a pool of its own; None where the interpreter ends."""

    def run_background() -> None:
        _core.work_apart(True)
        try:
            with quick_switches(), background_work():
                work()
        finally:
            _core.work_apart(False)

    if not main_thread().is_alive():
        return None
    thread = Thread(target=run_background, name=THREAD)
    thread.start()
    return thread


@contextmanager
def quick_switches() -> Iterator[None]:
    """Have this thread give way to others soon, unless somebody else sets how soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_INTERVAL))
    interval = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == interval:
            sys.setswitchinterval(before)


def engines_for(problem: Problem) -> list[Any]:
    """Those on a device that can take the matrix."""
    return [engine for engine in registry.engines(True) if not engine.unsupported(problem)]


def has_idle_processor() -> bool:
    """Whether something can be done beside the caller."""
    return processors() > 1


def processors() -> int:
    """That may be used."""
    return len(os.sched_getaffinity(0))
