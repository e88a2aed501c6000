"""Tables of the CPU engine: means of ratios by peer and kind of matrix, then case by case."""

from . import comparison
from .tables import geomean, markdown


def tables(records):
    """All of them, as Markdown."""
    return "\n\n".join([*summary(records), comparison.tables(records)])


def summary(records):
    """A row a peer and kind of matrix: geometric mean of the ratios of each phase, the least with its case."""
    ratios, phases = {}, list(dict.fromkeys(record["phase"] for record in records))
    for record in records:
        if record["ours_s"] and record["peer_s"]:
            row = ratios.setdefault((record["peer"], record.get("kind", "all")), {})
            row.setdefault(record["phase"], {})[record["case"]] = record["peer_s"] / record["ours_s"]
    if not ratios:
        return []
    rows = []
    for (peer, kind), by_phase in ratios.items():
        cases = {case for of_phase in by_phase.values() for case in of_phase}
        rows.append([f"{peer}, {kind}", str(len(cases)), *(cell(by_phase.get(phase)) for phase in phases)])
    text = "Geometric means of the peer's seconds over ours, the least and its case."
    return ["## All peers", text, markdown(["peer, matrices", "cases", *phases], rows)]


def cell(of_phase):
    """Mean and least of ratios by case."""
    if not of_phase:
        return "-"
    least = min(of_phase, key=of_phase.get)
    return f"{geomean(list(of_phase.values())):.2f} ({of_phase[least]:.2f} {least})"
