"""Arguments that all suites have, and functions that interpret them."""

import argparse
import sys
import time
from pathlib import Path

from gpusplu.cli.report import describe

from . import internals, peers
from .timing import DeviceClock, EmulatedClock


def add_common(parser, suite):
    """Arguments of every suite, with the defaults of the suite."""
    parser.add_argument("--cases", nargs="*", default=list(suite.CASES), metavar="CASE", help="names of matrices")
    parser.add_argument("--out", type=Path, help="file that records are appended to")
    parser.add_argument("--peer", type=peer_names, default=list(suite.PEERS), help="names joined by commas, or none")
    parser.add_argument("--seconds", type=float, default=540.0, help="after which no case is begun")
    parser.add_argument("--budget", type=float, default=suite.BUDGET, help="seconds that one measurement repeats")
    parser.add_argument("--repeat", type=int, default=3, help="repeats, where their number is fixed")
    parser.add_argument("--emulated", action="store_true", help="run in the emulator of the tests")
    getattr(suite, "add_arguments", lambda _: None)(parser)


def peer_names(text):
    """Names joined by commas; "none" means no name."""
    names = [] if text in ("", "none") else text.split(",")
    if not set(names) <= set(peers.NAMES):
        raise argparse.ArgumentTypeError(f"{text!r} is not none or some of {','.join(peers.NAMES)}")
    return names


def numbers(text):
    """Whole numbers joined by commas."""
    return [int(number) for number in text.split(",")]


def names(text):
    return text.split(",")


def present(arguments):
    """The requested peers that can run; prints why the others cannot."""
    found = []
    for name in arguments.peer:
        reason = peers.named(name).missing()
        note(f"no {name}: {reason}") if reason else found.append(name)
    return found


def device_clock(arguments):
    """The clock of the device, or of the emulator."""
    return (EmulatedClock if arguments.emulated else DeviceClock)(arguments.budget)


def prepare(arguments):
    """Start the emulator if requested."""
    if arguments.emulated:
        internals.emulate()


def in_time(arguments, cases):
    """The cases that begin before the time is over."""
    begin = time.perf_counter()
    for case in cases:
        if time.perf_counter() - begin > arguments.seconds:
            note(f"{case}: not begun, the time is over")
        else:
            yield case


def measured(arguments, cases, measure):
    """The records that `measure` yields for each case; an error ends only its case."""
    for case in in_time(arguments, cases):
        try:
            yield from measure(case)
        except Exception as error:
            note(f"{case}: {type(error).__name__}: {describe(error)}")


def child_options(arguments):
    """The common arguments for a child of the suite."""
    options = ["--peer", ",".join(arguments.peer) or "none", "--budget", str(arguments.budget)]
    return [*options, "--repeat", str(arguments.repeat), *(["--emulated"] if arguments.emulated else [])]


def note(text):
    """Print a message to standard error."""
    print(text, file=sys.stderr, flush=True)
