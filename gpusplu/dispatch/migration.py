"""Migration: a factor that `auto` placed on the processor moves to a device once its measured use pays for that.

How often a factor will be used is not known beforehand, so this is a ski-rental problem. The rent is the time that
refactorizations and solves took on the processor beyond their predicted time on the device; the price is the predicted
analysis and first factorization there. Buying when the rent has reached the price costs at most twice the optimum
(Karlin, Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988, section 2). gpusplu buys at a
part of the price, `SHARE`, because a background thread does the work on another processor while the caller goes on: the
caller loses only memory and, if the factor is not used again, the background work.

The same rule decides when devices are evaluated: an evaluation costs an analysis and runs when a part of its price has
been spent. The import of CuPy, if it is still needed, is paid in full because it blocks the interpreter.
With a second processor the first factorization counts as use too, and the thread starts after it.
Use is summed over all factors of an analysis, cached analyses included. Factors made after the migration start on the
device. A factor changes its engine once, between two calls, and never back.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock, Thread, current_thread, main_thread
from time import perf_counter
from typing import Any
from weakref import WeakSet, ref

from .. import _core
from ..common.listeners import caller, log_context
from ..common.memo import Memo
from ..common.stats import show
from ..cost.calibration import costs_of
from ..cost.features import loading, moving
from ..cost.model import Estimate
from ..cuda import presence
from ..cuda.background import background_work
from ..engines import registry
from ..engines.problem import Problem
from . import phases
from .analyzed import Analyzed
from .selection import AUTO, MARGIN, TRIANGULAR, Choice, able, is_likely, predicted, resolve_precision

THREAD = "gpusplu-moving"
#: Least number of processors at which the analysis starts before the factor is used.
LEAST_PROCESSORS = 4
#: Longest time that a thread that prepares a migration may hold the interpreter [s]. Python's default, 5e-3, is as long
#: as many steps of the caller.
SWITCH_INTERVAL = 5e-5


def start_background_analysis(problem: Problem) -> None:
    """Start the analyses for devices if the factor may migrate soon and enough processors are available.

    They take as long as the processor's analysis or longer. Started after it, they would be late by all of their time.
    """
    request = problem.request
    may_migrate = request.may_migrate and request.engine == AUTO and problem.options.precision == "double"
    starts = may_migrate and presence.is_loaded() and processors() >= LEAST_PROCESSORS
    # From that size on the processor's analysis tries nested dissection too, and a device can use its result.
    if starts and problem.n < _core.BOTH_ORDERINGS_FROM and not is_likely(problem):
        values = problem.values.copy()  # the caller may overwrite its array before the thread ends
        own = Problem(problem.pattern, values, problem.kind, problem.options, request._replace(may_migrate=False))
        problem.memo.put("ahead", start_background(partial(analyze_for_devices, own, problem.memo)))


def analyze_for_devices(own: Problem, memo: Memo) -> None:
    """Predict with all engines for devices; `memo` receives the analyses."""
    with suppress(Exception):  # errors are ignored here; the caller repeats the work and reports them
        engines: list[Any] = able(own, True)
        if presence.no_device() or all(engine.first_use(engine.device(own), own) for engine in engines):
            return
        predicted(own, engines)
        for key, value in own.memo.items():
            if isinstance(key, str):
                memo.put(key, value)


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


def has_idle_processor() -> bool:
    """Whether a background thread has a processor to run on."""
    return processors() > 1


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


#: Share of a price that has to be spent before it is paid: with an idle processor, and without one.
SHARE, SHARE_ONE_PROCESSOR = 0.1, 1.0
#: Seconds of use below which nothing is predicted: factors that are used a few times only cost no predictions.
FIRST = 2e-3
#: Entries of A below which the processor finishes before a kernel would be launched.
LEAST_TO_MIGRATE = 3_000
#: A factor that stayed is compared again when the use has grown by this factor since the last comparison.
AGAIN = 2.0
#: Least number of steps that are assumed to follow.
FOLLOWING = 100
NEVER = float("inf")


class Use:
    """Use of the factors of one analysis on the processor, and the decisions that follow from it.

    Attributes
    ----------
    migrated : Symbolic or None
        Analysis that later factors start with.
    reason : str
        Why there is no migration, once that is decided.
    """

    def __init__(self) -> None:
        self.spent, self.made, self.refactored, self.solved = 0.0, 0, 0, 0
        self.on_device = self.begun = False
        self.migrated: Any = None
        self.reason = self._failure = ""
        self._next: Callable[[Migration], None] | None = self._price  # called when `spent` reaches `_due`
        self.reset(FIRST)
        _all.add(self)

    def reset(self, due: float = NEVER) -> None:
        """Start with a free lock and without a device: also in a forked child, which has no access to the device."""
        self._lock, self._due, self.migrated = Lock(), due, None

    def count(self, migration: Migration, seconds: float, made: int = 0, refactored: int = 0, solved: int = 0) -> None:
        self.spent += seconds
        self.made += made
        self.refactored += refactored
        self.solved += solved
        if self.spent >= self._due:
            self._take_stock(migration)

    def fail(self, failure: str) -> None:
        """Stay on the processor; the next call warns."""
        self.stay_on_host(failure, failed=True)
        with self._lock:
            self._failure, self._next, self._due = failure, None, 0.0

    def stay_on_host(self, reason: str, failed: bool = False) -> None:
        self.reason = f"stays on the processor: {reason}"
        phases.stays(self.reason, failed)

    def _take_stock(self, migration: Migration) -> None:
        if self._failure:
            failure, self._failure = self._failure, ""
            text = f"the factor stays on the processor because a device failed: {failure}"
            warnings.warn(text, RuntimeWarning, stacklevel=5)
        with self._lock:
            step, self._next, self._due = self._next, None, NEVER
        if step is not None:
            step(migration)

    def _price(self, migration: Migration) -> None:
        """Predict the cost of evaluating devices, and wait until a part of it is spent."""
        problem, _ = migration.host_symbolic.parts()
        load = loading(costs_of())
        if self.spent < SHARE_ONE_PROCESSOR * load and registry.is_not_imported():  # do not import device modules yet
            self._next, self._due = self._price, SHARE_ONE_PROCESSOR * load
            return
        engines = able(problem, True)
        if engines:
            least = min(engine.lower_bound(problem) for engine in engines)
            self._begin(self._evaluate_devices, migration, SHARE_ONE_PROCESSOR * load + share() * (least - load))

    def _begin(self, work: Callable[[Migration], None], migration: Migration, due: float) -> None:
        """Run `work` once `due` seconds are spent, in a background thread if a processor is idle."""

        def attempt(migration: Migration) -> None:
            with log_context(migration.caller):
                try:
                    work(migration)
                except Exception as error:  # on any error of a device the factor stays on the processor
                    self.fail(describe(error))

        def start(migration: Migration) -> None:
            if not has_idle_processor() or current_thread().name == THREAD:
                with background_work():  # the caller may be capturing a stream
                    attempt(migration)
            else:
                start_background(partial(attempt, migration))

        self._next, self._due = start, due
        if self.spent >= due:
            self._take_stock(migration)

    def _evaluate_devices(self, migration: Migration) -> None:
        """Analyse for devices and compare their predicted times."""
        if missing := presence.no_device():
            return self.stay_on_host(missing)
        known, _ = migration.host_symbolic.parts()
        steps = max(self.steps, FOLLOWING)
        request = known.request._replace(
            engine=AUTO,
            reason="",
            refactorizations=steps,
            may_migrate=False,
            on_device=self.on_device or known.request.on_device,
        )
        problem = Problem(known.pattern, migration.held.values(), known.kind, known.options, request, known.memo)
        if problem.is_triangular():
            return self.stay_on_host(TRIANGULAR)
        predictions = predicted(problem, able(problem, True))
        possible = [p for p in predictions if not p.note]
        if not possible:
            return self.stay_on_host("; ".join(f"{p.engine}: {p.note}" for p in predictions))
        again = steps / self.steps
        best = min(possible, key=lambda p: p.total(0) + again * self.on(p))
        host_so_far, device_so_far = self.host_seconds(migration), self.on(best)
        if device_so_far > MARGIN * host_so_far:
            self.stay_on_host(f"{show(host_so_far)} s so far, {show(device_so_far)} s predicted with {best.engine}")
            # More refactorizations per factor may change the result: compare again when the use has doubled.
            return self._begin(self._evaluate_devices, migration, AGAIN * self.spent)
        left = share() * best.total(0) - (host_so_far - device_so_far)
        due = self.spent + max(0.0, left) * host_so_far / (host_so_far - device_so_far)
        self._begin(lambda migration: self._buy(migration, problem, best), migration, due)

    @property
    def steps(self) -> int:
        return max(self.made + self.refactored, self.solved, 1)

    def host_seconds(self, migration: Migration) -> float:
        """Seconds of all use so far, including transfers of vectors that are on a device."""
        return self.spent + self.steps * migration.detour(self.on_device)

    def on(self, p: Estimate) -> float:
        """Predicted seconds of the same use on the device, without analysis and first factorization."""
        done = self.made * p.factor + self.refactored * p.refactor + self.solved * p.solve
        return done + self.steps * p.moving

    def _buy(self, migration: Migration, problem: Problem, best: Estimate) -> None:
        """Make the factor on the device; the caller's next call goes there."""
        from ..cuda import devices

        engine, start = registry.named(best.engine), perf_counter()
        version, values = migration.version, migration.held.values()
        problem.request = problem.request._replace(device=devices.open_device(problem.request.device).index)
        reason = (
            f"began with {migration.host_symbolic.engine!r}; {show(self.steps)} steps took "
            f"{show(self.host_seconds(migration))} s, predicted {show(self.on(best))} s here"
        )
        reason = "; ".join(filter(None, (reason, resolve_precision(problem, engine))))
        symbolic = Analyzed(problem, Choice(best.engine, reason, problem.request, (best,)), engine.analyze(problem))
        made = symbolic.make(values)
        if get_ready := getattr(made, "get_ready", None):  # the values of its first step come from the host
            get_ready(self.on_device or problem.request.on_device)
        symbolic.seconds["move"] = perf_counter() - start
        migration.offer(made, symbolic, version)
        self.migrated = symbolic


