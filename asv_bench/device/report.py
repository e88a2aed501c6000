"""Tables for docs/performance.md from records of supernodal.py.

    python asv_bench/device/report.py [--into docs/performance.md] asv_bench/records/*.jsonl

Of several records of the same case, peer and phase the last counts; where refinement was needed, solves are those of
the public call. With --into, what stands between the two marks of the file, ``<!-- tables: begin -->`` and
``<!-- tables: end -->``, is replaced; else the tables are printed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from cases import CASES
from common import geomean, seconds
from next_steps import limit
from pages import deliver, markdown, origin, records_of

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
GROUPS = {case.name: case.group for case in CASES}
ORDER = {case.name: k for k, case in enumerate(CASES)}
FLOORS = {"flop_s": "arithmetic", "copy_s": "traffic", "chain_s": "chain", "places_s": "places"}


def latest(paths):
    """Records by case, peer and phase, cases in the order of `cases.CASES`."""
    found = {}
    for record in records_of(paths):
        found.setdefault(record["case"], {}).setdefault(record["peer"], {})[record["phase"]] = record
    for case, record in with_plan(found):
        if record["stats"].get("n_refinement"):  # a replay alone is not the answer
            for phases in found[case].values():
                for phase in ("solve", "step"):
                    phases[phase]["ours_s"] = phases[phase]["ours_call_s"]
    return dict(sorted(found.items(), key=lambda entry: ORDER.get(entry[0], len(ORDER))))


def time(value):
    return "-" if not value else seconds(value) if value >= 5e-8 else "< 0.1 us"


def ratio(record):
    """The peer's seconds over ours, None where one of them is missing."""
    return record["peer_s"] / record["ours_s"] if record and record["ours_s"] and record["peer_s"] else None


def number(value, style=".2f"):
    return "-" if value is None else format(value, style)


def compared(found, peer, phases):
    """A row a case: ours, the peer's, ratio of each phase, then backward errors."""
    rows, ratios = [], {phase: [] for phase in phases}
    for case, peers in found.items():
        if peer not in peers:
            continue
        row = [case]
        for phase in phases:
            record = peers[peer].get(phase, {"ours_s": None, "peer_s": None})
            share = ratio(record)
            row += [time(record["ours_s"]), time(record["peer_s"]), number(share)]
            ratios[phase] += [] if share is None else [share]
        last = next(iter(peers[peer].values()))
        rows.append([*row, number(last["backward_error"], ".0e"), number(last["peer_backward_error"], ".0e")])
    header = ["case", *[cell for phase in phases for cell in (phase, peer, "ratio")], "error", peer]
    means = [f"{phase} {geomean(found):.2f} (least {min(found):.2f})" for phase, found in ratios.items() if found]
    return markdown(header, rows) + f"\n\nGeometric means of {len(rows)} cases: {', '.join(means)}."


def with_plan(found):
    """Cases and the record of each that holds what the plan and the profile say."""
    for case, peers in found.items():
        for phases in peers.values():
            if isinstance(phases.get("refactor", {}).get("regimes"), list):
                yield case, phases["refactor"]
                break


def predictions(found):
    """Predicted and measured seconds of a refactorization, and its rate."""
    rows, good = [], 0
    for case, record in with_plan(found):
        predicted, measured = record["predicted_s"], record["ours_s"]
        share = predicted / measured if predicted and measured else None
        good += share is not None and 1 / 1.5 <= share <= 1.5
        rates = [number(record.get(key), ".2g") for key in ("tflops", "peer_tflops")]
        size = [f"{record['n']:,}", f"{record['nnz']:,}", f"{1e-9 * record['flops']:.3g}"]
        rows.append([case, *size, time(measured), time(predicted), number(share), *rates])
    header = ["case", "n", "nnz", "Gflop", "refactor", "predicted", "over measured", "TFLOP/s", "peer's"]
    text = f"\n\nWithin a factor of 1.5: {good} of {len(rows)}."
    return markdown(header, rows) + text


def kernel_regime(name):
    """Regime that a kernel of the factorization works for, by its name; None for others."""
    for part, regime in (("warp", "warp"), ("small", "small"), ("block", "block"), ("large", "large")):
        if part in name:
            return regime
    return None


def measured_regimes(record):
    """Seconds of each regime of a refactorization and of all else, as the profile has them."""
    found = {}
    for name, entry in (record.get("kernels") or {}).get("refactor", {}).items():
        regime = kernel_regime(name) or "else"
        found[regime] = found.get(regime, 0.0) + entry["seconds"]
    return found


def floors_of(entry):
    return {name: entry[key] for key, name in FLOORS.items()}


def next_steps(found):
    """An item a remedy: the cases it would help, with the regime that takes most of their time and what bounds it."""
    groups = {}
    for case, record in with_plan(found):
        remedy, finding = limit(record, measured_regimes(record), floors_of)
        groups.setdefault(remedy, []).append(f"{case} ({finding})")
    return "\n".join(f"- {remedy[0].upper()}{remedy[1:]}: {'; '.join(cases)}." for remedy, cases in groups.items())


def where_time_goes(found):
    """A row a case and regime: fronts, levels, arithmetic, measured and predicted seconds, and the floors."""
    rows = []
    for case, record in with_plan(found):
        measured = measured_regimes(record)
        for entry in record["regimes"]:
            floors = floors_of(entry)
            bound = max(floors, key=floors.get)
            took = measured.get(entry["regime"])
            row = [case, entry["regime"], f"{entry['fronts']:,}", str(entry["levels"]), f"{entry['gflop']:.3g}"]
            row += [f"{entry['chain_fronts']} / {entry['chain_pivots']:,}", time(took), time(entry["predicted_s"])]
            row += [*map(time, floors.values()), bound, number(took / floors[bound] if took else None, ".1f")]
            rows.append(row)
        if measured.get("else"):
            rows.append([case, "else", *["-"] * 4, time(measured["else"]), *["-"] * 7])
    header = ["case", "regime", "fronts", "levels", "Gflop", "chain: fronts / pivots", "measured", "predicted"]
    return markdown([*header, *FLOORS.values(), "bound by", "over it"], rows)


def tables(paths):
    """All of them, as Markdown."""
    found = latest(paths)
    parts = [origin(r for p in found.values() for q in p.values() for r in q.values())]
    for peer, phases in (("cudss", ("refactor", "solve", "total")), ("klu", ("refactor", "solve"))):
        if any(peer in peers for peers in found.values()):
            parts += [f"### Beside {peer}", compared(found, peer, phases)]
    if any("cholmod" in peers for peers in found.values()):
        parts += ["### Beside cholmod", compared(found, "cholmod", ("refactor", "solve"))]
    parts += ["### Predicted and measured", predictions(found)]
    parts += ["### Regime by regime", where_time_goes(found)]
    parts += ["### The next factor of two", next_steps(found)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    deliver(tables, BEGIN, END, __doc__.splitlines()[0])
