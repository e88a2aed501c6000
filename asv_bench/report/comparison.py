"""Tables of any records, one a peer: a row a case (and variant), our seconds, the peer's and their ratio by phase."""

from .tables import markdown, means, number, time

KNOWN = ("case", "engine", "phase", "ours_s", "peer", "peer_s", "backward_error", "commit", "date", "variant")
ERRORS = ("backward_error", "peer_backward_error")


def tables(records):
    """All of them, as Markdown."""
    parts = []
    for engine, peer in dict.fromkeys((record["engine"], record["peer"]) for record in records):
        here = [record for record in records if (record["engine"], record["peer"]) == (engine, peer)]
        parts += [f"## {engine}{'' if peer == 'none' else f' beside {peer}'}", table(here, peer)]
    return "\n\n".join(parts)


def label(record):
    """What a row is of."""
    columns = record.get("columns")
    words = [record["case"], record.get("ordering"), record.get("variant"), columns and f"{columns} columns"]
    return ", ".join(word for word in words if word)


def table(records, peer):
    """Of one engine and peer, with geometric means of the peer's seconds over ours."""
    phases = list(dict.fromkeys(record["phase"] for record in records if record["ours_s"] is not None))
    extra = list(dict.fromkeys(key for record in records for key in record if key.endswith("_bytes")))
    rows, ratios, errors = {}, {phase: [] for phase in phases}, {}
    for record in records:
        rows.setdefault(label(record), {})[record["phase"]] = record
        errors[label(record)] = [number(record.get(key), ".0e") for key in ERRORS[: 1 if peer == "none" else 2]]
    lines = []
    for name, found in rows.items():
        cells = [name]
        for phase in phases:
            ours, there = (found.get(phase, {}).get(key) for key in ("ours_s", "peer_s"))
            ratio = there / ours if ours and there else None
            ratios[phase] += [] if ratio is None else [ratio]
            cells += [time(ours)] if peer == "none" else [time(ours), time(there), number(ratio)]
        record = next(iter(found.values()))
        lines.append([*cells, *[number(record.get(key), ",") for key in extra], *errors[name]])
    columns = [cell for phase in phases for cell in ([phase] if peer == "none" else (phase, peer, "ratio"))]
    names = [key.removesuffix("_bytes") + " [bytes]" for key in extra]
    text = markdown(["case", *columns, *names, "error", *([] if peer == "none" else [peer])], lines)
    return text if not any(ratios.values()) else f"{text}\n\nGeometric means of {len(lines)} rows: {means(ratios)}."
