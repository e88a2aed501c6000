"""The circuit engines, and what "auto" makes of them, beside cuDSS and KLU on the same host in the same run.

    python asv_bench/device/circuits.py --out records.jsonl [--engines cpu,auto,...] [--peer cudss,klu] [case ...]

Cases: real circuits and power grids (GPUSPLU_MATRICES), Newton sequences (GPUSPLU_SEQUENCES, names ending in _seq) and
RLC meshes of the gallery. CuPy, CUDSS, CUDSS_MT and SS as for supernodal.py, whose phases and records these are
(`harness`). "auto" is told of 1,000 refactorizations, `auto_default` of nothing. `cpu` and engines ending in _host have
values and vectors on the host, all others on the device, `cpu_device` too. The phase "sequence" is one step of a Newton
sequence, refactor and solve from Python (`ours_s`), with the worst backward error of its steps. One process measures
case after case; where one takes too long or ends it, another goes on with the next. A summary holds the numbers against
what they should reach (targets.py). Without a device: --engines cpu,auto_host --peer none.
"""

import argparse
import datetime
import gc
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import harness
import scipy.sparse as sp
from clocks import DeviceClock, HostClock
from common import load, sequences, table
from harness import Problem, append, attempt, brief, commit_name, peer_names, report
from targets import summary

from gpusplu import gallery

