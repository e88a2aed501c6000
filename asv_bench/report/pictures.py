"""Pictures: seconds of other solvers or variants over those of gpusplu, one dot per case, on a logarithmic axis; and
curves over numbers of threads.

Matplotlib draws them as SVG for light and for dark pages. Each file contains a digest of what it shows, so that a test
can compare pictures with records, whatever version of Matplotlib drew them.
"""

import hashlib
import json
from typing import NamedTuple

from .. import records
from ..timing import geomean
from .scaling import by_threads

STYLES = {
    "light": {
        "text": "#1f2328",
        "quiet": "#59636e",
        "line": "#d1d9e0",
        "faster": "#1f6feb",
        "slower": "#bc4c00",
        "third": "#1a7f37",
    },
    "dark": {
        "text": "#f0f6fc",
        "quiet": "#9198a1",
        "line": "#3d444d",
        "faster": "#58a6ff",
        "slower": "#f0883e",
        "third": "#3fb950",
    },
}
RIGHT = "to the right of 1 gpusplu is faster"
HOW = "A bar is the geometric mean, which is also given as a number. Dots beyond the scale are drawn at its ends."
SAY = "Seconds of other solvers over those of gpusplu, one dot per case"
PEERS = {
    "scipy": "SciPy",
    "klu": "KLU",
    "cktso": "CKTSO",
    "pardiso": "MKL PARDISO",
    "cholmod": "CHOLMOD",
    "rslab": "rslab",
    "cudss": "cuDSS",
    "feral": "feral-solver",
    "own_lu": "LU of gpusplu",
    "hindsight": "best in hindsight",
    "jax_spsolve": "JAX's spsolve",
    "torch_sla": "torch-sla",
}

# The chart of the README: columns are phases of the records, with headings; rows are peers that have records.
SYSTEMS = {"step": "new values and a solve", "total": "analysis and first factorization"}
WHOLE = {"total": "whole programs", "solver": "their time in solvers"}
ON_TWO_CORES = ("scipy", "klu", "cktso", "pardiso", "cholmod", "rslab")
SECTIONS = (  # machine, suite, engine, phases, peers
    ("cpu2", "processor", "cpu", SYSTEMS, ON_TWO_CORES),
    ("h200", "supernodal", "supernodal", SYSTEMS, ("cudss",)),
    ("h200", "circuits", "auto", SYSTEMS, ("cudss", "klu")),
    ("cpu2", "programs", "auto", WHOLE, ("scipy",)),
    ("h200", "programs", "auto", WHOLE, ("scipy",)),
)
MACHINES = {"cpu2": "Two cores of an EPYC server", "h200": "One H200 and 16 cores of its host"}
WHAT = {
    "processor": "matrices of all kinds",
    "supernodal": "matrices of all kinds",
    "circuits": "circuits",
    "programs": "programs of others under gpusplu.install()",
}

# Pages of results: phases in the order in which they are drawn, at most three, and their headings.
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
TOTALS = {"programs": "whole program", "moves": "all uses"}  # headings of total in these suites
TITLES = {  # of suites whose peers are not other solvers, and what a ratio above 1 means
    "moves": ("Seconds of the best engine in hindsight over those of auto", "auto is faster"),
    "neighbours": ("Seconds with one thread over those with all", "all are faster"),
    "ldlt": ("Seconds of other solvers, and of LU, over those of LDL^T", "LDL^T is faster"),
    "programs": ("Seconds of programs with SciPy's solvers over those with gpusplu's", "gpusplu's are faster"),
}
ENGINES = {"circuits": "auto"}  # the engine that is drawn, of suites that have several
VARIANTS = {  # suites of variants: the one that others are compared with, phases and their members
    "captured": ("captured", {"a step": "ours_s"}),
    "glu": ("choice", {"new values": "refactor_s"}),
    "sflu": ("groups", {"new values": "refactor_s", "solve": "solve_s"}),
}
NAMES = {
    "now": "waited for",
    "later": "not waited for",
    "levels": "by levels",
    "columns": "single columns",
    "columns_levels": "both",
    "warps": "warps only",
}


