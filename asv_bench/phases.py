"""Problems, and the phases of solvers on them.

Phases: analyze and factor from the call to the end of a synchronization, the least of up to three; total is their sum.
refactor, solve and step (one of each) are medians, between CUDA events on a device, and from Python to the end of a
synchronization (`..._wall`).
"""

import time
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.cli.report import describe
from gpusplu.common.timing import other_values

from . import internals
from .regimes import regimes
from .timing import backward_error

PHASES = ("analyze", "factor", "total", "refactor", "solve", "step")
PLAIN = (int, float, str, bool, dict, list, type(None))  # statistics that JSON can represent
# Errors are medians over several right-hand sides, because they differ by factors of two to three; one if A is large.
RIGHT_HAND_SIDES, MANY_ENTRIES = 5, 2e6


class Problem:
    """A matrix, right-hand sides and a second set of values, on the host and where the engine needs them.

    Parameters
    ----------
    A : csc_array, shape (n, n)
    definite : bool
        Otherwise `A` is a general matrix, or a `symmetric` one.
    clock : HostClock
        Also determines where values and vectors are.
    sequence : array_like, shape (steps, nnz), optional
        Successive values of a simulation.
    again : float, optional
        How long analysis and first factorization are repeated [s].
    symmetric : bool, optional
    brief : bool, optional
        Without steps, and peers have only the settings that a call would choose.
    """

    def __init__(self, A, definite, clock, sequence=(), again=1.0, symmetric=False, brief=False):
        self.A, self.definite, self.clock, self.sequence, self.again = A, definite, clock, sequence, again
        self.symmetric, self.brief = symmetric, brief
        self.scaled = other_values(A, definite or symmetric)
        rng = np.random.default_rng(0)
        self.b = rng.normal(size=A.shape[0])
        more = RIGHT_HAND_SIDES - 1 if A.nnz < MANY_ENTRIES else 0
        self.right_hand_sides = [self.b, *(rng.normal(size=A.shape[0]) for _ in range(more))]

    @property
    def on_device(self):
        return self.clock.on_device

    def put(self, array):
        return self.clock.put(array)

    def put_matrix(self, A):
        """A where values are; on the host if CuPy has no sparse matrices because cuSPARSE is missing."""
        if self.on_device:
            with suppress(ImportError):
                import cupyx.scipy.sparse

                return cupyx.scipy.sparse.csc_matrix(sp.csc_matrix(A))
        return A

    def walk(self, step, order=None):
        """Wall seconds of a step and the worst backward error over the sequence of values, if there is one.

        `step` takes values where the engine needs them, in the order of A.data or permuted by `order`, and returns x.
        """
        if not len(self.sequence):
            return {}
        values = [self.put(np.ascontiguousarray(data if order is None else data[order])) for data in self.sequence]
        worst = 0.0
        for data, there in zip(self.sequence, values, strict=True):
            A = sp.csc_array((data, self.A.indices, self.A.indptr), shape=self.A.shape)
            worst = max(worst, backward_error(A, on_host(step(there)), self.b))
        took = self.clock.wall(lambda: [step(there) for there in values])
        return {"sequence": took / len(values), "sequence_error": worst, "sequence_steps": len(values)}

    def error(self, solve):
        """Median backward error of `solve` for the right-hand sides, with the second values."""
        errors = [backward_error(self.scaled, on_host(solve(self.put(b))), b) for b in self.right_hand_sides]
        return float(np.median(errors))


def on_host(x):
    return x.get() if hasattr(x, "get") else x


def least(measure, again):
    """Least seconds of up to three calls of `measure`, which returns seconds by phase and a result."""
    start, best, made = time.perf_counter(), {}, None
    for _ in range(3):
        made = None  # frees the memory of the previous result
        took, made = measure()
        best = {phase: min(value, best.get(phase, value)) for phase, value in took.items()}
        if time.perf_counter() - start > again:
            break
    return {**best, "total": best["analyze"] + best["factor"]}, made


