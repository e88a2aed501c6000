"""Pictures of the pages of results: what another solver, or another way, took over what ours took, a dot a case."""

from .chart import HOW, PEERS, RIGHT, SAY
from .strips import GAP, LEFT, NUMBER, Strips

#: Phases in the order in which they are drawn, at most three, and their headings.
PHASES = {
    "refactor": "new values",
    "solve": "solve",
    "total": "analysis and first factor",
    "both": "new values and a solve",
    "solver": "time in solvers",
    "gradient": "gradient",
    "vmap": "vmap",
    "batch": "batch",
    "sequence": "a step of a sequence",
}
#: Headings of phases that are something else in a suite.
TOTALS = {"programs": "whole program", "moves": "all uses"}
#: Titles of suites whose peers are no other solvers, and what it means to lie to the right of 1.
SAYS = {
    "moves": ("Seconds of the best engine in hindsight over those of auto", "auto is faster"),
    "neighbours": ("Seconds with one thread over those with all", "all are faster"),
    "ldlt": ("Seconds of others, our LU among them, over those of LDL^T", "LDL^T is faster"),
    "programs": ("Seconds of programs with SciPy's solvers over those with ours", "ours are faster"),
}
#: Engine that is drawn where a suite has several.
ENGINES = {"circuits": "auto"}
#: Suites of variants: the one that others are compared with, phases and their members.
VARIANTS = {
    "captured": ("captured", {"a step": "ours_s"}),
    "glu": ("choice", {"new values": "refactor_s"}),
    "sflu": ("groups", {"new values": "refactor_s", "solve": "solve_s"}),
}
WAYS = {
    "now": "waited for",
    "later": "not waited for",
    "levels": "by levels",
    "columns": "columns alone",
    "columns_levels": "both",
    "warps": "warps only",
}
WIDTH = 802  # pixels


def picture(suite, found, style):
    """The picture of a machine's records as SVG; nothing where there is none to compare with."""
    draw = variants if suite in VARIANTS else peers
    return draw(suite, found, style)


def peers(suite, found, style):
    """Rows are peers, and kinds of matrices where there are several."""
    engine = ENGINES.get(suite)
    ratios = {}
    for record in found:
        there = record.get("peer_s") and record.get("ours_s") and record["peer_s"] / record["ours_s"]
        if there and record["phase"] in PHASES and engine in (None, record["engine"]):
            peer = PEERS.get(record["peer"], record["peer"])
            name = f"{peer.removeprefix('MKL ')}, {record['kind']}" if "kind" in record else peer
            case = " ".join(str(record[key]) for key in ("case", "variant") if key in record)
            ratios.setdefault(name, {}).setdefault(record["phase"], {})[case] = there
    drawn = [phase for phase in PHASES if any(phase in row for row in ratios.values())][:3]
    titles = [TOTALS.get(suite, PHASES[phase]) if phase == "total" else PHASES[phase] for phase in drawn]
    rows = [(name, [row.get(phase, {}) for phase in drawn]) for name, row in sorted(ratios.items())]
    say, right = SAYS.get(suite, (None, None))
    said = (f"{say}, a dot a case", f"to the right of 1 {right}") if say else (SAY, RIGHT)
    return strips(*said, titles, rows, style)


def variants(suite, found, style):
    """Rows are the other variants."""
    base, phases = VARIANTS[suite]
    of = {}
    for record in found:
        of.setdefault(record["variant"], {})[record["case"]] = record
    rows = []
    for variant in (name for name in of if name != base):
        both = [case for case in of[variant] if case in of[base]]
        columns = [{case: of[variant][case][key] / of[base][case][key] for case in both} for key in phases.values()]
        rows.append((WAYS.get(variant, variant), columns))
    say = f'Seconds of each way over those of "{WAYS.get(base, base)}", a dot a case'
    return strips(say, "to the right of 1 it is slower", list(phases), rows, style)


def strips(say, right, titles, rows, style):
    """The picture of one section without a heading."""
    if not rows:
        return ""
    width = (WIDTH - LEFT + GAP) / len(titles) - GAP - NUMBER
    return Strips(len(titles), width).draw(say, right, HOW, [("", titles, rows)], style)
