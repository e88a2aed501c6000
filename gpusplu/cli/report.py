"""Output of commands: errors in one line, tables, JSON, a progress bar; and the number that all of them print."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..common.bars import Line, drawn, is_terminal
from ..common.stats import duration as seconds
from ..common.timing import backward_error

__all__ = [
    "CommandError",
    "Progress",
    "backward_error",
    "describe",
    "facts",
    "print_json",
    "refusing",
    "seconds",
    "table",
]


class CommandError(Exception):
    """The command failed; the message is one line for the user."""


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Convert exceptions of solvers about a matrix to an error of the command."""
    try:
        yield
    except (RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        raise CommandError(f"{name}: {describe(error)}") from None


def describe(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """One line per name and value."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def print_json(found: Mapping[str, Any]) -> None:
    """One JSON object, for programs."""
    print(json.dumps(plain(found), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """A value for JSON: null for non-finite numbers, complex numbers as pairs."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    return None if isinstance(value, float) and not np.isfinite(value) else value


class Progress:
    """A bar on standard error while a loop runs; nothing if that is not a terminal."""

    def __init__(self, title: str, total: int) -> None:
        self.total, self.done, self.line = total, 0, Line(title)
        self.visible = is_terminal(sys.stderr)

    def __enter__(self) -> "Progress":
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()

    def advance(self, note: str = "") -> None:
        """Count one more step of the total."""
        self.done += 1
        self.show(note)

    def show(self, note: str = "") -> None:
        """Draw the bar."""
        if self.visible:
            self.line.draw(f"{drawn(self.done / self.total)} {self.done}/{self.total} {note}")