class Section(NamedTuple):
    """A heading, titles of columns, and rows: a name and, for each column, ratios by case."""

    title: str
    columns: list
    rows: list


class Picture(NamedTuple):
    """What a picture shows."""

    title: str
    sections: list

    alternative = "Seconds of other solvers or variants over those of gpusplu, one dot per case"


class Curves(NamedTuple):
    """Panels: a case, and ratios by number of threads of each curve."""

    title: str
    panels: list

    alternative = "Curves: seconds with one thread over seconds with more, by number of threads, a panel a case"


def digest(picture):
    return hashlib.sha256(json.dumps(picture).encode()).hexdigest()[:16]


def chart():
    """The chart of the README, from the records that the pages of results show."""
    sections = []
    for machine, suite, engine, phases, peers in SECTIONS:
        files = [path for path in records.files(suite) if records.machine(path) == machine]
        found = records.one_commit(records.read(files))
        rows = [(PEERS[peer], [ratios_of(found, engine, phase, peer) for phase in phases]) for peer in peers]
        rows = [row for row in rows if all(row[1])]
        sections.append(Section(f"{MACHINES[machine]}: {WHAT[suite]}", [*phases.values()], rows))
    return Picture(f"{SAY}: {RIGHT}", sections)


def ratios_of(found, engine, phase, peer):
    """The peer's seconds over those of gpusplu by case."""
    same = [record for record in found if (record["engine"], record["phase"], record["peer"]) == (engine, phase, peer)]
    return {record["case"]: ratio for record in same if (ratio := ratio_of(record))}


def ratio_of(record):
    return record["peer_s"] / record["ours_s"] if record.get("peer_s") and record.get("ours_s") else None


def picture(suite, found):
    """The picture of the records of a suite on one machine; None if there is nothing to compare."""
    if suite == "scaling":
        return curves(found)
    title, columns, rows = (variants if suite in VARIANTS else peers)(suite, found)
    return Picture(title, [Section("", columns, rows)]) if rows else None


def peers(suite, found):
    """Rows are peers, or peers and kinds of matrices."""
    engine, ratios = ENGINES.get(suite), {}
    for record in found:
        ratio = ratio_of(record)
        if ratio and record["phase"] in PHASES and engine in (None, record["engine"]):
            peer = PEERS.get(record["peer"], record["peer"])
            name = f"{peer.removeprefix('MKL ')}, {record['kind']}" if "kind" in record else peer
            case = " ".join(str(record[key]) for key in ("case", "variant") if key in record)
            ratios.setdefault(name, {}).setdefault(record["phase"], {})[case] = ratio
    drawn = [phase for phase in PHASES if any(phase in row for row in ratios.values())][:3]
    columns = [TOTALS.get(suite, PHASES[phase]) if phase == "total" else PHASES[phase] for phase in drawn]
    rows = [(name, [row.get(phase, {}) for phase in drawn]) for name, row in sorted(ratios.items())]
    say, right = TITLES.get(suite, (None, None))
    return f"{say}, one dot per case: to the right of 1 {right}" if say else f"{SAY}: {RIGHT}", columns, rows


def variants(suite, found):
    """Rows are the other variants."""
    base, phases = VARIANTS[suite]
    of = {}
    for record in found:
        of.setdefault(record["variant"], {})[record["case"]] = record
    rows = []
    for variant in (name for name in of if name != base):
        both = [case for case in of[variant] if case in of[base]]
        columns = [{case: of[variant][case][key] / of[base][case][key] for case in both} for key in phases.values()]
        rows.append((NAMES.get(variant, variant), columns))
    title = f'Seconds of each variant over those of "{NAMES.get(base, base)}", one dot per case'
    return f"{title}: to the right of 1 it is slower", [*phases], rows


