"""The command line: one module a command, each with ``add_parser`` and ``run``."""

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from . import bench, demo, doctor, explain, plot, solve
from .report import CommandError

__all__ = ["main"]

DESCRIPTION = "Sparse direct solvers with SciPy's signatures."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of the process's own.

    Returns
    -------
    int
        Exit code: 0, 1 where a check failed, 2 where the input was bad.
    """
    parser = argparse.ArgumentParser(prog="python -m gpusplu", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"gpusplu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in (doctor, explain, solve, bench, plot, demo):
        command.add_parser(commands)
    chosen = parser.parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
    except CommandError as error:
        print(f"gpusplu {chosen.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code
