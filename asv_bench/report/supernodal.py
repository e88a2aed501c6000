"""Tables of the supernodal engine: beside its peers, predicted and measured, and where its time goes.

Of several records of the same case, peer and phase the last counts; where refinement was needed, solves are those of
the public call.
"""

from ..matrices import CASES
from .tables import comparison, markdown, means, number, time

ORDER = {case.name: k for k, case in enumerate(CASES)}
FLOORS = {"flop_s": "arithmetic", "copy_s": "traffic", "chain_s": "chain", "places_s": "places"}


def by_phase(records):
    """Records by case, peer and phase, cases in the order of `cases.CASES`."""
    found = {}
    for record in records:
        found.setdefault(record["case"], {}).setdefault(record["peer"], {})[record["phase"]] = record
    for case, record in with_plan(found):
        if record["stats"].get("n_refinement"):  # a replay alone is not the answer
            for phases in found[case].values():
                for phase in ("solve", "step"):
                    phases[phase]["ours_s"] = phases[phase]["ours_call_s"]
    return dict(sorted(found.items(), key=lambda entry: ORDER.get(entry[0], len(ORDER))))


def ratio(record):
    """The peer's seconds over ours, None where one of them is missing."""
    return record["peer_s"] / record["ours_s"] if record and record["ours_s"] and record["peer_s"] else None


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
    return markdown(header, rows) + f"\n\nGeometric means of {len(rows)} cases: {means(ratios)}."


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


def tables(records):
    """All of them, as Markdown."""
    found, parts = by_phase(records), []
    for peer, phases in (
        ("cudss", ("refactor", "solve", "total")),
        ("klu", ("refactor", "solve")),
        ("cholmod", ("refactor", "solve")),
    ):
        if any(peer in peers for peers in found.values()):
            parts += [f"## Beside {peer}", compared(found, peer, phases)]
    alone = [record for record in records if record["peer"] == "none"]
    parts += [comparison(alone)] if alone else []
    if next(with_plan(found), None):
        parts += ["## Predicted and measured", predictions(found)]
        parts += ["## Regime by regime", where_time_goes(found)]
    return "\n\n".join(parts)
