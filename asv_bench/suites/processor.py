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
    found["step"] = clock.least(lambda: factor.refactor_solve(new, b))
    error = problem.error(factor.solve)
    return found | {"backward_error": error, "flops": float(factor.symbolic.flops), "entries": factor.nnz}


def run(arguments):
    os.environ.update(dict.fromkeys(VARIABLES, str(arguments.threads)))
    internals.set_num_threads(arguments.threads)
    others = present(arguments)
    for case, definite in WARM:  # loads everything
        solvers(Problem(gallery.named(case), definite, HostClock(0.001), again=0.0), others)
    yield from measured(arguments, chosen(arguments), lambda case: beside(case, others, arguments.budget))


def solvers(problem, others):
    """What ours and each of the others take."""
    found = ours(problem)
    rows = {}
    for name in others:
        time.sleep(PAUSE)
        rows[name] = attempt(lambda name=name: peers.measure(name, problem, found["flops"]))
    time.sleep(PAUSE if others else 0)
    return found, {name: there for name, there in rows.items() if there is not None}


def beside(case, others, budget):
    """The records of a case: a peer and a phase each."""
    problem = Problem(load(case), is_definite(case), HostClock(budget))
    found, rows = solvers(problem, others)
    for name in [name for name in rows if "error" in rows[name]]:
        note(f"{case}: {name}: {rows.pop(name)['error']}")
    more = {"kind": kind(case), "n": problem.A.shape[0], "nnz": problem.A.nnz, "flops": found["flops"]}
    more |= {"entries": found["entries"], "threads": internals.num_threads()}
    for name, there in (rows or {"none": {}}).items():
        its = {"peer_backward_error": there.get("backward_error"), "peer_entries": there.get("entries")}
        for phase in PHASES:
            values = (found[phase], name, there.get(phase), found["backward_error"])
            yield records.make(case, "cpu", phase, *values, **its, **more)
