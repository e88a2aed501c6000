"""HTML tables for notebooks, in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT, RIGHT = 'style="text-align: left"', 'style="text-align: right"'


def named_values(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values under a title."""
    lines = []
    for name, value in rows:
        lines.append(f'<tr><th scope="row" {LEFT}>{escape(name)}</th><td {LEFT}>{text(value)}</td></tr>')
    return f"<table>{caption(title)}<tbody>{''.join(lines)}</tbody></table>"


def grid(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a header; a row of two cells is a name and a note as wide as the others."""
    width = len(header) - 1
    heads = "".join(f'<th scope="col" {LEFT if k == 0 else RIGHT}>{escape(cell)}</th>' for k, cell in enumerate(header))
    lines = []
    for name, *cells in rows:
        wide = f'colspan="{width}" {LEFT}' if len(cells) == 1 < width else RIGHT
        values = "".join(f"<td {wide}>{text(cell)}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row" {LEFT}>{escape(name)}</th>{values}</tr>')
    return f"<table>{caption(title)}<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def caption(title: str) -> str:
    return f'<caption style="text-align: left; color: inherit">{escape(title)}</caption>' if title else ""


def text(value: str) -> str:
    """Escaped, with its line breaks."""
    return escape(value).replace("\n", "<br>")
