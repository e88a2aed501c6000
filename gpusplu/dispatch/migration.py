"""Factors that `auto` left to the processor go over to a device once the use that was seen pays for that.

How often a factor is going to be used nobody says beforehand: a ski rental. Rent is what refactorizations and solves
took on the processor beyond what they are predicted to take on the device; the price is the predicted analysis and
first factorization there. Whoever buys when the rent has reached the price pays at most twice what was best (Karlin,
Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988, section 2); we buy at a part of the
price, `SHARE`, because a thread of its own does it on another processor while the caller goes on: it costs him nothing
but memory and, should he stop before, work in vain.

What there is to buy is found in the same way: to look at devices costs an analysis, and is done when a part of its
price has been spent. CuPy that is not there yet is paid in full: its import keeps the interpreter from the caller.
Where somebody helps, the first factorization is use too, and the thread begins when it is over.
Use adds up over all factors of an analysis, remembered ones too, and factors that are made after the move begin on the
device. A factor changes its engine once, between two calls, and never back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from threading import Lock, current_thread
from time import perf_counter
from typing import Any
from weakref import WeakSet, ref

from ..common.listeners import caller, heard_by
from ..common.stats import show
from ..cost.calibration import costs_of
from ..cost.features import loading, moving
from ..cost.model import Prediction
from ..cuda import presence
from ..cuda.background import background_work
from ..engines import registry
from ..engines.problem import Problem
from . import phases
from .background import THREAD, engines_for, spare_processor, start_beside
from .request import AUTO
from .selection import MARGIN, Choice, predicted, settle_precision

#: Of a price that has to be spent before it is paid: with a processor for it, and without.
SHARE, SHARE_ALONE = 0.1, 1.0
#: Seconds of use below which nothing is asked: prices are not looked up for factors that are used a few times.
FIRST = 2e-3
#: Entries of A below which the processor is done before a kernel is launched.
LEAST = 3_000
#: The use, in times of that at the last comparison, after which a factor that stayed is compared again.
AGAIN = 2.0
#: Steps at least that are assumed to follow.
FOLLOWING = 100
NEVER = float("inf")


class Use:
    """What was done on the processor with the factors of one analysis, and what follows from it.

    Attributes
    ----------
    moved : Symbolic or None
        What factors that are made from now on begin with.
    story : str
        Why nothing moves, once that is decided.
    """

    def __init__(self) -> None:
        self.spent, self.made, self.refactored, self.solved = 0.0, 0, 0, 0
        self.on_device = self.begun = False
        self.moved: Any = None
        self.story = self._failure = ""
        self._next: Callable[[Moving], None] | None = self._price  # what is done when so much is spent
        self.renew(FIRST)
        _all.add(self)

    def renew(self, due: float = NEVER) -> None:
        """Begin with a lock that nobody holds: in a forked child, whose parent alone has a device."""
        self._lock, self._due, self.moved = Lock(), due, None

    def count(self, moving: Moving, seconds: float, made: int = 0, refactored: int = 0, solved: int = 0) -> None:
        self.spent += seconds
        self.made += made
        self.refactored += refactored
        self.solved += solved
        if self.spent >= self._due:
            self._take_stock(moving)

    def fail(self, failure: str) -> None:
        """Stay: the next call warns."""
        self.settle(failure, failed=True)
        with self._lock:
            self._failure, self._next, self._due = failure, None, 0.0

    def settle(self, story: str, failed: bool = False) -> None:
        self.story = f"stays on the processor: {story}"
        phases.stays(self.story, failed)

    def _take_stock(self, moving: Moving) -> None:
        if self._failure:
            failure, self._failure = self._failure, ""
            text = f"the factor stays on the processor, a device failed: {failure}"
            warnings.warn(text, RuntimeWarning, stacklevel=5)
        with self._lock:
            step, self._next, self._due = self._next, None, NEVER
        if step is not None:
            step(moving)

    def _price(self, moving: Moving) -> None:
        """Find out what a look at devices costs, and wait until a part of that is spent."""
        problem, _ = moving.symbolic_here.parts()
        load = loading(costs_of())
        if self.spent < SHARE_ALONE * load and registry.is_asleep():  # nobody else needs their modules
            self._next, self._due = self._price, SHARE_ALONE * load
            return
        engines = engines_for(problem)
        if engines:
            least = min(engine.least(problem) for engine in engines)
            self._begin(self._look, moving, SHARE_ALONE * load + share() * (least - load))

    def _begin(self, work: Callable[[Moving], None], moving: Moving, due: float) -> None:
        """Have `work` done once that much is spent: beside the caller where there is a processor for it."""

        def attempt(moving: Moving) -> None:
            with heard_by(moving.caller):
                try:
                    work(moving)
                except Exception as error:  # whatever a device may say: the factor stays where it is
                    self.fail(describe(error))

        def start(moving: Moving) -> None:
            if not spare_processor() or current_thread().name == THREAD:
                with background_work():  # the caller may be capturing a stream
                    attempt(moving)
            else:
                start_beside(partial(attempt, moving))

        self._next, self._due = start, due
        if self.spent >= due:
            self._take_stock(moving)

    def _look(self, moving: Moving) -> None:
        """Analyse for devices, and see what they promise."""
        if missing := presence.no_device():
            return self.settle(missing)
        known, _ = moving.symbolic_here.parts()
        steps = max(self.steps, FOLLOWING)
        request = known.request._replace(
            engine=AUTO,
            reason="",
            refactorizations=steps,
            movable=False,
            on_device=self.on_device or known.request.on_device,
        )
        problem = Problem(known.pattern, moving.held.values(), known.kind, known.options, request, known.once)
        predictions = predicted(problem, engines_for(problem))
        able = [p for p in predictions if not p.note]
        if not able:
            return self.settle("; ".join(f"{p.engine}: {p.note}" for p in predictions))
        again = steps / self.steps
        best = min(able, key=lambda p: p.total(0) + again * self.on(p))
        here, there = self.here(moving), self.on(best)
        if there > MARGIN * here:
            self.settle(f"{show(here)} s so far, {show(there)} s are predicted with {best.engine}")
            # More refactorizations for each new factor may change that: compared again when the use has doubled.
            return self._begin(self._look, moving, AGAIN * self.spent)
        left = share() * best.total(0) - (here - there)
        due = self.spent + max(0.0, left) * here / (here - there)
        self._begin(lambda moving: self._buy(moving, problem, best), moving, due)

    @property
    def steps(self) -> int:
        return max(self.made + self.refactored, self.solved, 1)

    def here(self, moving: Moving) -> float:
        """Seconds of all that was done, with the moving of what is on a device."""
        return self.spent + self.steps * moving.detour(self.on_device)

    def on(self, p: Prediction) -> float:
        """Predicted seconds of the same, without analysis and first factorization."""
        done = self.made * p.factor + self.refactored * p.refactor + self.solved * p.solve
        return done + self.steps * p.moving

    def _buy(self, moving: Moving, problem: Problem, best: Prediction) -> None:
        """Make the factor on the device; the caller's next call goes there."""
        from ..cuda import devices

        engine, start = registry.named(best.engine), perf_counter()
        version, values = moving.version, moving.held.values()
        problem.request = problem.request._replace(device=devices.open_device(problem.request.device).index)
        reason = (
            f"began with {moving.symbolic_here.engine!r}; after {show(self.steps)} steps that took "
            f"{show(self.here(moving))} s, {show(self.on(best))} s were predicted for them"
        )
        reason = "; ".join(filter(None, (reason, settle_precision(problem, engine))))
        symbolic = type(moving.symbolic_here)(
            problem, Choice(best.engine, reason, problem.request, (best,)), engine.analyze(problem)
        )
        made = symbolic.make(values)
        if get_ready := getattr(made, "get_ready", None):  # values of the first step there come from the host
            get_ready(self.on_device or problem.request.on_device)
        core = phases.told(made, symbolic)
        symbolic.seconds["move"] = perf_counter() - start
        moving.offer(core, symbolic, version)
        self.moved = symbolic


