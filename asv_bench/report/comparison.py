"""Tables of any records, one an engine and peer: a row a case (and variant), seconds of both, ratios by phase."""

from .tables import markdown, means, number, time

ERRORS = ("backward_error", "peer_backward_error")


def tables(records, further=()):
    """All of them, as Markdown; `further` are columns besides, see `further.COLUMNS`."""
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
