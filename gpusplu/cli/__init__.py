"""The command line: one module a command, each with ``add_parser`` and ``run``."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from .. import __version__
from . import bench, demo, doctor, explain, plot, solve
from .report import CommandError, describe

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
    never_fail_to_encode(sys.stdout)
    try:
        code: int = chosen.run(chosen)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        discard_output()
        return 128 + signal.SIGPIPE
    except CommandError as error:
        return fail(chosen.command, str(error))
    except OSError as error:  # of standard output: whatever opens files says which one
        discard_output()
        return fail(chosen.command, f"cannot write the output: {describe(error)}")
    except MemoryError as error:
        return fail(chosen.command, f"out of memory: {describe(error)}")
    except KeyboardInterrupt:
        return 130
    return code


def fail(command: str, message: str) -> int:
    """One line on standard error, and the exit code for it."""
    print(f"gpusplu {command}: {message}", file=sys.stderr)
    return 2


def never_fail_to_encode(stream: Any) -> None:
    """File names may hold what no encoding has."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Have the interpreter's end not try again to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