class Moving:
    """A processor's factor whose use is counted: what its `Factor` holds until it has moved.

    Has the surface of engines' factors (engines/interface.py). May be used from several threads.

    Parameters
    ----------
    factor : Factor
        Is told when it has moved: `factor.moved(core, symbolic)`.
    core : EngineFactor
    symbolic : Symbolic
        That `core` was made by.
    use : Use
        Of all factors of this analysis.
    """

    def __init__(self, factor: Any, core: Any, symbolic: Any, use: Use):
        self._factor, self.held, self.symbolic_here, self._use = ref(factor), core, symbolic, use
        self.version, self.caller = 0, caller()  # of the values; who hears of it
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Begin with a lock that nobody holds, and nothing bought."""
        self._changing = Lock()  # of the values and the engine
        self._offered: tuple[Any, Any, int] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.held, name)

    story = property(lambda self: self._use.story)

    def solve(self, b: Any, trans: int = 0) -> Any:
        if self._offered and self._changing.acquire(blocking=False):  # else a refactorization is under way
            try:
                offered = self._offered
                if offered and offered[2] == self.version:
                    self._go(offered)
            finally:
                self._changing.release()
        start = perf_counter()
        x = self.held.solve(b, trans)
        self._use.count(self, perf_counter() - start, solved=1)
        return x

    def refactor(self, values: Any, source: Any = None, *checked: bool) -> int:
        with self._changing:
            offered, failure = self._offered, ""
            if offered:  # its values may be older than those held: it has to take the new ones first
                try:
                    if offered[0].refactor(values, source, *checked) < 0:
                        self._go(offered)
                        return -1
                except Exception as error:
                    failure = describe(error)
                except BaseException:  # Ctrl-C: nobody knows which values it holds
                    self._offered = None
                    raise
            start = perf_counter()
            bad: int = self.held.refactor(values, source, *checked)
            self.version += 1
            if failure:  # not by the values: the processor took them
                self._offered = None
                with heard_by(self.caller):
                    self._use.fail(failure)
        self._use.count(self, perf_counter() - start, refactored=1)
        return bad

    def update(self, *change: Any) -> bool:
        """Columns of a Cholesky factor: what is offered has none of this, and takes it by the next refactorization."""
        with self._changing:
            done: bool = self.held.update(*change)
            self.version += done
        return done

    def came_from_device(self) -> None:
        """The caller's vectors are on a device: each call moves them here and back."""
        self._use.on_device = True

    def detour(self, from_device: bool) -> float:
        """Predicted seconds that a step takes for that."""
        problem, analysis = self.symbolic_here.parts()
        return moving(costs_of(), problem.structure(analysis.core), from_device, False)

    def offer(self, core: Any, symbolic: Any, version: int) -> None:
        """Go over to this factor of values of this version, when the caller comes again."""
        self._offered = core, symbolic, version

    def _go(self, offered: tuple[Any, Any, int]) -> None:
        self.held, self._offered = offered[0], None  # others may still call this object
        with heard_by(self.caller):
            phases.moved(offered[1])
        factor = self._factor()
        if factor is not None:
            factor.moved(*offered[:2])


_all: WeakSet[Use | Moving] = WeakSet()


def _forked() -> None:
    """Devices do not survive a fork, nor do the threads that prepare a move."""
    for each in list(_all):
        each.renew()


os.register_at_fork(after_in_child=_forked)


def watched(factor: Any, core: Any, symbolic: Any) -> Any:
    """The engine's factor; watched, if it may move."""
    if symbolic.nnz < LEAST:
        return core
    use: Use = symbolic.parts()[0].once("moving", Use)
    watch = Moving(factor, core, symbolic, use)
    if use.begun or spare_processor():  # to whom nobody helps the first factorization is what auto decided by
        stats = core.stats()
        lent = stats["n_refactor"] > 0
        seconds = stats["refactor_seconds" if lent else "factor_seconds"]
        use.count(watch, seconds, made=not lent, refactored=lent)
    use.begun = True
    return watch


def followed(symbolic: Any) -> Any:
    """What the use of an analysis has led to: another one, or itself."""
    use: Use | None = symbolic.parts()[0].once.get("moving")
    return symbolic if use is None or use.moved is None else symbolic.moved_to(use.moved)


def share() -> float:
    return SHARE if spare_processor() else SHARE_ALONE


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
