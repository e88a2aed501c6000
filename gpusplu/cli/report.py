"""What the commands print with: errors in one line, tables, a progress bar; and the number that they all print."""

import sys
from collections.abc import Sequence

from ..timing import backward_error

__all__ = ["CommandError", "Progress", "backward_error", "describe", "seconds", "table"]


class CommandError(Exception):
    """The command cannot do what was asked; its message is one line for the user."""


def describe(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


def seconds(value: float) -> str:
    """A duration with three digits and a unit."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


class Progress:
    """A bar on standard error while a loop runs; nothing where that is not a terminal."""

    WIDTH = 30

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.visible = sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        if self.visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self, note: str = "") -> None:
        """One more of the total is done."""
        self.done += 1
        self.show(note)

    def show(self, note: str = "") -> None:
        """Draw the bar."""
        if self.visible:
            filled = self.WIDTH * self.done // self.total
            bar = "#" * filled + "." * (self.WIDTH - filled)
            sys.stderr.write(f"\r\x1b[K{self.title} [{bar}] {self.done}/{self.total} {note}")
            sys.stderr.flush()
