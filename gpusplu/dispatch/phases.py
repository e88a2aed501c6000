"""Log lines about a factor: its analysis and the choices in it, measured and predicted seconds of every phase, and
repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from ..common.listeners import EACH, UNASKED, caller, log_enabled, tell
from ..common.progress import shown_to
from ..common.stats import duration, show
from ..cost.model import Prediction
from ..cost.scale import size
from ..engines import registry
from .report import entries_text, events_of, method_text, ordering_text, predictions_of, stored_text


def took(phase: str, seconds: float, text: str = "", predicted: float | None = None, level: int | None = None) -> None:
    """Log a finished phase."""
    prediction = f", {duration(predicted)} predicted" if predicted else ""
    line = f"{phase} took {duration(seconds)}{prediction}" + (f": {text}" if text else "")
    kept = {"phase": phase, "seconds": seconds, "predicted": predicted}
    tell(line, **kept) if level is None else tell(line, level, **kept)  # type: ignore[arg-type]


def canonicalized(problem: Any) -> None:
    """Log that the matrix has been read."""
    if log_enabled():
        text = f"{show(problem.n)} x {show(problem.n)}, {show(problem.nnz)} entries, {problem.values.dtype}"
        took("canonicalize", problem.seconds["canonicalize"], text)


def analyzed(symbolic: Any) -> None:
    """Log a new analysis."""
    if not log_enabled():
        return
    _, analysis = symbolic.parts()
    seconds = symbolic.seconds
    took("analyze", seconds.get("analyze", 0.0), method_text(symbolic.method, analysis.core.kind == "ldlt"))
    if seconds.get("plan"):
        took("plan", seconds["plan"])
    tell(f"ordering {ordering_text(symbolic, symbolic.ordering)}")
    chosen(symbolic)


def chosen(symbolic: Any) -> None:
    """Log the engine, the reason for it, and its predictions."""
    tell(f"engine {symbolic.engine}: {symbolic.choice.reason}")
    entries = entries_text(symbolic.lnz, symbolic.n, symbolic.parts()[1].core.kind != "lu")
    tell(f"predicted {entries}, {show(symbolic.flops)} flop" + expectations(symbolic))


def expectations(symbolic: Any) -> str:
    """Predicted seconds of the phases that follow."""
    prediction = prediction_of(symbolic)
    if prediction is None:
        return ""
    phases = ("factor", "refactor", "solve")
    return "; " + ", ".join(f"{phase} {duration(getattr(prediction, phase))}" for phase in phases)


def prediction_of(symbolic: Any) -> Prediction | None:
    """The prediction for the engine that runs, None without one."""
    return {p.engine: p for p in predictions_of(symbolic)}.get(symbolic.engine)


def reused(symbolic: Any) -> None:
    """Log that a cached analysis is used."""
    if log_enabled():
        tell(f"analysis of call {symbolic.call} reused, found in {duration(symbolic.seconds['canonicalize'])}")
        chosen(symbolic)


def dropped(call: int, why: str) -> None:
    """Log that a cached analysis is not used."""
    if log_enabled():
        tell(f"analysis of call {call} dropped: {why}")


def short_of_memory() -> None:
    """Log that the pattern cache is cleared and the call repeated."""
    if log_enabled(UNASKED):
        tell("memory is short: what was remembered of patterns is dropped, and the call made again", UNASKED)


def log_fused(symbolic: Any) -> None:
    """Log a fused analysis and factorization."""
    if symbolic.call:
        return reused(symbolic)
    canonicalized(symbolic.parts()[0])
    analyzed(symbolic)


def logged(core: Any, symbolic: Any) -> Any:
    """Log the factorization. Returns the engine's factor, wrapped in `LoggedFactor` if logs or progress are enabled."""
    if not log_enabled():
        return core if caller().progress is None else LoggedFactor(core, symbolic, None)
    stats, expected = core.stats(), prediction_of(symbolic)
    phase = "refactor" if stats["n_refactor"] else "factor"  # a borrowed factor is refactored
    text = f"{stored_text(core.nnz, core.method)}, {size(stats['bytes'])}"
    took(phase, stats[f"{phase}_seconds"], text, getattr(expected, phase, None))
    following = LoggedFactor(core, symbolic, expected)
    if following.counted:
        repaired(core, symbolic, {}, stats)
    return following


def repaired(core: Any, symbolic: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Log the repairs of a factorization, from the counts before and after it."""
    counts = {name: count - before.get(name, 0) for name, count in after.items() if isinstance(count, int)}
    counts["n_perturbed"] = after.get("n_perturbed", 0)  # not added up
    events = events_of({name: count for name, count in counts.items() if name != "n_refinement"})
    if symbolic.parts()[1].core.kind == "ldlt" != core.symbolic.kind:
        events.append("LDL^T was left for LU")
    if events:
        tell("; ".join(events))


class LoggedFactor:
    """Wraps an engine's factor, logs its refactorizations and solves and shows their progress, in the log context in
    which it was made.

    Parameters
    ----------
    core : EngineFactor
    symbolic : Symbolic
        Analysis that made it.
    expected : Prediction, optional
    """

    def __init__(self, core: Any, symbolic: Any, expected: Prediction | None):
        self.held, self._symbolic, self._expected, self._caller = core, symbolic, expected, caller()
        # Reading counts from a device would wait for it; device engines log repairs themselves.
        self.counted = not registry.named(symbolic.engine).on_device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.held, name)

    def solve(self, b: Any, trans: int = 0) -> Any:
        columns = 1 if b.ndim == 1 else b.shape[1]
        sides = f"{show(columns)} right-hand side" + ("s" if columns > 1 else "")
        return self._timed("solve", partial(self.held.solve, b, trans), sides)

    def refactor(self, values: Any, source: Any = None, *checked: bool) -> Any:
        with shown_to(self._caller):
            counted = self.counted and log_enabled()
            before = self.held.stats() if counted else {}
            bad = self._timed("refactor", partial(self.held.refactor, values, source, *checked))
            if counted:
                repaired(self.held, self._symbolic, before, self.held.stats())
        return bad

    def refactor_solve(self, values: Any, b: Any, trans: int = 0) -> Any:
        return self._timed("refactor_solve", partial(self.held.refactor_solve, values, b, trans))

    def _timed(self, phase: str, work: Callable[[], Any], text: str = "") -> Any:
        with shown_to(self._caller):
            start = perf_counter()
            result = work()
            if log_enabled(EACH):
                seconds, error = perf_counter() - start, self.held.backward_error
                if phase != "refactor" and error >= 0:
                    text = ", ".join(filter(None, (text, f"backward error {error:.1e}")))
                took(phase, seconds, text, getattr(self._expected, phase, None), EACH)
        return result


def batch_factored(count: int, side_by_side: bool, seconds: float) -> None:
    """Log that systems of one pattern were factored, or were queued on a device."""
    if log_enabled():
        took("factor", seconds, f"{show(count)} systems {'side by side' if side_by_side else 'one by one'}")


def migrated(symbolic: Any) -> None:
    """Log that a factor has migrated to another engine."""
    if log_enabled():
        tell(f"moved to engine {symbolic.engine}: {symbolic.choice.reason}")


def stays(reason: str, failed: bool = False) -> None:
    """Log that a factor does not migrate; `failed`: because a device failed."""
    if log_enabled(UNASKED):
        tell(reason, UNASKED) if failed else tell(reason)