# Curves over numbers of threads: names, phases of gpusplu, colours
LINES = {"new values": ("refactor", "faster"), "solve": ("solve", "slower"), "first solution": ("total", "third")}
BEST = "the fastest peer, or a loop over the systems of a batch, new values"
THREADS = "Times as fast as gpusplu with one thread (the grey line: as many times as threads), by number of threads"


def curves(found):
    """A panel a case that was measured with several numbers of threads; None if none was."""
    phases, panels = by_threads(found), []
    for case in dict.fromkeys(record["case"] for record in found):
        lines = {}
        for name, (phase, _) in LINES.items():
            ours, theirs = phases.get(phase, {}).get(case, ({}, {}))
            if 1 in ours and len(ours) > 1:
                lines[name] = {number: ours[1] / seconds for number, seconds in sorted(ours.items())}
                if phase == "refactor" and theirs:
                    least = {n: min(of.get(n, float("inf")) for of in theirs.values()) for n in sorted(ours)}
                    lines[BEST] = {n: ours[1] / seconds for n, seconds in least.items() if seconds < float("inf")}
        if lines:
            panels.append((case, lines))
    return Curves(THREADS, panels) if panels else None


# Drawing: lengths are points

LEFT, GAP, NUMBER, ROW, TITLE, HEAD, TOP, WIDTH = 130, 24, 46, 22, 28, 36, 46, 802
LOW, HIGH = 0.125, 128.0
TICKS, FEW = (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128), (0.25, 1, 4, 16, 64)


