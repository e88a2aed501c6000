"""CKTSO, through ctypes.

CKTSO is the path of libcktso.so; its license file cktso.lic has to be in the same folder. Settings are the defaults:
the best of its ten orderings, and no more threads than it considers useful. It runs with one thread and with as many as
gpusplu has; the better of the two counts for each phase. Seconds of repeated phases come from its own timer.
"""

import ctypes
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ..phases import begun
from ..timing import backward_error
from . import Peer, best_of, numbers_of_threads

TIMER = 0  # iparm: 1 for microseconds
ANALYSIS, FACTORIZATION, SOLVE, STEP = 0, 1, 2, 15  # oparm: what the last call took
LOWER, UPPER, FLOPS = 5, 6, 17  # oparm: entries, without the diagonal of U; 2 flops a multiply-add
REAL = BY_ROWS = PIVOTING = PARALLEL_IF_FASTER = ctypes.c_bool(False)


class CKTSO(Peer):
    """CKTSO: LU by rows of circuit matrices, parallel."""

    kinds = (False,)

    def missing(self):
        library = Path(os.environ.get("CKTSO", ""))
        if not library.is_file():
            return "CKTSO has to name libcktso.so"
        return "" if library.with_name("cktso.lic").exists() else "cktso.lic has to be in the folder that CKTSO names"

    def measure(self, problem):
        return best_of(with_threads, [(problem, threads) for threads in numbers_of_threads(problem)])


def with_threads(problem, threads):
    """Analysis and first factorization of the first values, the rest of the second: the least of repeats."""
    solver = Solver(problem.A, problem.b)
    try:
        found, _ = begun(problem, lambda: solver.analyze(threads), lambda _: solver.factor())
        solver.set_values(problem.scaled)
        for phase in ("refactor", "solve", "step")[: 2 if problem.brief else 3]:
            function = getattr(solver, phase)
            found[phase] = min(function() for _ in range(problem.clock.repeats(function)))
        found |= {"entries": solver.results[LOWER] + solver.results[UPPER], "flops": solver.results[FLOPS] / 2}
    finally:
        solver.run("DestroySolver")
    found["step"] = min(found.get("step", float("inf")), found["refactor"] + found["solve"])
    return found | {"backward_error": backward_error(problem.scaled, solver.x, problem.b)}


class Solver:
    """One matrix and right-hand side; phases return their seconds."""

    def __init__(self, A, b):
        self.library, self.solver = ctypes.CDLL(os.environ["CKTSO"]), ctypes.c_void_p()
        settings, self.results = ctypes.POINTER(ctypes.c_int)(), ctypes.POINTER(ctypes.c_longlong)()
        self.check(self.library.CKTSO_CreateSolver(*map(ctypes.byref, (self.solver, settings, self.results))))
        settings[TIMER] = 1
        self.b, self.x = b, b * 0
        self.set_values(A)

    def set_values(self, A):
        rows = sp.csr_array(A)
        self.pattern = [rows.indptr.astype(np.int32), rows.indices.astype(np.int32)]
        self.values = rows.data.astype(np.float64)

    def run(self, name, *arguments):
        """Raises RuntimeError where CKTSO reports an error."""
        arguments = [pointer(one) if isinstance(one, np.ndarray) else one for one in arguments]
        self.check(getattr(self.library, f"CKTSO_{name}")(self.solver, *arguments))

    @staticmethod
    def check(status):
        if status:
            raise RuntimeError(f"CKTSO returned status {status}")

    def seconds(self, entry, name, *arguments):
        self.run(name, *arguments)
        return 1e-6 * self.results[entry]

    def analyze(self, threads):
        return self.seconds(ANALYSIS, "Analyze", REAL, self.b.size, *self.pattern, self.values, threads)

    def factor(self):
        return self.seconds(FACTORIZATION, "Factorize", self.values, PIVOTING)

    def refactor(self):
        return self.seconds(FACTORIZATION, "Refactorize", self.values)

    def solve(self):
        return self.seconds(SOLVE, "Solve", self.b, self.x, PARALLEL_IF_FASTER, BY_ROWS)

    def step(self):
        return self.seconds(STEP, "RefactorizeAndSolve", self.values, self.b, self.x, BY_ROWS)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)
