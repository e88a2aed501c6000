"""A factor that `auto` left to the processor goes over to a device once the use it has seen pays for that.

How often a factor is going to be used nobody says beforehand: a ski rental. Rent is what refactorizations and solves
took on the processor beyond what they are predicted to take on the device; the price is the predicted analysis and
first factorization there. Whoever buys when the rent has reached the price pays at most twice what was best (Karlin,
Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988, section 2); we buy at a part of the
price, `SHARE`, because a thread of its own does it on another processor while the caller goes on: it costs him nothing
but memory and, should he stop before, work in vain.

What there is to buy is found in the same way: to look at devices costs an analysis, and is done when a part of its
price has been spent. The factor changes its engine once, between two calls, and never back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from threading import Lock, Thread, current_thread
from time import perf_counter
from typing import Any
from weakref import WeakSet, ref

from . import _core
from .cost.calibration import costs_of
from .cost.features import moving
from .cost.model import Prediction, fastest
from .engines import registry
from .problem import Problem
from .selection.request import AUTO
from .selection.select import MARGIN, Choice, predicted
from .stats import show
from .symbolic import Symbolic

#: Of a price that has to be spent before it is paid: with a processor for it, and without.
SHARE, SHARE_ALONE = 0.1, 1.0
#: Seconds of use below which nothing is asked: prices are not looked up for a factor that is used a few times.
FIRST = 5e-4
#: Entries of A below which the processor is done before a kernel is launched.
LEAST = 1_000
#: Steps at least that are assumed to follow.
FOLLOWING = 100
THREAD = "gpusplu-moving"


class Moving:
    """A processor's factor that watches its use, and what its `Factor` holds until it has moved.

    Has the surface of engines' factors (engines/interface.py). May be used from several threads.

    Parameters
    ----------
    factor : Factor
        Is told when it has moved: `factor.moved(core, symbolic)`.
    core : EngineFactor
    symbolic : Symbolic
        That `core` was made by.
    """

    def __init__(self, factor: Any, core: Any, symbolic: Symbolic):
        self._factor, self._core, self._symbolic = ref(factor), core, symbolic
        self._spent, self._steps = 0.0, 0
        self._next: Callable[[], None] | None = self._price  # what happens when that much is spent
        self._best: Prediction | None = None
        self._offered: tuple[Any, Symbolic, int] | None
        self._version = 0  # of the values
        self._problem: Problem | None = None
        self._failure = ""
        self._on_device = symbolic.choice.request.on_device
        self.story = ""
        self.renew(FIRST)
        _all.add(self)

    def renew(self, due: float) -> None:
        """Begin with locks that nobody holds."""
        self._lock, self._changing = Lock(), Lock()  # of what is due; of the values and the engine
        self._offered, self._due = None, due

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._core, name)

    held = property(lambda self: self._core, doc="The engine's own factor.")

    # ---- what is counted

    def solve(self, b: Any, trans: int = 0) -> Any:
        if self._offered and self._changing.acquire(blocking=False):  # else a refactorization is under way
            try:
                offered = self._offered
                if offered and offered[2] == self._version:
                    self._go(offered)
            finally:
                self._changing.release()
        start = perf_counter()
        x = self._core.solve(b, trans)
        self._count(perf_counter() - start, 1)
        return x

    def refactor(self, values: Any, source: Any = None) -> int:
        with self._changing:
            offered, failure = self._offered, ""
            if offered:  # its values may be older than those held: it has to take the new ones first
                try:
                    if offered[0].refactor(values, source) < 0:
                        self._go(offered)
                        return -1
                except Exception as error:
                    failure = describe(error)
            start = perf_counter()
            bad: int = self._core.refactor(values, source)
            self._version += 1
            if failure:  # not by the values: the processor took them
                self._offered = None
                self._stay(failure)
        self._count(perf_counter() - start, 0)
        return bad

    def came_from_device(self) -> None:
        """The caller's vectors are on a device: each call moves them here and back."""
        self._on_device = True

    def _count(self, seconds: float, steps: int) -> None:
        self._spent += seconds
        self._steps += steps
        if self._spent >= self._due:
            self._take_stock()

    # ---- what is done about it

    def _take_stock(self) -> None:
        if self._failure:
            self._warn()
        with self._lock:
            step, self._next, self._due = self._next, None, float("inf")
        if step is not None:
            step()

    def _price(self) -> None:
        """Find out what a look at devices costs, and wait until a part of that is spent."""
        problem, _ = self._symbolic.parts()
        engines = self._engines(problem)
        if engines:
            self._begin(self._look, self._share() * min(engine.least(problem) for engine in engines))

    def _engines(self, problem: Problem) -> list[Any]:
        return [engine for engine in registry.engines(True) if not engine.obstacle(problem)]

    def _share(self) -> float:
        return SHARE if spare_processor() else SHARE_ALONE

    def _begin(self, work: Any, due: float) -> None:
        """Have `work` done once that much is spent: beside the caller where there is a processor for it."""

        def start() -> None:
            if spare_processor() and current_thread().name != THREAD:
                Thread(target=self._try_beside, args=(work,), name=THREAD).start()
            else:
                self._try(work)

        self._next, self._due = start, due
        if self._spent >= due:
            self._take_stock()

    def _try(self, work: Any) -> None:
        try:
            work()
        except Exception as error:  # whatever a device may say: the factor stays where it is
            self._stay(describe(error))

    def _try_beside(self, work: Any) -> None:
        _core.work_alone()
        self._try(work)

    def _look(self) -> None:
        """Analyse for devices, and see what they promise."""
        known, _ = self._symbolic.parts()
        steps = max(self._steps, FOLLOWING)
        request = known.request._replace(
            engine=AUTO,
            reason="",
            refactorizations=max(steps, known.request.refactorizations),
            on_device=self._on_device,
        )
        problem = Problem(known.pattern, self._core.values(), known.kind, known.options, request, known.once)
        predictions = predicted(problem, self._engines(problem))
        if all(p.note for p in predictions):
            return self._settle("; ".join(f"{p.engine}: {p.note}" for p in predictions))
        best = self._best = fastest(predictions, steps)
        here = self._step_here(problem)
        if best.step > MARGIN * here:
            return self._settle(f"a step takes {show(here)} s, {show(best.step)} s are predicted with {best.engine}")
        self._problem = problem
        saved = here - best.step
        left = self._share() * best.total(0) - self._steps * saved
        self._begin(self._buy, self._spent + max(0.0, left) * here / saved)

    def _step_here(self, problem: Problem) -> float:
        """Seconds of a step as they were measured, and of moving what is on a device."""
        structure = problem.structure(self._symbolic.parts()[1].core)
        return self._spent / max(self._steps, 1) + moving(costs_of(), structure, self._on_device, False)

    def _buy(self) -> None:
        """Make the factor on the device; the caller's next call goes there."""
        from .cuda import devices

        problem, best = self._problem, self._best
        assert problem is not None and best is not None
        engine, start = registry.named(best.engine), perf_counter()
        version, values = self._version, self._core.values()
        problem.request = problem.request._replace(device=devices.open_device(problem.request.device).index)
        reason = (
            f"began with {self._symbolic.engine!r}; after {show(self._steps)} solves and {show(self._spent)} s, "
            f"{show(best.step)} s a step were predicted against {show(self._step_here(problem))} s"
        )
        symbolic = Symbolic(problem, Choice(best.engine, reason, problem.request, (best,)), engine.analyze(problem))
        core = symbolic.make(values)
        symbolic.seconds["move"] = perf_counter() - start
        self._offered = core, symbolic, version

    def _go(self, offered: tuple[Any, Symbolic, int]) -> None:
        """Go over to what was bought."""
        self._core, self._offered = offered[0], None  # others may still call this object
        factor = self._factor()
        if factor is not None:
            factor.moved(*offered[:2])

    def _settle(self, story: str) -> None:
        self.story = f"stays on the processor: {story}"

    def _stay(self, failure: str) -> None:
        self._settle(failure)
        with self._lock:
            self._failure, self._next, self._due = failure, None, 0.0

    def _warn(self) -> None:
        failure, self._failure = self._failure, ""
        text = f"the factor stays on the processor, a device failed: {failure}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)


_all: WeakSet[Moving] = WeakSet()


def _forked() -> None:
    """Devices do not survive a fork, nor do the threads that prepare a move."""
    for each in list(_all):
        each.renew(float("inf"))


os.register_at_fork(after_in_child=_forked)


def spare_processor() -> bool:
    """Whether something can be done beside the caller."""
    return len(os.sched_getaffinity(0)) > 1


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def watched(factor: Any, core: Any, symbolic: Symbolic) -> Any:
    """The engine's factor, watched if it may move."""
    return Moving(factor, core, symbolic) if symbolic.nnz >= LEAST else core
