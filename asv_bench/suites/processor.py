"""The CPU engine beside KLU, CHOLMOD, PARDISO and SciPy: analysis, factorization, refactorization and solve.

Cases are real matrices, by their kind, and gallery names; those of elasticity and Poisson's equation are definite. A
peer is measured on the kind that it is for (CHOLMOD: definite; KLU: others). Ours is the least of three for analyze and
factor and of --repeat for the others, the peer's what its library's repeats have. Threads of BLAS spin for a while
after a call, so there is a pause before ours. --threads is for ours and for OpenBLAS and MKL, as far as these are
loaded later.
"""

import os
import time

import gpusplu as gs

from .. import internals, peers, records
from ..matrices import MATRICES, load, real
from ..options import measured, note, present
from ..phases import Problem, attempt
from ..timing import HostClock, backward_error, best

DEFINITE = (
    *("1138_bus", "bcsstk26", "bcsstk16", "bcsstk18", "fv2", "bodyy4", "Dubcova1", "rail_20209_negA"),
    *("cotlap_armadillo", "ibmpg2t_spd_tran", "G3_circuit", "elast:20x20x20"),
)
CASES = ()
PEERS, BUDGET = ("klu", "cholmod"), 0.0
PHASES = ("analyze", "factor", "refactor", "solve")
PAUSE = 0.3
VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def add_arguments(parser):
    parser.add_argument("--threads", type=int, default=2)


def is_definite(case):
    if ":" in case:
        return case.startswith(("elast", "poisson"))
    return case in DEFINITE or ((MATRICES / "INDEX.csv").exists() and case in real(True))


def chosen(arguments):
    """The real matrices that the peers are for, unless cases are asked for."""
    if arguments.cases:
        return arguments.cases
    kinds = {kind for name in arguments.peer for kind in peers.named(name).KINDS}
    return [*(real(False, "float64") if False in kinds else ()), *(DEFINITE if True in kinds else ())]


def ours(problem, repeat):
    """Seconds of each phase and the backward error."""
    A, b, definite = problem.scaled, problem.b, problem.definite
    factor = (gs.cholesky if definite else gs.splu)(A, engine="cpu")  # also starts threads
    factor.refactor(A.data)
    return {
        "analyze": best(lambda: gs.analyze(A, cholesky=definite, engine="cpu"), min(repeat, 3)),
        "factor": best(lambda: factor.symbolic.factor(A.data), min(repeat, 3)),
        "refactor": best(lambda: factor.refactor(A.data), repeat),
        "solve": best(lambda: factor.solve(b), repeat),
        "backward_error": backward_error(A, factor.solve(b), b),
    }


def run(arguments):
    os.environ.update(dict.fromkeys(VARIABLES, str(arguments.threads)))
    internals.set_num_threads(arguments.threads)
    others = present(arguments)
    yield from measured(arguments, chosen(arguments), lambda case: beside(case, others, arguments.repeat))


def beside(case, others, repeat):
    """The records of a case: a peer and a phase each."""
    problem = Problem(load(case), is_definite(case), HostClock())
    found = ours(problem, repeat)
    rows = {name: attempt(lambda name=name: peers.measure(name, problem)) for name in others}
    rows = {name: there for name, there in rows.items() if there is not None}
    for name in [name for name in rows if "error" in rows[name]]:
        note(f"{case}: {name}: {rows.pop(name)['error']}")
    for name, there in (rows or {"none": {}}).items():
        for phase in PHASES:
            more = {"peer_backward_error": there.get("backward_error"), "n": problem.A.shape[0]}
            values = (found[phase], name, there.get(phase), found["backward_error"])
            yield records.make(case, "cpu", phase, *values, **more)
    time.sleep(PAUSE if rows else 0)