def draw(picture, style, path):
    """Write a picture as SVG, in the colours of `STYLES`."""
    import matplotlib
    from matplotlib.figure import Figure

    colours, lines = STYLES[style], isinstance(picture, Curves)
    height = TOP + (height_of_panels(picture) if lines else height_of_sections(picture))
    settings = {"svg.hashsalt": "gpusplu", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    settings |= {"text.color": colours["text"], "font.size": 10}
    with matplotlib.rc_context(settings):
        figure = Figure((WIDTH / 72, height / 72), facecolor="none")
        figure.text(0, 1 - 16 / height, picture.title, weight="bold")
        (draw_panels if lines else draw_sections)(figure, picture, height, colours)
        metadata = {"Date": None, "Creator": None, "Title": picture.title, "Identifier": digest(picture)}
        figure.savefig(path, format="svg", metadata=metadata)


def height_of_sections(picture):
    return 8 + sum(TITLE * bool(section.title) + HEAD + ROW * len(section.rows) for section in picture.sections)


def draw_sections(figure, picture, height, colours):
    figure.text(0, 1 - 34 / height, HOW, color=colours["quiet"])
    top = TOP
    for section in picture.sections:
        if section.title:
            figure.text(0, 1 - (top + 18) / height, section.title, weight="bold")
            top += TITLE
        for number in range(len(section.columns)):
            draw_column(figure, section, number, top, height, colours)
        top += HEAD + ROW * len(section.rows)


def draw_column(figure, section, number, top, height, colours):
    """A strip of dots per row, and the mean of each."""
    count, length = len(section.columns), ROW * len(section.rows)
    width = (WIDTH - LEFT + GAP) / count - GAP - NUMBER
    left = LEFT + number * (width + NUMBER + GAP)
    axes = figure.add_axes((left / WIDTH, 1 - (top + 16 + length) / height, width / WIDTH, length / height))
    axes.set(xscale="log", xlim=(LOW, HIGH), ylim=(len(section.rows) - 0.5, -0.5), facecolor="none")
    axes.set_title(section.columns[number], loc="left", size=10, color=colours["quiet"], pad=2)
    axes.set_xticks(ticks := FEW if width < 250 else TICKS[1:], [f"{tick:g}" for tick in ticks], color=colours["quiet"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(section.rows)), [name if number == 0 else "" for name, _ in section.rows])
    for label in axes.get_yticklabels():
        label.set(horizontalalignment="left", color=colours["text"])
    axes.tick_params(length=0, labelsize=9)
    axes.tick_params("y", pad=LEFT, labelsize=10)
    axes.spines[:].set_visible(False)
    axes.grid(axis="x", color=colours["line"], linewidth=0.5)
    axes.axvline(1, color=colours["quiet"], linewidth=1)
    for row, (_, strips) in enumerate(section.rows):
        found = [ratio for _, ratio in sorted(strips[number].items())]
        if not found:
            continue
        mean, shown = geomean(found), [min(max(ratio, LOW), HIGH) for ratio in found]
        for colour, side in (("faster", [x for x in shown if x >= 1]), ("slower", [x for x in shown if x < 1])):
            axes.plot(side, [row] * len(side), "o", color=colours[colour], alpha=0.55, markeredgewidth=0, clip_on=False)
        axes.plot([min(max(mean, LOW), HIGH)] * 2, [row - 0.36, row + 0.36], color=colours["text"], linewidth=2.5)
        text = f"{mean:{'.0f' if mean >= 100 else '.1f' if mean >= 1 else '.2f'}}x"
        axes.text(1 + 6 / width, row, text, transform=axes.get_yaxis_transform(), weight="bold", va="center")


ACROSS, PANEL, ABOVE, BELOW = 4, 120, 24, 22  # panels in a row, their height, their titles, their ticks


def height_of_panels(picture):
    return -(-len(picture.panels) // ACROSS) * (ABOVE + PANEL + BELOW)


def draw_panels(figure, picture, height, colours):
    """A small diagram a case, both axes logarithmic, with the same scales for all."""
    styles = {name: (colours[colour], "-") for name, (_, colour) in LINES.items()} | {BEST: (colours["faster"], ":")}
    left = 0
    for name, (colour, line) in styles.items():
        figure.add_artist(line_of(figure, (left, left + 22), 1 - 31 / height, colour, line))
        figure.text((left + 28) / WIDTH, 1 - 34 / height, name, color=colours["quiet"])
        left += 60 + 6 * len(name)
    numbers = sorted({number for _, lines in picture.panels for of in lines.values() for number in of})
    values = [value for _, lines in picture.panels for of in lines.values() for value in of.values()]
    low, high = min(0.9, max(LOW, min(values))) / 1.1, max(numbers[-1], *values) * 1.1
    ticks = [tick for tick in TICKS if low < tick < high]
    width = WIDTH / ACROSS
    for place, (case, lines) in enumerate(picture.panels):
        row, column = divmod(place, ACROSS)
        bottom = height - TOP - row * (ABOVE + PANEL + BELOW) - ABOVE - PANEL
        axes = figure.add_axes(
            ((column * width + 36) / WIDTH, bottom / height, (width - 50) / WIDTH, PANEL / height), facecolor="none"
        )
        axes.set(xscale="log", yscale="log", xlim=(numbers[0] / 1.1, numbers[-1] * 1.1), ylim=(low, high))
        axes.set_title(case, loc="left", size=10, color=colours["text"], pad=4)
        axes.set_xticks(numbers, map(str, numbers), color=colours["quiet"])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], color=colours["quiet"])
        axes.set_xticks([], minor=True)
        axes.set_yticks([], minor=True)
        axes.tick_params(length=0, labelsize=9)
        axes.spines[:].set_visible(False)
        axes.grid(color=colours["line"], linewidth=0.5)
        axes.plot(numbers, numbers, color=colours["line"], linewidth=2)
        for name, of in lines.items():
            colour, line = styles[name]
            axes.plot([*of], [*of.values()], line, color=colour, linewidth=1.5, marker="o", markersize=3)


def line_of(figure, ends, y, colour, style):
    from matplotlib.lines import Line2D

    return Line2D([end / WIDTH for end in ends], [y, y], color=colour, linestyle=style, transform=figure.transFigure)
