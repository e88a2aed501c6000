"""The supernodal GPU engine compared with cuDSS on the same device, and with KLU and CHOLMOD on its host.

Cases are names or groups: circuit, middle, large. Each runs in a process of its own with a time limit. A is on the host
for the analysis of gpusplu and on the device for that of cuDSS; values and right-hand sides of refactor, solve and step
(one of each) are on the device. Seconds are medians between CUDA events: of one replay of the graph without the
backward error, because cuDSS measures none; of the public call if refinement was needed. Further keys of the same
phases: `ours_call_s`, events around the public call, which measures backward errors; `ours_certified_s`, a replay that
measures them; `ours_wall_s` and `peer_wall_s`, from Python to the end of a synchronization. New values are the old ones
with slightly scaled rows and columns. `--engine cpu --peer none` runs without a device.
"""

from gpusplu import gallery

from .. import peers, processes, records
from ..matrices import CASES as ALL
from ..matrices import load, select
from ..options import child_options, device_clock, note, present
from ..phases import PHASES, Problem, attempt, measure_ours
from ..timing import HostClock

CASES = [case.name for case in ALL]
PEERS, BUDGET = ("cudss", "klu", "cholmod"), 0.2
PREDICTED = {"refactor": "predicted_factor_seconds", "solve": "predicted_solve_seconds"}  # names in lu.stats
SMALL = {True: "elast:6x6x6", False: "convdiff:12x12x12"}  # fronts of all classes; pay for modules and threads


def add_arguments(parser):
    parser.add_argument("--engine", default="supernodal", choices=("supernodal", "cpu"))


def child(arguments):
    """Measure one case; a line a solver as soon as it is known."""
    (case,) = select(arguments.cases)
    clock = HostClock(arguments.budget) if arguments.engine == "cpu" else device_clock(arguments)
    before = [name for name in arguments.peer if name == "cudss"]

    def solvers(A):
        problem = Problem(A, case.definite, clock)
        for name in before:
            yield name, lambda name=name: peers.measure(name, problem)
        yield "ours", lambda: measure_ours(problem, arguments.engine)

    clock.budget = min(0.01, arguments.budget)
    for _, measure in () if arguments.emulated else solvers(gallery.named(SMALL[case.definite])):
        attempt(measure)
    clock.budget = arguments.budget
    A = load(case.name)
    results = {name: processes.tell(name, attempt(measure)) for name, measure in solvers(A)}
    flops = min((found["flops"] for found in results.values() if found.get("flops")), default=0.0)
    for name in [name for name in arguments.peer if name not in before]:
        problem = Problem(A, case.definite, HostClock(arguments.budget))
        processes.tell(name, attempt(lambda name=name, problem=problem: peers.measure(name, problem, flops)))
    processes.tell("done", {})


def run(arguments):
    arguments.peer = present(arguments)
    limits = {case.name: case.limit for case in select(arguments.cases)}
    command = [*child_options(arguments), "--engine", arguments.engine]
    for case, found, ended in processes.measure_cases("supernodal", command, limits, arguments.seconds, 0.0):
        note(f"{case}: {ended or 'measured'}")
        for name in [name for name in found if "error" in found[name]]:
            note(f"  {name}: {found.pop(name)['error']}")
        ours = found.get("ours", {})
        for text in filter(None, (ours.get("note"), (ours.get("kernels") or {}).get("error"))):
            note(f"  {text}")
        yield from records_of(case, found, arguments.engine)


def records_of(case, found, engine):
    """The records of one case: a peer and a phase each."""
    ours = found.get("ours", {})
    others = [name for name in found if name != "ours"] or (["none"] if ours else [])
    for peer in others:
        there = found.get(peer, {})
        for phase in PHASES:
            more = {"peer_backward_error": there.get("backward_error")}
            for side, result in (("ours", ours), ("peer", there)):
                for kind in ("wall", "call", "certified"):
                    if f"{phase}_{kind}" in result:
                        more[f"{side}_{kind}_s"] = result[f"{phase}_{kind}"]
                if phase in ("factor", "refactor") and result.get("flops") and result.get(phase):
                    key = "tflops" if side == "ours" else "peer_tflops"
                    more[key] = 1e-12 * result["flops"] / result[phase]
            more["predicted_s"] = ours.get("stats", {}).get(PREDICTED.get(phase, ""))
            if phase == "refactor" and peer == others[0]:
                more |= {key: ours.get(key) for key in ("n", "nnz", "flops", "regimes", "kernels", "stats")}
            error = ours.get("backward_error")
            yield records.make(case, engine, phase, ours.get(phase), peer, there.get(phase), error, **more)
