"""Text of explain(): what was found about a matrix, what was chosen for it and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _core
from .matrix import Pattern
from .stats import show


def explain_factor(reason: str, stats: Mapping[str, Any]) -> str:
    """Lines about a factorization that was made."""
    events = {
        "matched and ordered again with newer values": stats.get("n_reanalyzed", 0),
        "pivots chosen anew by threshold partial pivoting": stats.get("n_repivoted", 0),
        "perturbed pivots": stats.get("n_perturbed", 0),
        "refinement steps": stats.get("n_refinement", 0),
    }
    happened = [f"{what}: {show(count)}" for what, count in events.items() if count]
    error, seconds = stats["backward_error"], stats["seconds"]
    if error is not None:
        accuracy = f"backward error {error:.1e}"
    elif "error_bound" in stats:
        accuracy = f"backward error bounded by about {stats['error_bound']:.1e}: solves are not measured"
    else:
        accuracy = "every solve is measured"
    size = f"{show(stats['nnz_factor'])} entries, {stats['fill']:.2f} times A, {show(stats['bytes'])} bytes"
    return table(
        [
            ("matrix", f"{show(stats['n'])} x {show(stats['n'])}, {show(stats['nnz'])} entries"),
            ("engine", f"{stats['engine']}: {reason}"),
            ("method", method_text(stats["method"])),
            ("ordering", stats["ordering"]),
            ("factor", size),
            ("accuracy", accuracy),
            ("pivoting", "; ".join(happened) or "nothing had to be mended"),
            ("seconds", durations(seconds)),
        ]
    )


def explain_matrix(pattern: Pattern, canonical: np.ndarray, symbolic: Any) -> str:
    """Lines about a matrix and what its analysis chose."""
    n, nnz = pattern.n, pattern.nnz
    columns = np.repeat(np.arange(n), np.diff(pattern.ptr))
    diagonal = int(np.count_nonzero((pattern.ind == columns) & (canonical != 0)))
    symmetry = _core.symmetry_traits(pattern.ptr, pattern.ind, canonical)["pattern_symmetry"]
    return table(
        [
            ("matrix", f"{show(n)} x {show(n)}, {show(nnz)} entries, {canonical.dtype.name}"),
            ("symmetry", f"{symmetry:.0%} of the off-diagonal entries have a partner across the diagonal"),
            ("diagonal", f"{show(diagonal)} of {show(n)} entries are not zero"),
            ("rank", f"structural rank {show(int(symbolic.structural_rank))}"),
            ("engine", f"{symbolic.engine}: {symbolic._choice.reason}"),
            ("method", method_text(symbolic.method)),
            ("ordering", symbolic.ordering),
            ("predicted", f"{show(int(symbolic.lnz))} entries of L, {show(float(symbolic.flops))} flop"),
            ("seconds", durations(symbolic.seconds)),
        ]
    )


def durations(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{phase} {show(duration)}" for phase, duration in seconds.items() if duration)


def method_text(method: str) -> str:
    if method == "column":
        return "column LU with threshold partial pivoting (little fill)"
    return "fronts (supernodes and dense kernels)"


def table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name:<10}{text}" for name, text in rows)
