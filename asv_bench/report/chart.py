"""The chart of the README: peers' seconds over ours, case by case, from the records that the pages of results show.

An SVG for light and one for dark pages, written by hand so that the same records make the same bytes everywhere.
"""

import math
from html import escape

from .. import records
from ..timing import geomean

STYLES = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "line": "#d1d9e0", "faster": "#1f6feb", "slower": "#bc4c00"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "line": "#3d444d", "faster": "#58a6ff", "slower": "#f0883e"},
}
#: What the two columns of a section show: phases of the records, and their headings.
SYSTEMS = (("step", "new values and a solve"), ("total", "analysis and first factorization"))
WHOLE = (("total", "whole programs"), ("solver", "their time in solvers"))
ON_TWO_CORES = ("scipy", "klu", "cktso", "pardiso", "cholmod", "rslab")
#: Machine, suite and engine of a section, its columns, its rows: peers, those without records left out.
SECTIONS = (
    (("cpu2", "processor", "cpu"), SYSTEMS, ON_TWO_CORES),
    (("h200", "supernodal", "supernodal"), SYSTEMS, ("cudss",)),
    (("h200", "circuits", "auto"), SYSTEMS, ("cudss", "klu")),
    (("cpu2", "programs", "auto"), WHOLE, ("scipy",)),
    (("h200", "programs", "auto"), WHOLE, ("scipy",)),
)
PEERS = {
    "scipy": "SciPy",
    "klu": "KLU",
    "cktso": "CKTSO",
    "pardiso": "MKL PARDISO",
    "cholmod": "CHOLMOD",
    "rslab": "rslab",
    "cudss": "cuDSS",
}
MACHINES = {"cpu2": "Two cores of an EPYC server", "h200": "One H200 and 16 cores of its host"}
WHAT = {
    "processor": "matrices of all kinds",
    "supernodal": "matrices of all kinds",
    "circuits": "circuits",
    "programs": "programs of others under gpusplu.install()",
}
LEFT, WIDTH, GAP, NUMBER, ROW, HEAD = 130, 275, 30, 46, 22, 50  # pixels
LOW, HIGH, TICKS = 0.125, 128.0, (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
TOP = 46


def kept(machine, suite):
    """The records of the commit that the page of results shows."""
    files = [path for path in records.files(suite) if path.stem.split("-")[0] == machine]
    return records.one_commit(records.read(files))


def ratios(found, engine, phase, peer):
    """Peer's seconds over ours by case."""
    same = [record for record in found if (record["engine"], record["phase"], record["peer"]) == (engine, phase, peer)]
    return {
        record["case"]: record["peer_s"] / record["ours_s"] for record in same if record["ours_s"] and record["peer_s"]
    }


def chart(style):
    """The chart as SVG, in the colours of `STYLES`."""
    colours, body, y = STYLES[style], [], TOP
    for (machine, suite, engine), phases, peers in SECTIONS:
        found = kept(machine, suite)
        strips = {peer: [ratios(found, engine, phase, peer) for phase, _ in phases] for peer in peers}
        rows = [(PEERS[peer], strips[peer]) for peer in peers if all(strips[peer])]
        body += section(f"{MACHINES[machine]}: {WHAT[suite]}", [title for _, title in phases], rows, y, colours)
        y += HEAD + ROW * len(rows)
    width = LEFT + 2 * (WIDTH + NUMBER) + GAP
    say = "Seconds of other solvers over those of gpusplu, a dot a case"
    how = "A bar is the geometric mean, also in figures. Log scale; dots beyond it lie at its ends."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 26}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="{colours["text"]}">',
            f"<title>{say}</title>",
            text(0, 16, f"{say}: to the right of 1 gpusplu is faster", weight="bold"),
            text(0, 34, how, fill=colours["quiet"]),
            *axis(y, colours),
            *body,
            "</svg>\n",
        ]
    )


def section(title, phases, rows, y, colours):
    """A heading, and a row a peer with a strip a phase."""
    made = [text(0, y + 18, title, weight="bold")]
    for column, phase in enumerate(phases):
        made.append(text(begin(column), y + 36, phase, fill=colours["quiet"]))
        made.append(vertical(place(1, column), y + 42, y + HEAD + ROW * len(rows) - 6, colours["quiet"]))
    for number, (name, strips) in enumerate(rows):
        middle = y + HEAD + ROW * number + 5
        made.append(text(0, middle + 4, name))
        for column, found in enumerate(strips):
            made += strip(found, column, middle, colours)
    return made


def strip(found, column, y, colours):
    """Dots of the cases and a bar at their mean."""
    mean = geomean(list(found.values()))
    dots = [
        f'<circle cx="{place(ratio, column):.1f}" cy="{y}" r="4" fill-opacity="0.55" '
        f'fill="{colours["faster" if ratio >= 1 else "slower"]}"><title>{escape(case)}: {ratio:.2f}</title></circle>'
        for case, ratio in sorted(found.items())
    ]
    bar = f'<rect x="{place(mean, column) - 1.5:.1f}" y="{y - 8}" width="3" height="16"/>'
    figure = f"{mean:.1f}x" if mean >= 1 else f"{mean:.2f}x"
    return [*dots, bar, text(begin(column) + WIDTH + 6, y + 4, figure, weight="bold")]


def axis(y, colours):
    """Numbers below each column."""
    made = []
    for column in range(2):
        for tick in TICKS:
            made.append(vertical(place(tick, column), TOP + 42, y - 4, colours["line"], 0.5))
            if tick >= 1 or tick == 0.25:
                made.append(text(place(tick, column), y + 12, f"{tick:g}", fill=colours["quiet"], anchor="middle"))
    return made


def begin(column):
    return LEFT + column * (WIDTH + NUMBER + GAP)


def place(ratio, column):
    """Pixels from the left of a ratio; one that is off the scale lies at its end."""
    share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return begin(column) + share * WIDTH


def vertical(x, top, bottom, colour, opacity=1):
    return f'<path d="M{x:.1f} {top}V{bottom}" stroke="{colour}" stroke-opacity="{opacity}"/>'


def text(x, y, words, fill=None, weight=None, anchor=None):
    given = {"fill": fill, "font-weight": weight, "text-anchor": anchor}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f'<text x="{x:.1f}" y="{y}"{attributes}>{escape(words)}</text>'
