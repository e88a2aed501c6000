"""Programs of others with SciPy's solvers and with gpusplu.install(), each in a process of its own.

Seconds of a program from its input to its result (`total`), and those in `splu`, `spsolve`, `factorized` and in the
solves of their results (`solver`), the least of `--repeat` alternating processes. The first run of a process counts, as
a user waits for it, without imports and input. With `--late` gpusplu is installed after the program and all its
imports. `difference` is that of both results, relative to their largest number. `--scale` multiplies the sizes in
`asv_bench/programs`. The packages: ``pip install --group programs``.
"""

import time
import warnings
from contextlib import redirect_stdout
from functools import wraps
from io import StringIO

import numpy as np
import scipy.sparse.linalg

import gpusplu as gs

from .. import programs, records
from ..options import measured, note
from ..processes import Child, tell

CASES = tuple(programs.SIZES)
PEERS, BUDGET = ("scipy",), 0.0
SOLVERS = ("scipy", "gpusplu")
SECONDS = 300.0  # of one process
NUMBERS = 500  # of a result that are compared, about
PHASES = {"total": "total", "solver": "solving"}  # and what a child calls them
FUNCTIONS = ("splu", "spsolve", "factorized")


def add_arguments(parser):
    parser.add_argument("--scale", type=float, default=1.0, help="of the programs' sizes")
    parser.add_argument("--late", action="store_true", help="install after the program is imported")
    parser.add_argument("--solver", choices=SOLVERS, default=SOLVERS[1], help="of a process that measures")


class Seconds:
    """The time that is spent in functions, calls inside of calls counted once."""

    def __init__(self):
        self.total, self.inside = 0.0, False

    def counted(self, function):
        """The same function with its time counted, and that of the solves of what it returns."""

        @wraps(function)
        def call(*args, **kwargs):
            if self.inside:
                return function(*args, **kwargs)
            self.inside, start = True, time.perf_counter()
            try:
                result = function(*args, **kwargs)
            finally:
                self.total += time.perf_counter() - start
                self.inside = False
            if hasattr(result, "solve"):
                return Solver(result, self.counted(result.solve))
            return self.counted(result) if callable(result) else result

        return call


class Solver:
    """A factor whose solves are counted."""

    def __init__(self, factor, solve):
        self.factor, self.solve = factor, solve

    def __getattr__(self, name):
        return getattr(self.factor, name)


def count_solvers():
    """Count the time of SciPy's solvers, or of what is in their place: whoever imports them from here on gets these."""
    spent = Seconds()
    for name in FUNCTIONS:
        function = getattr(scipy.sparse.linalg, name)
        counted = spent.counted(function)
        for module in programs.modules_with(name, function):
            setattr(module, name, counted)
    return spent


def child(arguments):
    """Programs once each."""
    for name in arguments.cases:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            found = measure(name, arguments)
        tell(arguments.solver, found)
        tell("done", {})


def measure(name, arguments):
    """Seconds of one program, and numbers of its result."""
    install = gs.install if arguments.solver == "gpusplu" else lambda: None
    if not arguments.late:
        install()
    spent = count_solvers()
    work = programs.made(name, max(1, round(arguments.scale * programs.SIZES[name])))
    if arguments.late:
        install()
    spent.total, start = 0.0, time.perf_counter()
    result = np.ravel(work())
    found = {"total": time.perf_counter() - start, "solving": spent.total}
    return found | {"result": result[:: 1 + len(result) // NUMBERS].tolist()}


def once(arguments, name, solver):
    """What a process finds; None, with a note, if it fails."""
    options = ["--scale", str(arguments.scale), "--solver", solver, *(["--late"] if arguments.late else [])]
    with Child("programs", options, [name]) as process:
        found, ended = process.next_case(time.perf_counter() + SECONDS)
    if ended:
        note(f"{name} with {solver}: {ended}")
    return found.get(solver)


def compare(arguments, name):
    """Records of a program; none where it fails."""
    least = {}
    for _ in range(arguments.repeat):
        for solver in SOLVERS:
            found = once(arguments, name, solver)
            if found is None:
                return
            before = least.setdefault(solver, found)
            least[solver] = found | {key: min(found[key], before[key]) for key in PHASES.values()}
    there, here = (least[solver] for solver in SOLVERS)
    results = np.array([there["result"], here["result"]])
    difference = float(abs(results[0] - results[1]).max() / abs(results[0]).max())
    late = {"variant": "installed late"} if arguments.late else {}
    for phase, key in PHASES.items():
        more = {"difference": difference, "scale": arguments.scale} | late
        yield records.make(name, "auto", phase, here[key], "scipy", there[key], **more)


def run(arguments):
    yield from measured(arguments, arguments.cases, lambda name: compare(arguments, name))