class Migration:
    """Counts the use of a processor's factor, whose calls go through it, until the factor migrates.

    May be used from several threads.

    Parameters
    ----------
    factor : Factor
        The migration calls `factor.replace_core(core, symbolic)`.
    core : Numeric
    symbolic : Symbolic
        Analysis that made `core`.
    use : Use
        Use of all factors of this analysis.
    """

    def __init__(self, factor: Any, core: Any, symbolic: Any, use: Use):
        self._factor, self.held, self.host_symbolic, self._use = ref(factor), core, symbolic, use
        self.version, self.caller = 0, caller()  # version of the values; log context
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """Start with a free lock and no pending factor."""
        self._changing = Lock()  # guards the values and the engine
        self._pending: tuple[Any, Any, int] | None = None

    reason = property(lambda self: self._use.reason)

    def solve(self, b: Any, trans: int = 0) -> Any:
        if self._pending and self._changing.acquire(blocking=False):  # else a refactorization is under way
            try:
                pending = self._pending
                if pending and pending[2] == self.version:
                    self._go(pending)
            finally:
                self._changing.release()
        start = perf_counter()
        x = self.held.solve(b, trans)
        self._use.count(self, perf_counter() - start, solved=1)
        return x

    def refactor(self, values: Any, source: Any = None, *checked: bool) -> int:
        with self._changing:
            pending, failure = self._pending, ""
            if pending:  # its values may be older than those of `held`: refactor it first
                try:
                    if pending[0].refactor(values, source, *checked) < 0:
                        self._go(pending)
                        return -1
                except Exception as error:
                    failure = describe(error)
                except BaseException:  # Ctrl-C: the values that it holds are unknown
                    self._pending = None
                    raise
            start = perf_counter()
            bad: int = self.held.refactor(values, source, *checked)
            self.version += 1
            if failure:  # not caused by the values: the processor accepted them
                self._pending = None
                with log_context(self.caller):
                    self._use.fail(failure)
        self._use.count(self, perf_counter() - start, refactored=1)
        return bad

    def update(self, *change: Any) -> bool:
        """Update of a Cholesky factor. A pending factor does not have it and gets it by the next refactorization."""
        with self._changing:
            done: bool = self.held.update(*change)
            self.version += done
        return done

    def came_from_device(self) -> None:
        """The caller's vectors are on a device: each call copies them to the host and back."""
        self._use.on_device = True

    def detour(self, from_device: bool) -> float:
        """Predicted seconds per step of those transfers."""
        problem, analysis = self.host_symbolic.parts()
        return moving(costs_of(), analysis.core, problem.itemsize, from_device, False)

    def offer(self, core: Any, symbolic: Any, version: int) -> None:
        """Migrate to this factor, made of values of this version, at the caller's next call."""
        self._pending = core, symbolic, version

    def _go(self, pending: tuple[Any, Any, int]) -> None:
        self.held, self._pending = pending[0], None  # other threads may still call this object
        factor = self._factor()
        with log_context(self.caller):
            phases.migrated(pending[1])
            if factor is not None:
                factor.replace_core(*pending[:2])


