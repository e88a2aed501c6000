"""What commands share: arguments, errors in one line, tables, JSON and a progress bar."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpusplu.cost.model import REFACTORIZATIONS
from gpusplu.gallery import FAMILIES

from ..common.bars import Line, drawn, is_terminal

MATRIX = "a file (.mtx, .mtx.gz, .npz) or a name of the gallery (poisson:100x100)"
NAMES = f"names of the gallery: FAMILY:AxB or FAMILY:AxBxC, with a family of {', '.join(FAMILIES)}"


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


# Arguments that several commands have


def add_matrix(parser: Any) -> None:
    """The matrix to work on."""
    parser.add_argument("matrix", metavar="MATRIX", help=MATRIX)


def add_options(parser: Any) -> None:
    """Kind of factorization, LU by default; choices that gpusplu makes by default; output."""
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--cholesky", action="store_true", help="A is Hermitian positive definite")
    kinds.add_argument("--ldlt", action="store_true", help="A is Hermitian or symmetric, definite or not")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="auto (default) or a name that doctor lists")
    parser.add_argument("--ordering", default="auto", metavar="NAME", help="auto (default), nd, amd or natural")
    add_refactors(parser)
    add_output(parser)


def add_refactors(parser: Any, of: str = "expected number of refactorizations and solves") -> None:
    """Expected use, which choices depend on."""
    parser.add_argument(
        "--expected-refactors",
        type=float,
        default=REFACTORIZATIONS,
        metavar="N",
        help=f"{of}; default: {REFACTORIZATIONS}",
    )


def add_output(parser: Any) -> None:
    """Output format."""
    parser.add_argument("--json", action="store_true", help="print one object of JSON, numbers in SI units")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log to standard error; given twice: also every solve"
    )


def kind_of(arguments: argparse.Namespace) -> str:
    """Keywords of the requested factorization."""
    return "ldlt" if arguments.ldlt else "cholesky" if arguments.cholesky else "lu"
