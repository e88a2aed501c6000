"""The command line: one module per command, each with ``add_parser`` and ``run``."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import __version__
from ..common.listeners import LEVELS, LOG
from . import bench, demo, doctor, explain, plot, solve
from .report import CommandError, describe

__all__ = ["main"]

DESCRIPTION = "Sparse direct solvers with SciPy's signatures."
EPILOG = "A command with -h has its arguments, and names of matrices that need no file, such as poisson:100x100."


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
    parser = argparse.ArgumentParser(prog=own_name(), description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"gpusplu {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in (doctor, explain, solve, bench, plot, demo):
        command.add_parser(commands)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    chosen = parser.parse_args(arguments)
    if sys.stdout is None:  # closed by the calling process: treated as a failed write
        return fail(chosen.command, "cannot write the output: standard output is closed")
    never_fail_to_encode(sys.stdout)
    try:
        with log_on_stderr(getattr(chosen, "verbose", 0)):
            code: int = chosen.run(chosen)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
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


def own_name() -> str:
    """Name of the program in usage lines."""
    return "python -m gpusplu" if sys.argv[0].endswith(os.path.join("gpusplu", "__main__.py")) else "gpusplu"


@contextmanager
def log_on_stderr(verbose: int) -> Iterator[None]:
    """Log to standard error if requested; standard output has only results."""
    if not verbose:
        yield
        return
    handler, before = logging.StreamHandler(sys.stderr), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(LEVELS[min(verbose, len(LEVELS) - 1)])
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)


def fail(command: str, message: str) -> int:
    """One line on standard error, and the exit code for it."""
    print(f"gpusplu {command}: {message}", file=sys.stderr)
    return 2


def never_fail_to_encode(stream: Any) -> None:
    """Escape characters that the encoding of a stream does not have; file names may contain them."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Discard unwritten output, so that the interpreter does not try to write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