_all: WeakSet[Use | Migration] = WeakSet()


def _forked() -> None:
    """Devices and the threads that prepare migrations do not survive a fork."""
    for each in list(_all):
        each.reset()


os.register_at_fork(after_in_child=_forked)


def tracked(factor: Any, core: Any, symbolic: Any) -> Migration | None:
    """The object that counts the use of a factor and migrates it; None if it may not migrate, or is on a device."""
    if symbolic.nnz < LEAST_TO_MIGRATE or registry.named(symbolic.engine).capabilities.on_device:
        return None
    use: Use = symbolic.parts()[0].memo("moving", Use)
    watch = Migration(factor, core, symbolic, use)
    if use.begun or has_idle_processor():  # else `auto` has already counted the first factorization
        stats = core.stats()
        borrowed = stats["n_refactor"] > 0
        seconds = stats["refactor_seconds" if borrowed else "factor_seconds"]
        use.count(watch, seconds, made=not borrowed, refactored=borrowed)
    use.begun = True
    return watch


def resolved(symbolic: Any) -> Any:
    """The analysis after a migration of its factors; itself if there was none."""
    use: Use | None = symbolic.parts()[0].memo.get("moving")
    return symbolic if use is None or use.migrated is None else symbolic.migrated_to(use.migrated)


def share() -> float:
    return SHARE if has_idle_processor() else SHARE_ONE_PROCESSOR


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
