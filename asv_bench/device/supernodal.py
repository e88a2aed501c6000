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
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from cases import select
from clocks import DeviceClock, HostClock
from common import geomean, load, table
from harness import (
    PEERS,
    Problem,
    append,
    attempt,
    brief,
    commit_name,
    measure_cudss,
    measure_ours,
    measure_suitesparse,
    peer_names,
    report,
    run_process,
)

from gpusplu import gallery

PHASES = ("analyze", "factor", "total", "refactor", "solve", "step")
PREDICTED = {"refactor": "predicted_factor_seconds", "solve": "predicted_solve_seconds"}  # names in lu.stats


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


def run_case(case, arguments, limit):
    """Results by solver of one case, in a process of its own."""
    command = [sys.executable, __file__, "--child", "--engine", arguments.engine, "--peer", ",".join(arguments.peer)]
    found, ended, complaint, took = run_process([*command, case.name], limit)
    print(f"{case.name}: {took:.1f} s {ended}", flush=True)
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
        append(arguments.out, here)
    if lines:
        print_table(lines)


if __name__ == "__main__":
    main()
