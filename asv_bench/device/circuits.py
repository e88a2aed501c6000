"""The circuit engines, and what "auto" makes of them, beside cuDSS and KLU on the same host in the same run.

    python asv_bench/device/circuits.py --out records.jsonl [--engines cpu,auto,...] [--peer cudss,klu] [case ...]

Cases: real circuits and power grids (GPUSPLU_MATRICES), Newton sequences (GPUSPLU_SEQUENCES, names ending in _seq) and
RLC meshes of the gallery. CuPy, CUDSS, CUDSS_MT and SS as for supernodal.py, whose phases and records these are
(`harness`). "auto" is told of 1,000 refactorizations. `cpu` and engines ending in _host have values and vectors on the
host, all others on the device, `cpu_device` too. The phase "sequence" is one step of a Newton sequence, refactor and
solve from Python (`ours_s`), with the worst backward error of its steps. Each case is a process with a limit of time,
the engines that nothing else depends on last. A summary holds the numbers against what they should reach (targets.py).
Without a device: --engines cpu,auto_host --peer none.
"""

import argparse
import datetime
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import harness
import scipy.sparse as sp
from clocks import DeviceClock, HostClock
from common import load, sequences, table
from harness import Problem, append, attempt, brief, commit_name, peer_names, report, run_process
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
COLUMN_FLOPS = 3e9  # column engines need a column LU on the CPU first, which takes seconds above this [flop]
COLUMNS = ("glu", "sflu", "crisscross")
# The ones that count most first.
ENGINES = ("cpu", "auto", "supernodal", "auto_host", "cpu_device", "supernodal_host", *COLUMNS)


def on_host(engine):
    return engine == "cpu" or engine.endswith("_host")


def load_case(name):
    """The first matrix, and the values of all where it is a sequence."""
    if not name.endswith("_seq"):
        return load(name), ()
    (indptr, indices, data), *_ = [rest[:3] for stem, *rest in sequences() if f"{stem}_seq" == name]
    A = sp.csc_array((data[0], indices, indptr), shape=(indptr.size - 1,) * 2)
    return A, data


def child(name, names, peers, budget):
    """Measure one case; a JSON line a solver on standard output as soon as it is known."""
    device = "cudss" in peers or not all(map(on_host, names))
    clock, host = DeviceClock() if device else HostClock(), HostClock()
    A, values = load_case(name)
    flops = 0.0
    for matrix, sequence, seconds in ((gallery.rlc_mesh(20, 20), (), 0.005), (A, values, budget)):
        clock.budget = host.budget = seconds
        harness.REPEAT_UNTIL = 3 * seconds
        there, here = Problem(matrix, False, clock, sequence), Problem(matrix, False, host, sequence)
        warm = matrix is not A
        if not warm:
            gc.freeze()  # what was loaded need not be looked at again
        if "cudss" in peers:
            tell(warm, "cudss", attempt(lambda there=there: harness.measure_cudss(there)))
        for engine in names:
            if engine in COLUMNS and flops > COLUMN_FLOPS:
                continue
            problem = here if on_host(engine) else there
            found = attempt(lambda engine=engine, problem=problem: measure(problem, engine))
            flops = found.get("flops", flops)
            tell(warm, engine, found)
            if engine == "cpu" and "klu" in peers and not warm:
                tell(
                    False,
                    "klu",
                    attempt(lambda here=here, flops=flops: harness.measure_suitesparse(here, "klu", flops)),
                )


def tell(warm, name, found):
    if not warm:
        report(name, found)


def measure(problem, engine):
    """One of our engines; `problem` says where values are."""
    name = engine.removesuffix("_host").removesuffix("_device")
    options = {"expected_refactors": REFACTORIZATIONS} if name == "auto" else {}
    return harness.measure_ours(problem, name, profile=False, **options)


def run_case(name, names, arguments, limit):
    """Results by solver of one case, in a process of its own."""
    command = [sys.executable, __file__, "--child", "--engines", ",".join(names), "--budget", str(arguments.budget)]
    command += ["--peer", ",".join(arguments.peer) or "none", name]
    found, ended, complaint, took = run_process(command, limit)
    print(f"{name}: {took:.1f} s {ended} {' '.join(complaint)[:200] if ended else ''}", flush=True)
    for solver in [solver for solver in found if "error" in found[solver]]:
        print(f"  {solver}: {found.pop(solver)['error']}", flush=True)
    return found


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
    parser.add_argument("--budget", type=float, default=0.03, help="seconds that a phase is repeated")
    parser.add_argument("--seconds", type=float, default=240.0, help="after which no case is started")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.engines.split(",")
    if arguments.child:
        child(arguments.cases[0], names, arguments.peer, arguments.budget)
        return
    start, commit, results = time.perf_counter(), commit_name(), {}
    for case in arguments.cases or CASES:
        left = arguments.seconds - (time.perf_counter() - start)
        if left < 3:
            print(f"{case}: not started, {arguments.seconds:.0f} s are over")
            continue
        results[case] = run_case(case, names, arguments, min(CASES.get(case, 30), left))
        print_case(case, results[case])
        append(arguments.out, records(case, results[case], commit))
    print("\n" + "\n".join(summary(results)))


if __name__ == "__main__":
    main()