CASES = {  # seconds allowed
    **dict.fromkeys(("add20", "rajat19", "adder_dcop_05", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac"), 14),
    **dict.fromkeys(("bayer10", "ibmpg1t_mna_tran", "faer_matrix_n19168"), 16),
    "ibmpg2t_mna_tran": 28,
    **dict.fromkeys(("add20_seq", "mem_plus_seq", "smult20_seq", "voter_seq", "rlc:100x100"), 14),
    "rlc:300x300": 22,
    "rlc:700x700": 35,
}
PHASES = ("analyze", "factor", "total", "refactor", "solve", "step", "sequence")
REFACTORIZATIONS = 1000
COLUMN_FLOPS = 2e8  # above, column engines are left out but where others published figures [flop]
PUBLISHED = ("ibmpg2t_mna_tran",)
LARGE = 400_000  # entries: only engines that count most
WARM_SECONDS = 40  # more for the first case of a process
COLUMNS = ("glu", "sflu", "crisscross")
# The ones that count most first; peers among them.
SOLVERS = ("auto", "supernodal", *COLUMNS, "cudss", "klu", "cpu")
FURTHER = ("auto_host", "cpu_device", "supernodal_host", "auto_default")
ENGINES = tuple(name for name in (*SOLVERS, *FURTHER) if name not in harness.PEERS)


def on_host(engine):
    return engine in ("cpu", "klu") or engine.endswith("_host")


def load_case(name):
    """The first matrix, and the values of all where it is a sequence."""
    if not name.endswith("_seq"):
        return load(name), ()
    (indptr, indices, data), *_ = [rest[:3] for stem, *rest in sequences() if f"{stem}_seq" == name]
    A = sp.csc_array((data[0], indices, indptr), shape=(indptr.size - 1,) * 2)
    return A, data


def child(cases, names, peers, budget):
    """Measure case after case; a JSON line a solver on standard output as soon as it is known."""
    solvers = [name for name in (*SOLVERS, *FURTHER) if name in names or name in peers]
    device = not all(map(on_host, solvers))
    clock, host = DeviceClock() if device else HostClock(), HostClock()

    def measure_all(A, values, seconds, case, tell):
        clock.budget = host.budget = seconds
        there, here = Problem(A, False, clock, values), Problem(A, False, host, values)
        flops = 0.0
        for name in solvers:
            large = flops > COLUMN_FLOPS and case not in PUBLISHED
            if (name in COLUMNS and large) or (name in FURTHER and A.nnz > LARGE):
                continue
            found = attempt(lambda name=name, flops=flops: measure(here if on_host(name) else there, name, flops))
            flops = flops or (found or {}).get("flops", 0.0)
            tell(name, found)

    harness.REPEAT_UNTIL = 0.0
    measure_all(gallery.rlc_mesh(20, 20), (), 0.001, "", lambda *_: None)  # loads everything
    gc.freeze()
    for case in cases:
        A, values = load_case(case)
        measure_all(A, values, budget, case, report)
        report("done", {})


def measure(problem, solver, flops):
    """One solver; `problem` says where values are."""
    if solver == "cudss":
        return harness.measure_cudss(problem)
    if solver == "klu":
        return harness.measure_suitesparse(problem, "klu", flops)
    name = solver.split("_")[0]
    options = {"expected_refactors": REFACTORIZATIONS} if solver in ("auto", "auto_host") else {}
    return harness.measure_ours(problem, name, profile=False, **options)


def run_cases(cases, names, arguments):
    """Case, results by solver, and why it ended early if it did, of one case after another."""
    left, end = list(cases), time.perf_counter() + arguments.seconds
    while left and time.perf_counter() < end - 3:
        command = [sys.executable, __file__, "--child", "--engines", ",".join(names), "--budget", str(arguments.budget)]
        command += ["--peer", ",".join(arguments.peer) or "none", *left]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            lines = queue.SimpleQueue()
            threading.Thread(target=forward, args=(process.stdout, lines), daemon=True).start()
            extra = WARM_SECONDS
            while left:
                case = left.pop(0)
                found, ended = collect(lines, min(end, time.perf_counter() + CASES.get(case, 20) + extra))
                extra = 0
                if ended:
                    process.kill()
                    errors.seek(0)
                    ended += "".join(errors.read().strip().splitlines()[-1:])
                yield case, found, ended
                if ended:
                    break
    for case in left:
        yield case, {}, "not started"


def forward(stream, lines):
    """Put the lines of a stream where somebody waits for them, and None at its end."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def collect(lines, until):
    """Results by solver up to the end of a case; and why they stop before, if they do."""
    found = {}
    while True:
        try:
            line = lines.get(timeout=max(0.01, until - time.perf_counter()))
        except queue.Empty:
            return found, "stopped "
        if line is None:
            return found, "ended "
        if line.startswith('{"solver"'):
            result = json.loads(line)
            solver = result.pop("solver")
            if solver == "done":
                return found, ""
            found[solver] = result


def records(case, found, commit):
    """The JSON lines of one case: an engine, a phase and a peer each."""
    ours = {name: result for name, result in found.items() if name not in harness.PEERS}
    peers = [name for name in found if name in harness.PEERS] or ["none"]
    for engine, result in ours.items():
        for peer in peers:
            there = found.get(peer, {})
            for phase in PHASES:
                if phase not in result:
                    continue
                error = "sequence_error" if phase == "sequence" else "backward_error"
                record = {"case": case, "engine": engine, "phase": phase, "ours_s": result[phase], "peer": peer}
                record |= {"peer_s": there.get(phase), "backward_error": result.get(error), "commit": commit}
                record |= {"date": datetime.date.today().isoformat(), "peer_backward_error": there.get(error)}
                for side, seconds in (("ours", result), ("peer", there)):
                    record |= {f"{side}_{kind}_s": seconds.get(f"{phase}_{kind}") for kind in ("wall", "certified")}
                record |= {key: result.get(key) for key in ("n", "nnz", "flops")} | {"runs": result.get("engine")}
                record["predicted_s"] = result.get("stats", {}).get(f"predicted_{phase}_seconds")
                yield record


def print_case(case, found):
    """A row a solver."""
    rows = []
    for solver, result in found.items():
        runs = result.get("engine", solver)
        label = solver if runs == solver.split("_")[0] else f"{solver} ({runs})"
        cells = [brief(result.get(phase)) for phase in ("analyze", "factor", "refactor", "solve", "step")]
        cells += [brief(result.get(phase)) for phase in ("step_wall", "sequence")]
        errors = [result.get(error) for error in ("backward_error", "sequence_error")]
        rows.append([label, *cells, *["-" if error is None else f"{error:.0e}" for error in errors]])
    print(table((case, "analyze", "factor", "refactor", "solve", "step", "wall", "sequence", "error", "worst"), rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"{', '.join(CASES)}; none means all")
    parser.add_argument("--engines", default=",".join(ENGINES), help="names joined by commas")
    parser.add_argument("--peer", type=peer_names, default=["cudss", "klu"], help="cudss,klu (the default) or none")
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    parser.add_argument("--budget", type=float, default=0.02, help="seconds that a phase is repeated")
    parser.add_argument("--seconds", type=float, default=170.0, help="after which no case is started")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.engines.split(",")
    if arguments.child:
        child(arguments.cases, names, arguments.peer, arguments.budget)
        return
    start, commit, results = time.perf_counter(), commit_name(), {}
    for case, found, ended in run_cases(arguments.cases or CASES, names, arguments):
        print(f"{case}: at {time.perf_counter() - start:.1f} s {ended}", flush=True)
        for solver in [solver for solver in found if "error" in found[solver]]:
            print(f"  {solver}: {found.pop(solver)['error']}", flush=True)
        if found:
            results[case] = found
            print_case(case, found)
            append(arguments.out, records(case, found, commit))
    print("\n" + "\n".join(summary(results)))


if __name__ == "__main__":
    main()
