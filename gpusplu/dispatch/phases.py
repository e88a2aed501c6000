"""Log lines about a factor: its analysis and the choices in it, measured and predicted seconds of every phase, and
repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from ..common.listeners import EACH, NOBODY, SUMMARY, UNASKED, caller, log_enabled, tell
from ..common.progress import shown_to
from ..common.stats import duration, show
from ..cost.model import Estimate
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


def prediction_of(symbolic: Any) -> Estimate | None:
    """The prediction for the engine that runs, None without one."""
    return {p.engine: p for p in predictions_of(symbolic)}.get(symbolic.engine)


def reused(symbolic: Any) -> None:
    """Log that a cached analysis is used."""
    if log_enabled():
        tell(f"analysis of call {symbolic.call} reused, found in {duration(symbolic.seconds['canonicalize'])}")
        chosen(symbolic)


def dropped(call: int, why: str) -> None:
    """Log that a cached analysis is not used."""
    tell(f"analysis of call {call} dropped: {why}")


def short_of_memory() -> None:
    """Log that the pattern cache is cleared and the call repeated."""
    tell("low memory: pattern cache cleared, retrying", UNASKED)


def made_at_once(symbolic: Any, dropped_call: int) -> None:
    """Log an analysis and the search for it, which one call of an engine made; `dropped_call`: as in `Made`."""
    if dropped_call:
        dropped(dropped_call, "it is unsuitable for these values, or the factorization failed")
    if symbolic.call:
        return reused(symbolic)
    canonicalized(symbolic.parts()[0])
    analyzed(symbolic)


def factored(symbolic: Any, numeric: Any) -> None:
    """Log the factorization of a factor, with its repairs."""
    if not log_enabled():
        return
    stats, expected = numeric.stats(), prediction_of(symbolic)
    phase = "refactor" if stats["n_refactor"] else "factor"  # a borrowed factor is refactored
    text = f"{stored_text(numeric.nnz, numeric.method)}, {size(stats['bytes'])}"
    took(phase, stats[f"{phase}_seconds"], text, getattr(expected, phase, None))
    if has_counts(symbolic):
        repaired(numeric, symbolic, {}, stats)


def has_counts(symbolic: Any) -> bool:
    """Whether reading the counts of a factor costs nothing. From a device it would wait; device engines log repairs
    themselves."""
    return not registry.named(symbolic.engine).capabilities.on_device


def repaired(core: Any, symbolic: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Log the repairs of a factorization, from the counts before and after it."""
    counts = {name: count - before.get(name, 0) for name, count in after.items() if isinstance(count, int)}
    counts["n_perturbed"] = after.get("n_perturbed", 0)  # not added up
    events = events_of({name: count for name, count in counts.items() if name != "n_refinement"})
    if symbolic.parts()[1].core.kind == "ldlt" != core.symbolic.kind:
        events.append("LDL^T was replaced by LU")
    if events:
        tell("; ".join(events))


def follows_calls() -> bool:
    """Whether the current caller requests logs or progress of later calls of the factor."""
    return caller() is not NOBODY or log_enabled()


def logged_calls(symbolic: Any, numeric: Any, solve: Any, refactor: Any, refactor_solve: Any) -> tuple[Any, Any, Any]:
    """The calls of a factor, each followed by a log line and with its progress shown, as its caller requests now."""
    one, expected = caller(), prediction_of(symbolic)
    counted = has_counts(symbolic)

    def timed(phase: str, work: Callable[[], Any], text: str = "") -> Any:
        with shown_to(one):
            start = perf_counter()
            result = work()
            if log_enabled(EACH):
                seconds, error = perf_counter() - start, numeric.backward_error
                if phase != "refactor" and error >= 0:
                    text = ", ".join(filter(None, (text, f"backward error {error:.1e}")))
                took(phase, seconds, text, getattr(expected, phase, None), EACH)
        return result

    def logged_solve(b: Any, trans: int = 0) -> Any:
        columns = 1 if b.ndim == 1 else b.shape[1]
        sides = f"{show(columns)} right-hand side" + ("s" if columns > 1 else "")
        return timed("solve", partial(solve, b, trans), sides)

    def logged_refactor(values: Any, source: Any = None, *checked: bool) -> Any:
        with shown_to(one):
            before = numeric.stats() if counted and log_enabled() else None
            bad = timed("refactor", partial(refactor, values, source, *checked))
            if before is not None:
                repaired(numeric, symbolic, before, numeric.stats())
        return bad

    def logged_step(values: Any, b: Any, trans: int = 0) -> Any:
        return timed("refactor_solve", partial(refactor_solve, values, b, trans))

    return logged_solve, logged_refactor, logged_step


def batch_factored(count: int, side_by_side: bool, seconds: float) -> None:
    """Log that systems of one pattern were factored, or were queued on a device."""
    if log_enabled():
        took("factor", seconds, f"{show(count)} systems {'side by side' if side_by_side else 'one by one'}")


def migrated(symbolic: Any) -> None:
    """Log that a factor has migrated to another engine."""
    tell(f"migrated to engine {symbolic.engine}: {symbolic.choice.reason}")


def stays(reason: str, failed: bool = False) -> None:
    """Log that a factor does not migrate; `failed`: because a device failed."""
    tell(reason, UNASKED if failed else SUMMARY)