def repeated(clock, refactor, solve, step, events=True):
    """Seconds of the repeated phases; `events`: between CUDA events too."""
    found = {}
    for phase, function in (("refactor", refactor), ("solve", solve), ("step", step)):
        found[f"{phase}_wall"] = clock.wall(function)
        found[phase] = clock.device(function) if events else found[f"{phase}_wall"]
    return found


def begun(problem, analyze, factor):
    """Seconds of the first phases, and the result of `factor`, which takes the result of `analyze`."""

    def first():
        analysis, symbolic = problem.clock.once(analyze)
        factorization, made = problem.clock.call(lambda: factor(symbolic))
        return {"analyze": analysis, "factor": factorization}, made

    return least(first, problem.again)


def measure_ours(problem, engine, profile=True, **options):
    """Seconds of each phase of gpusplu, backward error, predictions; with `profile` also seconds by kernel and regime.

    `options` are those of `gpusplu.analyze`. The matrix for "auto" is where values are.
    """
    clock, A = problem.clock, problem.A
    b, given = problem.put(problem.b), problem.put_matrix(A) if engine == "auto" else A
    found, factor = begun(
        problem,
        lambda: gs.analyze(given, cholesky=problem.definite, engine=engine, **options),
        lambda symbolic: symbolic.factor(A.data),
    )
    new = problem.put(problem.scaled.data)
    factor.refactor(new)
    found["backward_error"] = problem.error(factor.solve)
    refactor, solve, step = factor.refactor, factor.solve, factor.refactor_solve
    events = profile or factor.engine == "cpu"  # otherwise only replays count
    found |= repeated(clock, lambda: refactor(new), lambda: solve(b), lambda: step(new, b), events)
    found |= {"flops": float(factor.symbolic.flops), "entries": factor.nnz, "n": A.shape[0], "nnz": A.nnz}
    found["stats"] = {name: value for name, value in factor.stats.items() if isinstance(value, PLAIN)}
    found["engine"], found["reason"] = factor.engine, internals.choice_reason(factor)
    found |= problem.walk(lambda values: step(values, b))
    if problem.on_device and internals.runs_on_device(factor):
        found |= {f"{phase}_call": found[phase] for phase in internals.GRAPHS if phase in found and events}
        found |= replays(factor, clock, profile)
    if clock.has_events and profile:
        found["kernels"] = attempt(lambda: internals.commands_by_kernel(factor, clock))
    if problem.on_device and profile:
        found["regimes"] = attempt(lambda: regimes(internals.front_plan(factor), factor.dtype.itemsize))
    return found


def replays(factor, clock, certified):
    """Seconds of the graphs of a device factor; with `certified` also of those that measure the backward error."""
    graphs = tuple(internals.GRAPHS) if certified else ("refactor", "solve", "step")
    found = attempt(lambda: internals.replay_seconds(factor, clock, graphs), "note")
    if factor.stats.get("n_refinement"):  # the solution of one replay is not the final one
        return {phase: value for phase, value in found.items() if phase not in ("solve", "step")}
    return found


def factored_by_fronts(A, definite, **options):
    """A factor on a device by nested dissection."""
    return (gs.cholesky if definite else gs.splu)(A, engine="supernodal", ordering="nd", **options)


def wall_of_fronts(A, factor, clock):
    """Seconds of calls with values and a right-hand side on the device, and a solution."""
    values, b = clock.put(A.data), clock.put(np.random.default_rng(0).normal(size=A.shape[0]))
    found = {
        "refactor_s": clock.wall(lambda: factor.refactor(values)),
        "solve_s": clock.wall(lambda: factor.solve(b)),
        "both_s": clock.wall(lambda: factor.refactor_solve(values, b)),
    }
    return found, on_host(factor.solve(b))


def attempt(measure, name="error"):
    """The measurements, or the error under `name`."""
    try:
        return measure()
    except Exception as error:  # the failure of one solver is a result
        return {name: f"{type(error).__name__}: {describe(error)}"[:300]}
