"""Tables of circuits: held against targets, every engine's steps, engines side by side, the phases of some."""

from . import engines
from .tables import markdown, time
from .targets import summary

SOLVERS = ("auto", "supernodal", "glu", "sflu", "crisscross", "cpu_device", "cpu", "auto_host", "cudss", "klu")


def results(records):
    """Seconds by case, solver and phase."""
    found = {}
    for record in records:
        phase, case = record["phase"], found.setdefault(record["case"], {})
        error = "sequence_error" if phase == "sequence" else "backward_error"
        for solver, side, wrong in (
            (record["engine"], "ours", record["backward_error"]),
            (record["peer"], "peer", record["peer_backward_error"]),
        ):
            entry = case.setdefault(solver, {})
            values = {phase: record[f"{side}_s"], f"{phase}_wall": record[f"{side}_wall_s"], error: wrong}
            entry.update({name: value for name, value in values.items() if value is not None})
        case[record["engine"]].update(engine=record["runs"], flops=record["flops"])
    for solvers in found.values():
        solvers.pop("none", None)
    return found


def steps(found, phase):
    """A row a case: refactor and solve by each solver."""
    solvers = [solver for solver in SOLVERS if any(solver in entries for entries in found.values())]
    rows = []
    for case, entries in found.items():
        picked = entries.get("auto", entries.get("auto_host", {})).get("engine", "-")
        rows.append([case, picked, *[time(entries.get(solver, {}).get(phase)) for solver in solvers]])
    return markdown(["case", "auto runs", *solvers], rows)


def phases(found, solver):
    """A row a case: the phases of one solver and its backward error."""
    names = ("analyze", "factor", "refactor", "solve", "step", "step_wall", "sequence")
    rows = []
    for case, entries in found.items():
        if solver in entries:
            errors = [entries[solver].get(name) for name in ("backward_error", "sequence_error")]
            cells = [time(entries[solver].get(name)) for name in names]
            rows.append([case, *cells, *["-" if error is None else f"{error:.0e}" for error in errors]])
    return markdown(["case", *names, "error", "worst of sequence"], rows)


def tables(records):
    """All of them, as Markdown."""
    found = results(records)
    parts = ["## Against the targets", "\n".join(f"- {line}" for line in summary(found))]
    parts += ["## Refactor and solve on the device, host for cpu, auto_host and klu", steps(found, "step")]
    parts += ["## The same from Python, waited for", steps(found, "step_wall")]
    if any(engines.complete(entries) for entries in found.values()):
        parts += ["## The engines side by side", engines.table(found)]
    for solver in [name for name in ("auto", "glu", "sflu", "crisscross") if any(name in e for e in found.values())]:
        parts += [f"## Phases of {solver}", phases(found, solver)]
    return "\n\n".join(parts)
