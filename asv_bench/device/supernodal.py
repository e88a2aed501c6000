"""The supernodal GPU engine beside cuDSS on the same device in the same run, and beside KLU and CHOLMOD on its host.

    python asv_bench/device/supernodal.py --out records.jsonl [--peer cudss] [case or group ...]

Needs CuPy and the libraries that CUDSS, CUDSS_MT (cuDSS and its threading layer) and SS (shared/peers, KLU and CHOLMOD)
name; real matrices come from GPUSPLU_MATRICES. Each case runs in a process of its own with a limit of time, so that no
failure takes the others along. One JSON line a case, phase and peer is appended to --out:

    {"case", "engine", "phase", "ours_s", "peer", "peer_s", "backward_error", "commit", "date", ...}

Phases: analyze and factor from a call to the end of a synchronization, A on the host for us and on the device for
cuDSS, least of up to three; total is their sum. Values and right-hand sides of refactor, solve and step (one of each)
are on the device: medians between CUDA events, ours of one replay of the graph without the measurement of the backward
error, as cuDSS has none; of the public call where refinement turned out to be needed. Further keys of the same phases:
`ours_call_s`, events around the public call, which certifies solves; `ours_certified_s`, a replay with the measurement;
`ours_wall_s` and `peer_wall_s`, from Python to the end of a synchronization. New values are the old ones with rows and
columns scaled a little. `--engine cpu --peer none` runs without a device.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import launches
from cases import select
from clocks import DeviceClock, HostClock
from common import backward_error, describe, geomean, load, peers_module, seconds, table
from regimes import regimes

import gpusplu as gs
from gpusplu import gallery

PHASES = ("analyze", "factor", "total", "refactor", "solve", "step")
PREDICTED = {"refactor": "predicted_factor_seconds", "solve": "predicted_solve_seconds"}  # names in lu.stats
PEERS = ("cudss", "klu", "cholmod")
# Above these numbers of multiply-adds the CPU peers take longer than their numbers are worth [flop].
KLU_FLOPS, CHOLMOD_FLOPS = 5e9, 2e11
PLAIN = (int, float, str, bool, dict, list, type(None))  # what JSON can hold of the statistics
REPEAT_UNTIL = 3.0  # analysis and first factorization are repeated for this long [s]


class Problem:
    """A matrix, its right-hand side and a second set of values, on the host and where the engine wants them."""

    def __init__(self, A, definite, clock):
        self.A, self.definite, self.clock = A, definite, clock
        rng = np.random.default_rng(0)
        self.b = rng.normal(size=A.shape[0])
        left = rng.uniform(0.95, 1.05, A.shape[0])
        right = left if definite else rng.uniform(0.95, 1.05, A.shape[0])
        columns = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
        self.scaled = sp.csc_array((A.data * left[A.indices] * right[columns], A.indices, A.indptr), shape=A.shape)

    @property
    def on_device(self):
        return isinstance(self.clock, DeviceClock)

    def put(self, array):
        if self.on_device:
            import cupy

            return cupy.asarray(array)
        return array

    def error(self, x):
        """Backward error of a solution of the second system."""
        return backward_error(self.scaled, x.get() if hasattr(x, "get") else x, self.b)


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


def repeated(clock, refactor, solve, step):
    """Seconds of the phases that are called again and again."""
    found = {}
    for phase, function in (("refactor", refactor), ("solve", solve), ("step", step)):
        found[phase] = clock.device(function)
        found[f"{phase}_wall"] = clock.wall(function)
    return found


def measure_ours(problem, engine):
    """Seconds of each phase, the backward error, what the plan predicts and asks for, and where the time goes."""
    clock, A = problem.clock, problem.A
    b = problem.put(problem.b)

    def first():
        analysis, symbolic = clock.once(lambda: gs.analyze(A, cholesky=problem.definite, engine=engine))
        factorization, factor = clock.once(lambda: symbolic.factor(A.data))
        return {"analyze": analysis, "factor": factorization}, factor

    found, factor = least(first)
    new = problem.put(problem.scaled.data)
    factor.refactor(new)
    found["backward_error"] = problem.error(factor.solve(b))
    refactor, solve, step = factor.refactor, factor.solve, factor.refactor_solve
    found |= repeated(clock, lambda: refactor(new), lambda: solve(b), lambda: step(new, b))
    found |= {"flops": float(factor.symbolic.flops), "entries": factor.nnz, "n": A.shape[0], "nnz": A.nnz}
    found["stats"] = {name: value for name, value in factor.stats.items() if isinstance(value, PLAIN)}
    if problem.on_device:
        found |= {f"{phase}_call": found[phase] for phase in launches.GRAPHS if phase in found}
        replays = attempt(lambda: launches.replay_seconds(factor, clock), "note")
        if found["stats"].get("n_refinement"):  # what is solved for by one replay is not the answer
            replays = {phase: value for phase, value in replays.items() if phase not in ("solve", "step")}
        found |= replays
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
        solver.solve()
        found["backward_error"] = problem.error(solver.x)
        found |= repeated(clock, solver.refactor, solver.solve, lambda: (solver.refactor(), solver.solve()))
        flops = solver.query(cudss.FLOPS)
        found |= {"flops": None if flops is None else float(flops), "entries": solver.query(cudss.ENTRIES)}
    finally:
        while opened:
            opened.pop().__exit__()
    return found


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


def child(arguments):
    """Measure one case; a JSON line a solver on standard output as soon as it is known."""
    (case,) = select(arguments.cases)
    clock = HostClock() if arguments.engine == "cpu" else DeviceClock()
    peers = arguments.peer
    small = gallery.elasticity(6, 6, 6) if case.definite else gallery.convection_diffusion(12, 12, 12)
    A = load(case.name)
    for matrix in (small, A):  # the first has fronts of all classes and pays for modules and threads
        clock.budget = 0.01 if matrix is small else type(clock).budget
        problem = Problem(matrix, case.definite, clock)
        solvers = {"cudss": lambda problem=problem: measure_cudss(problem)} if "cudss" in peers else {}
        solvers["ours"] = lambda problem=problem: measure_ours(problem, arguments.engine)
        if matrix is small:
            for solver in solvers.values():
                attempt(solver)
    results = {name: report(name, attempt(solver)) for name, solver in solvers.items()}
    flops = min((found["flops"] for found in results.values() if found.get("flops")), default=0.0)
    for name in [name for name in PEERS[1:] if name in peers]:
        report(name, attempt(lambda name=name: measure_suitesparse(problem, name, flops)))


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


def run_case(case, arguments, limit):
    """Results by solver of one case, in a process of its own."""
    command = [sys.executable, __file__, "--child", "--engine", arguments.engine, "--peer", ",".join(arguments.peer)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        try:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
            status = subprocess.run([*command, case.name], **streams, timeout=limit).returncode
            ended = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            ended = f"stopped after {limit:.0f} s"
        output.seek(0)
        errors.seek(0)
        results = [json.loads(line) for line in output if line.startswith('{"solver"')]
        complaint = errors.read().strip().splitlines()[-1:]
    found = {result.pop("solver"): result for result in results}
    print(f"{case.name}: {time.perf_counter() - start:.1f} s {ended}", flush=True)
    for name in ("ours", *arguments.peer):
        if "error" in found.get(name, {}):
            print(f"  {name}: {found.pop(name)['error']}", flush=True)
    notes = [found.get("ours", {}).get("note"), found.get("ours", {}).get("kernels", {}).get("error"), *complaint]
    for note in filter(None, notes if ended else notes[:2]):
        print(f"  {note[:300]}", flush=True)
    return found


def records(case, found, engine, commit):
    """The JSON lines of one case."""
    ours = found.get("ours", {})
    stats = ours.get("stats", {})
    peers = [name for name in found if name != "ours"] or ["none"]
    for peer in peers:
        there = found.get(peer, {})
        for phase in PHASES:
            record = {"case": case.name, "engine": engine, "phase": phase, "ours_s": ours.get(phase), "peer": peer}
            record |= {"peer_s": there.get(phase), "backward_error": ours.get("backward_error"), "commit": commit}
            record |= {"date": datetime.date.today().isoformat(), "peer_backward_error": there.get("backward_error")}
            for side, result in (("ours", ours), ("peer", there)):
                for kind in ("wall", "call", "certified"):
                    if f"{phase}_{kind}" in result:
                        record[f"{side}_{kind}_s"] = result[f"{phase}_{kind}"]
                if phase in ("factor", "refactor") and result.get("flops") and result.get(phase):
                    key = "tflops" if side == "ours" else "peer_tflops"
                    record[key] = 1e-12 * result["flops"] / result[phase]
            record["predicted_s"] = stats.get(PREDICTED.get(phase, ""))
            if phase == "refactor" and peer == peers[0]:
                record |= {key: ours.get(key) for key in ("n", "nnz", "flops", "regimes", "kernels", "stats")}
            yield record


def print_table(lines):
    """Ours, the peer's and their ratio for each phase, a table a peer, with geometric means."""
    for peer in dict.fromkeys(line["peer"] for line in lines):
        phases = ("total", "refactor", "solve", "step") if peer in ("cudss", "none") else ("refactor", "solve")
        rows, ratios = [], {phase: [] for phase in phases}
        for case in dict.fromkeys(line["case"] for line in lines if line["peer"] == peer):
            found = {line["phase"]: line for line in lines if (line["case"], line["peer"]) == (case, peer)}
            row = [case]
            for phase in phases:
                ours, there = found[phase]["ours_s"], found[phase]["peer_s"]
                row += [brief(ours), brief(there), f"{there / ours:.2f}" if ours and there else "-"]
                ratios[phase] += [there / ours] if ours and there else []
            line, wall = found["refactor"], found["step"].get("ours_wall_s")
            share = line["predicted_s"] / line["ours_s"] if line["predicted_s"] and line["ours_s"] else None
            row += [brief(wall), f"{share:.2f}" if share else "-"]
            row += [f"{line[key]:.1f}" if line.get(key) else "-" for key in ("tflops", "peer_tflops")]
            errors = (line["backward_error"], line["peer_backward_error"])
            row[0] += " (refined)" if (line.get("stats") or {}).get("n_refinement") else ""
            row[0] += " (CPU)" if (line.get("stats") or {}).get("n_repivoted") else ""
            rows.append(row + [f"{error:.0e}" if error is not None else "-" for error in errors])
        columns = [cell for phase in phases for cell in (phase, peer, "ratio")]
        print(table(("case", *columns, "wall", "pred", "TF", peer, "error", peer), rows))
        means = [f"{phase} {geomean(found):.2f} (least {min(found):.2f})" for phase, found in ratios.items() if found]
        print(f"ratios beside {peer}, geometric means of {len(rows)}: {', '.join(means)}\n")


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="names or groups: circuit, middle, large; none means all")
    parser.add_argument("--engine", default="supernodal", choices=("supernodal", "cpu"))
    parser.add_argument("--peer", type=peer_names, default=list(PEERS), help="cudss,klu,cholmod (the default) or none")
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    parser.add_argument("--budget", type=float, default=540.0, help="seconds after which no case is started")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    start, commit, lines = time.perf_counter(), commit_name(), []
    for case in select(arguments.cases):
        left = arguments.budget - (time.perf_counter() - start)
        if left < 5:
            print(f"{case.name}: not started, the budget of {arguments.budget:.0f} s is used up")
            continue
        here = list(records(case, run_case(case, arguments, min(case.limit, left)), arguments.engine, commit))
        lines += here
        if arguments.out:
            with arguments.out.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in here)
    if lines:
        print_table(lines)


if __name__ == "__main__":
    main()
