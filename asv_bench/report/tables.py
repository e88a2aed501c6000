"""Tables of records as Markdown: cells, rows and means, the general table, and those of processor and streaming.

The general table has one row per case and variant: seconds of gpusplu and of a peer, and their ratio, by phase.
"""

from gpusplu.common.stats import duration as seconds

from ..timing import geomean

ERRORS = ("backward_error", "peer_backward_error")


def by_variant(records):
    """The last record of each case and variant."""
    found = {}
    for record in records:
        found.setdefault(record["case"], {})[record["variant"]] = record
    return found


def origin(records):
    """Commit and date that records come from, as a sentence."""
    made = sorted({(record["commit"], record.get("date")) for record in records if "commit" in record})
    of = ", ".join(f"{commit} of {date}" if date else f"{commit} (no date was recorded)" for commit, date in made)
    return f"Commit {of}."


def markdown(header, rows):
    """A table with its first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def time(value):
    """A duration; a dash for none."""
    return "-" if not value else seconds(value) if value >= 5e-8 else "< 0.1 us"


def us(value):
    """Whole microseconds."""
    return f"{1e6 * value:,.0f}"


def number(value, style=".2f"):
    """A number; a dash for none."""
    return "-" if value is None else format(value, style)


def means(ratios):
    """Geometric mean and least of ratios by name, as text."""
    return ", ".join(f"{name} {geomean(found):.2f} (least {min(found):.2f})" for name, found in ratios.items() if found)


def comparison(records, further=()):
    """One table per engine and peer, as Markdown; `further` are additional columns, as in COLUMNS."""
    parts = []
    for engine, peer in dict.fromkeys((record["engine"], record["peer"]) for record in records):
        here = [record for record in records if (record["engine"], record["peer"]) == (engine, peer)]
        parts += [f"## {engine}{'' if peer == 'none' else f' beside {peer}'}", table(here, peer, dict(further))]
    return "\n\n".join(parts)


def label(record):
    """What a row is of."""
    columns, scale = record.get("columns"), record.get("scale", 1)
    sizes = [columns and f"{columns} columns", scale != 1 and f"{scale:g} times the size"]
    words = [record["case"], record.get("ordering"), record.get("variant"), *sizes]
    return ", ".join(word for word in words if word)


def table(records, peer, further):
    """Of one engine and peer, with geometric means of ratios."""
    phases = list(dict.fromkeys(record["phase"] for record in records if record["ours_s"] is not None))
    rows, ratios = {}, {name: [] for name in (*phases, *further)}
    for record in records:
        rows.setdefault(label(record), {})[record["phase"]] = record
    beside = [] if peer == "none" else [peer]
    errors = ERRORS[: 1 + len(beside)]
    errors = errors if any(record.get(key) is not None for record in records for key in errors) else ()
    lines = []
    for name, found in rows.items():
        cells = [name]
        for phase in phases:
            ours, there = (found.get(phase, {}).get(key) for key in ("ours_s", "peer_s"))
            ratio = there / ours if ours and there else None
            ratios[phase] += [] if ratio is None else [ratio]
            cells += [time(ours), *([time(there), number(ratio)] if beside else [])]
        for column, value_of in further.items():
            value = value_of(found)
            ratios[column] += [value] if isinstance(value, float) else []
            cells.append(f"{value:.3g}" if isinstance(value, float) else value)
        record = next(iter(found.values()))
        lines.append([*cells, *(number(record.get(key), ".0e") for key in errors)])
    header = ["case", *(cell for phase in phases for cell in (phase, *beside, *(["ratio"] if beside else [])))]
    text = markdown([*header, *further, *(["error", *beside] if errors else [])], lines)
    return text if not any(ratios.values()) else f"{text}\n\nGeometric means of {len(lines)} rows: {means(ratios)}."


# Additional columns of some suites, computed from a row's records by phase: numbers, which get a mean, or texts


def first(found):
    return next(iter(found.values()))


def over(left, *rights):
    """The quotient of a value of the first record and the sum of others."""

    def value_of(found):
        below = sum(first(found).get(name) or 0 for name in rights)
        return float(first(found)[left] / below) if below else "-"

    return value_of


def text(name, style=""):
    """A value of the first record."""
    return lambda found: number(first(found).get(name), style)


def duration(name):
    """The same of seconds."""
    return lambda found: time(first(found).get(name))


def systems(found):
    """How many were solved side by side."""
    return "-" if (batch := found.get("vmap") or found.get("batch")) is None else str(batch["systems"])


def rate(side):
    """Multiply-adds and divisions of a second, in units of 1e9."""

    def value_of(found):
        seconds = first(found)[side]
        return float(1e-9 * first(found)["flops"] / seconds) if seconds else "-"

    return value_of


def modelled(found):
    """Predicted over measured seconds of each phase."""
    return " ".join(f"{record['predicted_s'] / record['ours_s']:.2f}" for record in found.values())


def flag(found):
    return "too large" if first(found)["flagged"] else "-"


TRANSPOSED = {
    "error of A^T": text("transposed_error", ".0e"),
    "its": text("peer_transposed_error", ".0e"),
    "flagged": flag,
}
COLUMNS = {
    "memory": {
        **{f"{name} [bytes]": text(f"{name}_bytes", ",") for name in ("input", "factor", "peak")},
        "peak over both": over("peak_bytes", "input_bytes", "factor_bytes"),
    },
    "ldlt": {
        **{f"{name} over its": over(name, f"peer_{name}") for name in ("entries", "bytes")},
        "delayed": text("n_delayed"),
        "inertia": text("inertia"),
        "its": text("peer_inertia"),
    },
    "gradients": {"systems": systems},
    "tensors": {"systems": systems},
    "orderings": {name: over(name, f"peer_{name}") for name in ("lnz", "flops", "levels")},
    "dense": {"Gflop/s": rate("ours_s"), "the peer's": rate("peer_s")},
    "methods": {"modelled / measured": modelled},
    "one_shot": TRANSPOSED,
    "devices": {
        "devices": text("devices"),
        "times as fast": text("times_as_fast", ".2f"),
        "from the host": lambda found: number(found.get("host", {}).get("times_as_fast"), ".2f"),
        "refactor": duration("refactor_s"),
        "solve": duration("solve_s"),
        "same bits": text("same"),
    },
    "suspect_systems": {
        "over clean": text("over_clean", ".2f"),
        "repivoted": text("repivoted"),
        "first call": duration("first_s"),
    },
    "moves": {"best": text("best"), "ended on": text("ended")},
    "crisscross_fit": {
        "trailing block": text("trailing"),
        "faster than none": over("unblocked_s", "ours_s"),
        "at best": over("unblocked_s", "best_s"),
        "best": text("best_trailing"),
    },
}


# The CPU engine and its peers


def processor(records):
    """All of them, as Markdown."""
    return "\n\n".join([*summary(records), comparison(records)])


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


# Factors with less and less device memory, milliseconds


TIMES = ("refactor_s", "predicted_refactor_s", "solve_s", "predicted_solve_s", "both_s")


def streaming(records):
    """A row a case and share of what it needs."""
    header = ["case", "GB allowed", "segments that stream", "GB on the host"]
    header += ["refactor", "predicted", "solve", "predicted", "refactor_solve", "same bits", "error"]
    rows = [row(record) for record in records if "share" in record]
    return "Seconds of a call from Python, synchronization included, in ms.\n\n" + markdown(header, rows)


def row(record):
    allowed = f"{1e-9 * record['memory_bytes']:.2f}{' (all)' if record['share'] == 1 else ''}"
    if "smallest_bytes" in record:
        return [record["case"], allowed, f"needs {1e-9 * record['smallest_bytes']:.2f} GB", *8 * ["-"]]
    segments = f"{record['n_windows']} of {record['n_segments']}"
    cells = [record["case"], allowed, segments, f"{1e-9 * record['host_bytes']:.2f}"]
    cells += [f"{1e3 * record[key]:.1f}" for key in TIMES]
    return [*cells, "yes" if record["same"] else "no", f"{record['backward_error']:.0e}"]
