"""Tables of numbers of threads: seconds with each, speedup, efficiency, and peers with all threads."""

from .tables import geomean, markdown, time

TEXT = """Seconds by number of threads. *speedup*: with 1 thread over all; *efficiency*: speedup over threads; *worst*:
the largest quotient of the seconds with some number of threads and the least with fewer, and that number; then the
seconds of each peer over ours, both with all threads (KLU has one). `64-of-NAME` is a batch of 64 systems, beside a
loop over them with one factor."""


def by_threads(records):
    """Of each phase and case: ours by number of threads, and the peers' by name and number."""
    found = {}
    for record in records:
        ours, peers = found.setdefault(record["phase"], {}).setdefault(record["case"], ({}, {}))
        ours[record["threads"]] = record["ours_s"]
        if record["peer_s"]:
            peers.setdefault(record["peer"], {})[record["threads"]] = record["peer_s"]
    return found


def worst(ours):
    """The largest quotient of seconds with some number of threads and the least with fewer, and that number."""
    quotients = [(ours[n] / min(ours[m] for m in ours if m < n), n) for n in ours if n > min(ours)]
    return max(quotients, default=None)


def scaling(records):
    """A summary, and a table a phase."""
    numbers = sorted({record["threads"] for record in records})
    peers = list(dict.fromkeys(record["peer"] for record in records if record["peer_s"]))
    everything = by_threads(records)
    columns = {phase: columns_of(of, numbers[-1], peers) for phase, of in everything.items()}
    parts = [*loaded(records), TEXT, "## All phases", "Geometric means; in brackets the worst and its case."]
    header = ["phase", "speedup", "efficiency", "worst", *peers]
    rows = [[phase, *(mean(of[name], name == "worst") for name in header[1:])] for phase, of in columns.items()]
    parts.append(markdown(header, rows))
    for phase, of_cases in everything.items():
        rows = []
        for case, (ours, _) in of_cases.items():
            values = [columns[phase][name].get(case) for name in header[1:]]
            cells = ["-" if value is None else f"{value:.2f}" for value in values]
            if values[2] is not None:
                cells[2] += f" at {worst(ours)[1]}"
            rows.append([case, *(time(ours.get(number)) for number in numbers), *cells])
        parts += [f"## {phase}", markdown(["case", *map(str, numbers), *header[1:]], rows)]
    return "\n\n".join(parts)


def loaded(records):
    """A sentence, if other processes used processors that ours might have used."""
    most = max((record.get("others") or 0) + (record.get("steal") or 0) for record in records)
    return [f"The machine was not idle: others used up to {most:.1f} processors meanwhile."] if most > 0.5 else []


def columns_of(of_cases, most, peers):
    """Values by column and case; only of cases measured with one and with all threads, or beside a peer."""
    found = {name: {} for name in ("speedup", "efficiency", "worst", *peers)}
    for case, (ours, theirs) in of_cases.items():
        if 1 in ours and most in ours:
            found["speedup"][case] = ours[1] / ours[most]
            found["efficiency"][case] = ours[1] / ours[most] / most
        if quotient := worst(ours):
            found["worst"][case] = quotient[0]
        for peer, seconds in theirs.items():
            if most in ours and most in seconds:
                found[peer][case] = seconds[most] / ours[most]
    return found


def mean(values, high):
    """The geometric mean, and the highest or least value with its case."""
    if not values:
        return "-"
    extreme = (max if high else min)(values, key=values.get)
    return f"{geomean(list(values.values())):.2f} ({values[extreme]:.2f} {extreme})"
