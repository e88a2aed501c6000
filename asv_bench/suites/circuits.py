"""All engines and `auto` on circuits, compared with cuDSS and KLU on the same machine in the same run.

Cases: real circuits and power grids, Newton sequences (names ending in _seq) and RLC meshes of the gallery. "auto"
expects 1,000 refactorizations, `auto_default` the default number. `cpu` and engines ending in _host have values and
vectors on the host, all others, including `cpu_device`, on the device. The phase "sequence" is one step of a Newton
sequence, refactor and solve from Python (`ours_s`), with the worst backward error of its steps. One process measures
all cases; if one takes too long or crashes, another process continues with the next. The report compares the results
with targets (report/circuits.py). Without a device: --engines cpu,auto_host --peer none.
"""

import gc

from gpusplu import gallery

from .. import peers, processes, records
from ..matrices import load_sequence
from ..options import child_options, device_clock, names, note, present
from ..phases import PHASES, Problem, attempt, measure_ours
from ..timing import HostClock

CASES = {  # seconds allowed
    **dict.fromkeys(("add20", "rajat19", "adder_dcop_05", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac"), 14),
    **dict.fromkeys(("bayer10", "ibmpg1t_mna_tran", "faer_matrix_n19168"), 16),
    "ibmpg2t_mna_tran": 28,
    **dict.fromkeys(("add20_seq", "mem_plus_seq", "smult20_seq", "voter_seq", "rlc:100x100"), 14),
    "rlc:300x300": 22,
    "rlc:700x700": 35,
}
OTHER_SECONDS = 20
PEERS, BUDGET = ("cudss", "klu"), 0.02
REFACTORIZATIONS = 1000
COLUMN_FLOPS = 2e8  # above, column engines are left out but where others published figures [flop]
PUBLISHED = ("ibmpg2t_mna_tran",)
LARGE = 400_000  # entries: only engines that count most
WARM_SECONDS = 40  # more for the first case of a process
COLUMNS = ("glu", "sflu", "crisscross")
# The ones that count most first; peers among them.
SOLVERS = ("auto", "supernodal", *COLUMNS, "cudss", "klu", "cpu")
FURTHER = ("auto_host", "cpu_device", "supernodal_host", "auto_default")
ENGINES = [name for name in (*SOLVERS, *FURTHER) if name not in peers.NAMES]


def add_arguments(parser):
    parser.add_argument("--engines", type=names, default=ENGINES, help="names joined by commas")


def on_host(solver):
    return solver in ("cpu", "klu") or solver.endswith("_host")


def child(arguments):
    """Measure case after case; a line a solver as soon as it is known."""
    solvers = [name for name in (*SOLVERS, *FURTHER) if name in (*arguments.engines, *arguments.peer)]
    clock = HostClock() if all(map(on_host, solvers)) else device_clock(arguments)
    warm = gallery.named("rlc:4x4" if arguments.emulated else "rlc:20x20")
    measure_all("", warm, (), solvers, clock, 0.001, lambda *_: None)  # loads everything
    gc.freeze()
    for case in arguments.cases:
        measure_all(case, *load_sequence(case), solvers, clock, arguments.budget, processes.tell)
        processes.tell("done", {})


def measure_all(case, A, values, solvers, clock, budget, tell):
    """What each solver takes for one case, to `tell`."""
    host = HostClock(budget)
    clock.budget = budget
    there, here = Problem(A, False, clock, values, again=0.0), Problem(A, False, host, values, again=0.0)
    flops = 0.0
    for name in solvers:
        large = flops > COLUMN_FLOPS and case not in PUBLISHED
        if (name in COLUMNS and large) or (name in FURTHER and A.nnz > LARGE):
            continue
        problem = here if on_host(name) else there
        found = attempt(lambda name=name, problem=problem, flops=flops: measure(problem, name, flops))
        flops = flops or (found or {}).get("flops", 0.0)
        tell(name, found)


def measure(problem, solver, flops):
    """One solver; `problem` says where values are."""
    if solver in peers.NAMES:
        return peers.measure(solver, problem, flops)
    options = {"expected_refactors": REFACTORIZATIONS} if solver in ("auto", "auto_host") else {}
    return measure_ours(problem, solver.split("_")[0], profile=False, **options)


def run(arguments):
    arguments.peer = present(arguments)
    limits = {case: CASES.get(case, OTHER_SECONDS) for case in arguments.cases}
    command = [*child_options(arguments), "--engines", ",".join(arguments.engines)]
    for case, found, ended in processes.measure_cases("circuits", command, limits, arguments.seconds, WARM_SECONDS):
        note(f"{case}: {ended or 'measured'}")
        for solver in [solver for solver in found if "error" in found[solver]]:
            note(f"  {solver}: {found.pop(solver)['error']}")
        yield from records_of(case, found)


def records_of(case, found):
    """The records of one case: an engine, a phase and a peer each."""
    ours = {name: result for name, result in found.items() if name not in peers.NAMES}
    others = [name for name in found if name in peers.NAMES] or ["none"]
    for engine, result in ours.items():
        for peer in others:
            there = found.get(peer, {})
            for phase in (*PHASES, "sequence"):
                if phase not in result:
                    continue
                error = "sequence_error" if phase == "sequence" else "backward_error"
                more = {"peer_backward_error": there.get(error), "runs": result.get("engine")}
                for side, seconds in (("ours", result), ("peer", there)):
                    more |= {f"{side}_{kind}_s": seconds.get(f"{phase}_{kind}") for kind in ("wall", "certified")}
                more |= {key: result.get(key) for key in ("n", "nnz", "flops")}
                more["predicted_s"] = result.get("stats", {}).get(f"predicted_{phase}_seconds")
                values = (result[phase], peer, there.get(phase), result.get(error))
                yield records.make(case, engine, phase, *values, **more)
