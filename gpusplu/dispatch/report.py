"""Text of explain(): properties of a matrix, the choices made for it and their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core
from ..common.matrix import Pattern
from ..common.stats import Explanation, Memory, column, duration, durations, show
from ..cost.features import method_of
from ..cost.model import Estimate
from ..cost.scale import DEVICE_BYTES, advice, needs_of, size
from ..engines import registry

#: Fields of a prediction in the table of explain().
PHASES = ("analyze", "factor", "refactor", "solve", "moving")
SINGULAR = "the pattern alone makes the matrix exactly singular"


def explain_factor(symbolic: Any, stats: Mapping[str, Any], reason: str = "") -> Explanation:
    """Explain a factorization; `reason`: why the factor did or did not migrate to a device."""
    error, seconds = stats["backward_error"], stats["seconds"]
    if error is not None:
        accuracy = f"backward error {error:.1e}"
    elif "error_bound" in stats:
        accuracy = f"backward error bounded by about {stats['error_bound']:.1e}: errors of solves are not measured"
    else:
        accuracy = "measured at every solve"
    held = f"{stored_text(stats['nnz_factor'], stats['method'])}, {stats['fill']:.2f} times A"
    rows = [
        ("matrix", f"{show(stats['n'])} x {show(stats['n'])}, {show(stats['nnz'])} entries"),
        ("engine", f"{stats['engine']}: {symbolic.choice.reason}"),
        *([("moving", reason)] if reason else []),
        ("method", method_text(stats["method"], stats["symmetric"])),
        ("analysis", stats["analysis"]),
        ("ordering", ordering_text(symbolic, stats["ordering"])),
        ("factor", f"{held}, {size(stats['bytes'])}"),
        *([("precision", precision_text(stats))] if "precision" in stats else []),
        *registry.named(symbolic.engine).describe(symbolic.parts()[1], stats),
        ("accuracy", accuracy),
        ("pivoting", "; ".join(events_of(stats)) or "no repairs were needed"),
        ("seconds", durations(seconds)),
    ]
    return Explanation(rows, *predicted_table(symbolic))


def events_of(stats: Mapping[str, Any]) -> list[str]:
    """Work besides factoring and solving, from the counts of a factor."""
    events = {
        "matching and ordering repeated with newer values": stats.get("n_reanalyzed", 0),
        "updates and downdates": stats.get("n_updated", 0),
        "columns of LDL^T delayed to parent fronts": stats.get("n_delayed", 0),
        "pivots chosen again by threshold partial pivoting": stats.get("n_repivoted", 0),
        "perturbed pivots": stats.get("n_perturbed", 0),
        "refinement steps": stats.get("n_refinement", 0),
        "GMRES iterations of refinement": stats.get("n_gmres", 0),
        "factorizations in double precision": stats.get("n_double", 0),
    }
    return [f"{what}: {show(count)}" for what, count in events.items() if count]


def matrix_traits(pattern: Pattern, canonical: np.ndarray) -> Any:
    """Traits of the matrix with these canonical values; cost: two passes over its entries.

    Attributes
    ----------
    n, nnz : int
        Order and number of entries.
    dtype : str
    density : float
        Share of the entries that are stored; 0 of an empty matrix.
    pattern_symmetry : float
        Share of the off-diagonal entries of which the transposed entry is stored too.
    hermitian : bool
        Up to rounding.
    definite_likely : bool
        Hermitian with a positive diagonal. Not verified by a Cholesky factorization.
    diagonally_dominant : bool
        By columns.
    diagonal : int
        Diagonal entries that are not zero.
    """
    n, nnz = pattern.n, pattern.nnz
    found = _core.symmetry_traits(pattern.ptr, pattern.ind, canonical)
    columns = np.repeat(np.arange(n), np.diff(pattern.ptr))
    hermitian = bool(found["hermitian_error"] <= 100 * np.finfo(canonical.dtype).eps)
    return SimpleNamespace(
        n=n,
        nnz=nnz,
        dtype=canonical.dtype.name,
        density=nnz / (float(n) * n) if n else 0.0,
        pattern_symmetry=float(found["pattern_symmetry"]),
        hermitian=hermitian,
        definite_likely=hermitian and bool(found["positive_diagonal"]),
        diagonally_dominant=bool(found["diagonally_dominant"]),
        diagonal=int(np.count_nonzero((pattern.ind == columns) & (canonical != 0))),
    )


def explain_matrix(symbolic: Any, canonical: np.ndarray) -> Explanation:
    """Explain a matrix and the choices of its analysis; there are none if the matrix is structurally singular."""
    (problem, analysis), engine = symbolic.parts(), registry.named(symbolic.engine)
    traits, core = matrix_traits(problem.pattern, canonical), analysis.core
    symmetry = f"{traits.pattern_symmetry:.0%} of the off-diagonal entries have a partner across the diagonal"
    if traits.hermitian:
        symmetry += "; Hermitian" + (", likely positive definite" if traits.definite_likely else "")
        symmetry += "; cholesky would need half the work" if traits.definite_likely and core.kind == "lu" else ""
    rows = [
        ("matrix", f"{show(traits.n)} x {show(traits.n)}, {show(traits.nnz)} entries, {traits.dtype}"),
        ("density", f"{traits.density:.2g}, {show(traits.nnz / max(traits.n, 1))} entries per column"),
        ("symmetry", symmetry),
        ("diagonal", f"{show(traits.diagonal)} of {show(traits.n)} entries are not zero"),
        ("rank", f"structural rank {show(int(symbolic.structural_rank))}"),
    ]
    if symbolic.structural_rank < traits.n:
        return Explanation([*rows, ("factor", f"none: {SINGULAR}"), ("seconds", durations(symbolic.seconds))])
    memory = memory_of(symbolic)
    fill = f"{entries_text(core.lnz, core.n, core.kind != 'lu')}, {show(core.flops)} flop, "
    fill += f"{show(core.column_levels)} levels"
    fill += f" of columns, {show(core.super_levels)} of supernodes" if core.super_levels else " of columns"
    rows += [
        ("engine", f"{symbolic.engine}: {symbolic.choice.reason}"),
        ("method", method_text(symbolic.method, analysis.core.kind == "ldlt")),
        ("ordering", ordering_text(symbolic, symbolic.ordering)),
        ("predicted", fill),
        ("scale", scale_text(symbolic.choice.request, core, problem.itemsize)),
        ("memory", memory_text(memory)),
        *engine.describe(analysis, {}),
        ("seconds", durations(symbolic.seconds)),
    ]
    return Explanation(rows, *predicted_table(symbolic), memory)


def facts_of_matrix(symbolic: Any, canonical: np.ndarray) -> dict[str, Any]:
    """The content of `explain_matrix` as a dict, times in seconds."""
    (problem, analysis), request = symbolic.parts(), symbolic.choice.request
    traits = vars(matrix_traits(problem.pattern, canonical))
    matrix = {**traits, "structural_rank": symbolic.structural_rank}
    if symbolic.structural_rank < symbolic.n:
        return {"matrix": matrix, "engine": None, "reason": SINGULAR, "seconds": dict(symbolic.seconds)}
    core = analysis.core
    predictions = [
        {"engine": p.engine, "note": p.note}
        if p.note
        else {"engine": p.engine, **{phase: getattr(p, phase) for phase in PHASES}, "total": p.total(request.uses)}
        for p in predictions_of(symbolic)
    ]
    considered = [
        {"ordering": name, "method": method, "seconds": seconds} for name, method, seconds in analysis.core.considered
    ]
    return {
        "matrix": matrix,
        "engine": symbolic.engine,
        "reason": symbolic.choice.reason,
        "method": method_of(core),
        "ordering": symbolic.ordering,
        "considered": considered,
        "predicted": {
            "entries_of_L": core.lnz,
            "flops": core.flops,
            "column_levels": core.column_levels,
            "super_levels": core.super_levels,
        },
        "scale": scale_text(request, core, problem.itemsize),
        "memory": memory_of(symbolic)._asdict(),
        "seconds": dict(symbolic.seconds),
        "refactorizations": request.uses,
        "predictions": predictions,
    }


def scale_text(request: Any, core: Any, itemsize: int) -> str:
    """Hardware that the factors need: one GPU, several or a cluster."""
    device_bytes, requested = request.device_memory or DEVICE_BYTES, request.devices or (request.device,)
    if request.device is not None and request.device_memory is None:
        from ..cuda import devices

        device_bytes = min(devices.open_device(index).free_bytes() for index in requested)
    return advice(needs_of(core, itemsize), core.flops, device_bytes, len(requested))


def memory_of(symbolic: Any) -> Memory:
    """Predicted memory of a first factorization, and free memory."""
    (problem, analysis), request, threads = symbolic.parts(), symbolic.choice.request, _core.num_threads()
    core = analysis.core
    kept = _core.bytes_of(core) + _core.bytes_of(problem.pattern.core)
    peak, free = core.analysis_bytes(threads), _core.free_host_memory()
    if not registry.named(symbolic.engine).capabilities.on_device:
        return Memory(kept + max(peak, core.peak_bytes(problem.dtype.char, threads)), free)
    from ..cuda import devices

    used = request.devices or (request.device,)
    able = [p.device_bytes for p in predictions_of(symbolic) if p.engine == symbolic.engine and p.device_bytes]
    device_free = [devices.open_device(index).free_bytes() for index in used if index is not None]
    return Memory(
        kept + peak,
        free,
        able[0] if able else None,
        min(device_free, default=None),  # values are on the host too
    )


def memory_text(memory: Memory) -> str:
    """The peak on the host, and on the device if there is one."""

    def of(peak: int, free: int | None, where: str) -> str:
        return f"peak {size(peak)}" + (f" of {size(free)} free" if free is not None else "") + f" on {where}"

    host = of(memory.host_peak, memory.host_free, "this host")
    return host if memory.device_peak is None else f"{host}, {of(memory.device_peak, memory.device_free, 'the device')}"


def predicted_table(symbolic: Any) -> tuple[str, list[list[str]]]:
    """Heading, and predicted seconds beyond this analysis, one row per engine; no rows without predictions."""
    predictions, many = predictions_of(symbolic), symbolic.choice.request.uses
    if not predictions:
        return "", []
    able = [p for p in predictions if not p.note]
    columns = [["engine", *(p.engine for p in able)]]
    columns += [column(phase, [getattr(p, phase) for p in able]) for phase in PHASES]
    columns.append(column("total", [p.total(many) for p in able]))
    notes = [[p.engine, p.note] for p in predictions if p.note]
    return f"predicted, with {many:,g} refactorizations and solves", [*map(list, zip(*columns, strict=True)), *notes]


def predictions_of(symbolic: Any) -> tuple[Estimate, ...]:
    """Predictions that the engine was chosen by; for a named engine its own prediction, if there is one."""
    predictions: tuple[Estimate, ...] = symbolic.choice.predictions
    if predictions:
        return predictions
    problem, _ = symbolic.parts()
    prediction = registry.named(symbolic.engine).estimate(problem)
    return () if prediction.note else (prediction,)


def ordering_text(symbolic: Any, ordering: str) -> str:
    """The ordering, and the predicted seconds by which it was chosen if it was compared with others.

    On the processor: seconds of the expected use of a factor, by ordering and method. On a device: from the engine.
    """
    _, analysis = symbolic.parts()
    by = {"column": "columns", "front": "fronts", "ldlt": "LDL^T"}
    considered = [(f"{name} by {by[method]}", seconds) for name, method, seconds in analysis.core.considered]
    compared = analysis.compared or considered
    if ordering != analysis.core.ordering or not compared:
        return ordering
    return f"{ordering}; predicted " + ", ".join(f"{duration(seconds)} with {name}" for name, seconds in compared)


def method_text(method: str, symmetric: bool) -> str:
    """`symmetric`: by LDL^T."""
    known = {
        "column": "column LU with threshold partial pivoting (little fill)",
        "front": "fronts (supernodes and dense kernels)",
    }
    return known.get(method, method) + (", LDL^T: A is symmetric or Hermitian" if symmetric else "")


def entries_text(fill: int, n: int, one_triangle: bool) -> str:
    """Entries of the factors from the entries of L, the diagonal counted once."""
    return f"{show(fill)} entries of L" if one_triangle else f"{show(2 * fill - n)} entries of L + U"


def stored_text(nnz: int, method: str) -> str:
    """Stored entries of a factor; fronts of several columns store explicit zeros."""
    return f"{show(nnz)} entries stored" + (" including zeros in fronts" if method == "front" else "")


def precision_text(stats: Mapping[str, Any]) -> str:
    """Precision of a factor for which mixed precision was requested."""
    if stats["precision"] == "mixed":
        return "mixed: the factor is single precision, and solutions are refined to double precision"
    return f"double, after mixed precision failed: {stats['why_double']}"


def analysis_text(call: int) -> str:
    """Call that made the analysis of a factor, counted as cache_info counts calls."""
    return f"analysis of call {call} reused" if call else "made for this matrix"
