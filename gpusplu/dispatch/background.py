"""Analyses for devices, made in background threads that have their own thread pool."""

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
#: Least number of processors at which the analysis starts before the factor is used.
LEAST_PROCESSORS = 4
#: Longest time that a thread that prepares a migration may hold the interpreter [s]. Python's default, 5e-3, is as long
#: as many steps of the caller.
SWITCH_INTERVAL = 5e-5


class BackgroundAnalysis:
    """Analyses for devices, made concurrently with the processor's analysis where they will be needed.

    They take as long as the processor's analysis or longer. Started after it, they would be late by all of their time.

    Parameters
    ----------
    problem : Problem
        Its memo receives the results.
    """

    def __init__(self, problem: Problem):
        self._memo = problem.memo
        self._memo.put("ahead", self)
        request = problem.request._replace(may_migrate=False)
        values = problem.values.copy()  # the caller may overwrite its array before the thread ends
        own = Problem(problem.pattern, values, problem.kind, problem.options, request)
        self._thread = start_background(partial(self._analyze, own))

    def _analyze(self, own: Problem) -> None:
        with suppress(Exception):  # errors are ignored here; the caller repeats the work and reports them
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
    """Start the analyses for devices if the factor may migrate soon and enough processors are available."""
    request = problem.request
    may_migrate = request.may_migrate and request.engine == AUTO and problem.options.precision == "double"
    able = may_migrate and presence.is_loaded() and processors() >= LEAST_PROCESSORS
    # From that size on the processor's analysis tries nested dissection too, and a device can use its result.
    if able and problem.n < _core.BOTH_ORDERINGS_FROM and not is_likely(problem):
        BackgroundAnalysis(problem)


def start_background(work: Callable[[], None]) -> Thread | None:
    """Run `work` in a thread that has its own thread pool; None if the interpreter is shutting down."""

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
    """Shorten the interpreter's switch interval; it is restored unless other code has changed it meanwhile."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_INTERVAL))
    interval = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == interval:
            sys.setswitchinterval(before)


def engines_for(problem: Problem) -> list[Any]:
    """Device engines that support the matrix."""
    return [engine for engine in registry.engines(True) if not engine.unsupported(problem)]


def has_idle_processor() -> bool:
    """Whether a background thread has a processor to run on."""
    return processors() > 1


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
