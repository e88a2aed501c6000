"""Strips of dots on a logarithmic axis, side by side: SVG for light and for dark pages.

Written by hand, so that the same records make the same bytes everywhere.
"""

import math
from dataclasses import dataclass
from html import escape

from ..timing import geomean

STYLES = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "line": "#d1d9e0", "faster": "#1f6feb", "slower": "#bc4c00"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "line": "#3d444d", "faster": "#58a6ff", "slower": "#f0883e"},
}
LEFT, GAP, NUMBER, ROW, HEAD, TOP = 130, 30, 46, 22, 50, 46  # pixels
LOW, HIGH, TICKS = 0.125, 128.0, (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
#: Of narrow columns, the ticks that have a number.
FEW = (0.25, 1, 4, 16, 64)


@dataclass(frozen=True)
class Strips:
    """Columns of strips: their number, and the width of one [pixels]."""

    columns: int
    width: float

    def draw(self, say, right, how, sections, style):
        """The picture as SVG: a title, what lies to the right of 1, how to read it, and sections.

        A section is a heading, titles of the columns, and rows: a name with ratios by case, a column each.
        """
        colours, body, y = STYLES[style], [], TOP
        for title, phases, rows in sections:
            body += self.section(title, phases, rows, y, colours)
            y += HEAD + ROW * len(rows)
        width = LEFT + self.columns * (self.width + NUMBER) + (self.columns - 1) * GAP
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y + 26}" role="img" '
                f'font-family="system-ui, sans-serif" font-size="13" fill="{colours["text"]}">',
                f"<title>{escape(say)}</title>",
                text(0, 16, f"{say}: {right}", weight="bold"),
                text(0, 34, how, fill=colours["quiet"]),
                *self.axis(y, colours),
                *body,
                "</svg>\n",
            ]
        )

    def section(self, title, phases, rows, y, colours):
        """A heading, and a row a peer with a strip a phase."""
        made = [text(0, y + 18, title, weight="bold")] if title else []
        for column, phase in enumerate(phases):
            made.append(text(self.begin(column), y + 36, phase, fill=colours["quiet"]))
            made.append(vertical(self.place(1, column), y + 42, y + HEAD + ROW * len(rows) - 6, colours["quiet"]))
        for number, (name, strips) in enumerate(rows):
            middle = y + HEAD + ROW * number + 5
            made.append(text(0, middle + 4, name))
            for column, found in enumerate(strips):
                made += self.strip(found, column, middle, colours) if found else []
        return made

    def strip(self, found, column, y, colours):
        """Dots of the cases and a bar at their mean."""
        mean = geomean(list(found.values()))
        dots = [
            f'<circle cx="{self.place(ratio, column):.1f}" cy="{y}" r="4" fill-opacity="0.55" '
            f'fill="{colours["faster" if ratio >= 1 else "slower"]}">'
            f"<title>{escape(case)}: {ratio:.2f}</title></circle>"
            for case, ratio in sorted(found.items())
        ]
        bar = f'<rect x="{self.place(mean, column) - 1.5:.1f}" y="{y - 8}" width="3" height="16"/>'
        figure = f"{mean:{'.0f' if mean >= 100 else '.1f' if mean >= 1 else '.2f'}}x"
        return [*dots, bar, text(self.begin(column) + self.width + 6, y + 4, figure, weight="bold")]

    def axis(self, y, colours):
        """Numbers below each column."""
        made = []
        for column in range(self.columns):
            for tick in TICKS:
                made.append(vertical(self.place(tick, column), TOP + 42, y - 4, colours["line"], 0.5))
                if tick in FEW or (tick > 1 and self.width > 200):
                    made.append(
                        text(self.place(tick, column), y + 12, f"{tick:g}", fill=colours["quiet"], anchor="middle")
                    )
        return made

    def begin(self, column):
        return LEFT + column * (self.width + NUMBER + GAP)

    def place(self, ratio, column):
        """Pixels from the left of a ratio; one that is off the scale lies at its end."""
        share = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
        return self.begin(column) + share * self.width


def vertical(x, top, bottom, colour, opacity=1):
    return f'<path d="M{x:.1f} {top}V{bottom}" stroke="{colour}" stroke-opacity="{opacity}"/>'


def text(x, y, words, fill=None, weight=None, anchor=None):
    given = {"fill": fill, "font-weight": weight, "text-anchor": anchor}
    attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f'<text x="{x:.1f}" y="{y}"{attributes}>{escape(words)}</text>'
