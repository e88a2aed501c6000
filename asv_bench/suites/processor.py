"""The CPU engine compared with KLU, CKTSO, rslab, CHOLMOD, PARDISO and SciPy: first factor, new values, solve.

Cases are the real matrices, by kind, and names of the gallery, including meshes of lines with three entries per row;
those of elasticity and Poisson's equation are definite. A peer is measured on the kinds that it is for (CHOLMOD:
definite; KLU and CKTSO: others), unless it would take too long. For all solvers alike, the least of up to three first
factorizations counts, and the least of as many other calls as fit into --budget. Threads of a BLAS spin for a while
after a call, so there is a pause after every solver. --threads applies to gpusplu, CKTSO and rslab, and to OpenBLAS and
MKL if these are loaded later.
"""

import os
import time

import gpusplu as gs
from gpusplu import gallery

from .. import internals, peers, records
from ..matrices import MATRICES, load, real
from ..options import measured, note, present
from ..phases import PHASES, Problem, attempt, begun
from ..timing import HostClock

DEFINITE = (
    *("1138_bus", "bcsstk26", "bcsstk16", "bcsstk18", "fv2", "bodyy4", "Dubcova1", "rail_20209_negA"),
    *("cotlap_armadillo", "ibmpg2t_spd_tran", "G3_circuit", "elast:20x20x20", "poisson:40x40x40", "poisson:500x500"),
)
GENERATED = (
    *("rlc:100x100", "rlc:300x300", "convdiff:30"),
    *("lines:1x2x100000", "lines:2x20000x5", "lines:40x40x50", "lines:100x100x50"),
)
CASES = ()
PEERS, BUDGET = ("klu", "cktso", "rslab", "cholmod", "pardiso", "scipy"), 0.2
PAUSE = 0.3
VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WARM = (("rlc:20x20", False), ("poisson:5x5x5", True))


def add_arguments(parser):
    parser.add_argument("--threads", type=int, default=2)


def is_definite(case):
    if ":" in case:
        return case.startswith(("elast", "poisson"))
    return case in DEFINITE or ((MATRICES / "INDEX.csv").exists() and case in real(True))


def kind(case):
    return "definite" if is_definite(case) else "very sparse" if case.startswith("lines:") else "general"


def chosen(arguments):
    """The real and generated matrices that the peers are for, unless cases are asked for."""
    if arguments.cases:
        return arguments.cases
    kinds = {kind for name in arguments.peer for kind in peers.named(name).kinds}
    general = (*real(False, "float64"), *GENERATED) if False in kinds else ()
    return [*general, *(DEFINITE if True in kinds else ())]


def ours(problem):
    """Seconds of each phase, the backward error and what the factor is."""
    clock, b, new = problem.clock, problem.b, problem.scaled.data
    found, factor = begun(
        problem,
        lambda: gs.analyze(problem.A, cholesky=problem.definite, engine="cpu"),
        lambda symbolic: symbolic.factor(problem.A.data),
    )
    found["refactor"] = clock.least(lambda: factor.refactor(new))
    found["solve"] = clock.least(lambda: factor.solve(b))
    if not problem.brief:
        found["step"] = clock.least(lambda: factor.refactor_solve(new, b))
    found |= {"backward_error": problem.error(factor.solve), "n": problem.A.shape[0], "nnz": problem.A.nnz}
    return found | {"flops": float(factor.symbolic.flops), "entries": factor.nnz}


def run(arguments):
    others = present(arguments)
    begin(arguments.threads, others)
    yield from measured(arguments, chosen(arguments), lambda case: of_case(case, others, arguments.budget))


def begin(threads, others):
    """Set the number of threads of all solvers, and load everything."""
    os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
    internals.set_num_threads(threads)
    for case, definite in WARM:
        dict(solvers(Problem(gallery.named(case), definite, HostClock(0.001), again=0.0), others))


def solvers(problem, others, pause=PAUSE):
    """Names and what they take, of ours and of each of the others that is for such a problem."""
    found = ours(problem)
    yield "ours", found
    for name in others:
        time.sleep(pause)
        there = attempt(lambda name=name: peers.measure(name, problem, found["flops"]))
        if there is not None:
            yield name, there
    time.sleep(pause if others else 0)


def of_case(case, others, budget):
    problem = Problem(load(case), is_definite(case), HostClock(budget))
    yield from records_of(case, dict(solvers(problem, others)), PHASES, threads=internals.num_threads())


def records_of(case, results, phases, **more):
    """The records of a case, a peer and a phase each, of results by solver; `more` is in all of them."""
    for name in [name for name in results if "error" in results[name]]:
        note(f"{case}: {name}: {results.pop(name)['error']}")
    if found := results.pop("ours", None):
        more = {"kind": kind(case)} | {key: found.get(key) for key in ("n", "nnz", "flops", "entries")} | more
        for name, there in (results or {"none": {}}).items():
            its = {"peer_backward_error": there.get("backward_error"), "peer_entries": there.get("entries")}
            for phase in filter(found.__contains__, phases):
                values = (found[phase], name, there.get(phase), found["backward_error"])
                yield records.make(case, "cpu", phase, *values, **its, **more)
