"""What the scripts of this folder share: problems, the phases of a solver, a process a case, records.

Phases: analyze and factor from a call to the end of a synchronization, least of up to three; total is their sum.
refactor, solve and step (one of each) are medians, between CUDA events where a device works, and from Python to the end
of a synchronization (`..._wall`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import launches
from clocks import DeviceClock
from common import backward_error, describe, peers_module, seconds
from regimes import regimes

import gpusplu as gs

PEERS = ("cudss", "klu", "cholmod")
# Above these numbers of multiply-adds the CPU peers take longer than their numbers are worth [flop].
KLU_FLOPS, CHOLMOD_FLOPS = 5e9, 2e11
PLAIN = (int, float, str, bool, dict, list, type(None))  # what JSON can hold of the statistics
# Errors are medians over so many right-hand sides, whose errors differ by factors of two to three, if A is this small.
RIGHT_HAND_SIDES, MANY_ENTRIES = 5, 2e6
REPEAT_UNTIL = 1.0  # analysis and first factorization are repeated for this long [s]


class Problem:
    """A matrix, right-hand sides and a second set of values, on the host and where the engine wants them."""

    def __init__(self, A, definite, clock, sequence=()):
        self.A, self.definite, self.clock, self.sequence = A, definite, clock, sequence
        rng = np.random.default_rng(0)
        self.b = rng.normal(size=A.shape[0])
        left = rng.uniform(0.95, 1.05, A.shape[0])
        right = left if definite else rng.uniform(0.95, 1.05, A.shape[0])
        columns = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        self.scaled = sp.csc_array((A.data * left[A.indices] * right[columns], A.indices, A.indptr), shape=A.shape)
        more = RIGHT_HAND_SIDES - 1 if A.nnz < MANY_ENTRIES else 0
        self.right_hand_sides = [self.b, *(rng.normal(size=A.shape[0]) for _ in range(more))]

    @property
    def on_device(self):
        return isinstance(self.clock, DeviceClock)

    def put(self, array):
        if self.on_device:
            import cupy

            return cupy.asarray(array)
        return array

    def put_matrix(self, A):
        """A where values are; on the host where CuPy has no sparse matrices, for want of cuSPARSE."""
        if self.on_device:
            with suppress(ImportError):
                import cupyx.scipy.sparse

                return cupyx.scipy.sparse.csc_matrix(sp.csc_matrix(A))
        return A

    def walk(self, step, order=None):
        """Wall seconds of a step and the worst backward error over a sequence of values, where there is one.

        `step` takes values where the engine wants them, in the order of A.data or in `order` of it, and returns x.
        """
        if not len(self.sequence):
            return {}
        values = [self.put(np.ascontiguousarray(data if order is None else data[order])) for data in self.sequence]
        worst = 0.0
        for data, there in zip(self.sequence, values, strict=True):
            x = step(there)
            A = sp.csc_array((data, self.A.indices, self.A.indptr), shape=self.A.shape)
            worst = max(worst, backward_error(A, x.get() if hasattr(x, "get") else x, self.b))
        took = self.clock.wall(lambda: [step(there) for there in values])
        return {"sequence": took / len(values), "sequence_error": worst, "sequence_steps": len(values)}

    def error(self, solve):
        """Median backward error of what `solve` has for right-hand sides of the second system."""
        errors = []
        for b in self.right_hand_sides:
            x = solve(self.put(b))
            errors.append(backward_error(self.scaled, x.get() if hasattr(x, "get") else x, b))
        return float(np.median(errors))


def least(measure):
    """Least first phases of up to three calls of `measure`, which returns seconds by phase and what it made."""
    start, best, made = time.perf_counter(), {}, None
    for _ in range(3):
        made = None  # frees the memory of the one before
        took, made = measure()
        best = {phase: min(value, best.get(phase, value)) for phase, value in took.items()}
        if time.perf_counter() - start > REPEAT_UNTIL:
            break
    return {**best, "total": best["analyze"] + best["factor"]}, made


def repeated(clock, refactor, solve, step, events=True):
    """Seconds of the phases that are called again and again; `events`: between CUDA events too."""
    found = {}
    for phase, function in (("refactor", refactor), ("solve", solve), ("step", step)):
        found[f"{phase}_wall"] = clock.wall(function)
        found[phase] = clock.device(function) if events else found[f"{phase}_wall"]
    return found


def measure_ours(problem, engine, profile=True, **options):
    """Seconds of each phase, the backward error, what was predicted; with `profile` also where the time goes.

    `options` are those of `gpusplu.analyze`; "auto" is given a matrix that is where values are.
    """
    clock, A = problem.clock, problem.A
    b, given = problem.put(problem.b), problem.put_matrix(A) if engine == "auto" else A

    def first():
        analysis, symbolic = clock.once(lambda: gs.analyze(given, cholesky=problem.definite, engine=engine, **options))
        factorization, factor = clock.once(lambda: symbolic.factor(A.data))
        return {"analyze": analysis, "factor": factorization}, factor

    found, factor = least(first)
    new = problem.put(problem.scaled.data)
    factor.refactor(new)
    found["backward_error"] = problem.error(factor.solve)
    refactor, solve, step = factor.refactor, factor.solve, factor.refactor_solve
    events = profile or factor.engine == "cpu"  # otherwise replays are what counts
    found |= repeated(clock, lambda: refactor(new), lambda: solve(b), lambda: step(new, b), events)
    found |= {"flops": float(factor.symbolic.flops), "entries": factor.nnz, "n": A.shape[0], "nnz": A.nnz}
    found["stats"] = {name: value for name, value in factor.stats.items() if isinstance(value, PLAIN)}
    found["engine"], found["reason"] = factor.engine, factor.symbolic._choice.reason
    found |= problem.walk(lambda values: step(values, b))
    if problem.on_device and factor.engine != "cpu" and not factor._core._on_cpu:
        found |= {f"{phase}_call": found[phase] for phase in launches.GRAPHS if phase in found and events}
        graphs = tuple(launches.GRAPHS) if profile else ("refactor", "solve", "step")
        replays = attempt(lambda: launches.replay_seconds(factor, clock, graphs), "note")
        if found["stats"].get("n_refinement"):  # what is solved for by one replay is not the answer
            replays = {phase: value for phase, value in replays.items() if phase not in ("solve", "step")}
        found |= replays
    if problem.on_device and profile:
        found["kernels"] = attempt(lambda: launches.commands_by_kernel(factor, clock))
        found["regimes"] = attempt(lambda: regimes(factor._core._recorded.program.plan, factor.dtype.itemsize))
    return found


def measure_cudss(problem):
    """The same of cuDSS."""
    import cudss

    clock, b = problem.clock, problem.put(problem.b)
    opened = []

    def first():
        while opened:
            opened.pop().__exit__()
        solver = cudss.CuDSS(problem.A, b, problem.definite).__enter__()
        opened.append(solver)
        return {"analyze": clock.once(solver.analyze)[0], "factor": clock.once(solver.factor)[0]}, solver

    try:
        found, solver = least(first)
        new = cudss.CuDSS.stored(problem.scaled, problem.definite).data
        solver.values[...] = problem.put(new)
        solver.refactor()

        def solved(other):
            b[...] = other
            solver.solve()
            return solver.x

        found["backward_error"] = problem.error(solved)
        b[...] = problem.put(problem.b)
        found |= repeated(clock, solver.refactor, solver.solve, lambda: (solver.refactor(), solver.solve()))
        found |= problem.walk(lambda values: cudss_step(solver, values), cudss.CuDSS.order_of(problem.A))
        flops = solver.query(cudss.FLOPS)
        found |= {"flops": None if flops is None else float(flops), "entries": solver.query(cudss.ENTRIES)}
    finally:
        while opened:
            opened.pop().__exit__()
    return found


def cudss_step(solver, values):
    solver.values[...] = values
    solver.refactor()
    solver.solve()
    return solver.x


def measure_suitesparse(problem, what, flops):
    """The same of KLU or CHOLMOD, where they suit and do not take long; None otherwise."""
    suits = problem.definite if what == "cholmod" else not problem.definite
    if not suits or flops > (CHOLMOD_FLOPS if what == "cholmod" else KLU_FLOPS) or not os.environ.get("SS"):
        return None
    there = peers_module("peers").SuiteSparse().bench(what, sp.csc_matrix(problem.scaled), problem.b)
    if "status" in there:
        raise RuntimeError(f"status {there['status']}")
    found = {phase: there[phase] for phase in ("analyze", "factor", "refactor", "solve", "backward_error", "flops")}
    return found | {"total": found["analyze"] + found["factor"], "step": found["refactor"] + found["solve"]}


def attempt(measure, name="error"):
    """What was measured, or why not, under `name`."""
    try:
        return measure()
    except Exception as error:  # one solver's failure is a finding about that solver
        return {name: f"{type(error).__name__}: {describe(error)}"[:300]}


def report(name, found):
    if found is not None:
        print(json.dumps({"solver": name, **found}), flush=True)
    return found or {}


def run_process(command, limit):
    """Results by solver of a process that prints them with `report`, how it ended, its last words, its seconds."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
            status = subprocess.run(command, **streams, timeout=limit).returncode
            ended = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            ended = f"stopped after {limit:.0f} s"
        took = time.perf_counter() - start
        output.seek(0)
        errors.seek(0)
        results = [json.loads(line) for line in output if line.startswith('{"solver"')]
        complaint = errors.read().strip().splitlines()[-1:]
    return {result.pop("solver"): result for result in results}, ended, complaint, took


def append(path, lines):
    """Add records to a file, if there is one."""
    if path:
        with path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def brief(value):
    return seconds(value).replace(" ", "") if value else "-"


def commit_name():
    """GPUSPLU_COMMIT, or what git says; the machine with the device has no repository."""
    if "GPUSPLU_COMMIT" in os.environ:
        return os.environ["GPUSPLU_COMMIT"]
    asked = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return asked.stdout.strip() or "unknown"


def peer_names(text):
    """Names joined by commas; "none" is no name at all."""
    names = [] if text in ("", "none") else text.split(",")
    if not set(names) <= set(PEERS):
        raise argparse.ArgumentTypeError(f"{text!r} is not none or some of {','.join(PEERS)}")
    return names
