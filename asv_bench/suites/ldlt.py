"""LDL^T compared with LU, PARDISO, rslab, feral and cuDSS on saddle points and other indefinite matrices.

Cases are names of the gallery (steps of interior-point methods at several barriers, Stokes, mixed elements, Helmholtz)
and symmetric real matrices; all solvers treat definite ones as indefinite. Both sets of values are symmetric. If
--engine is on a device, values and vectors are there too. Settings of a peer with a backward error above 1e-8 do not
count; its inertia is that of the first other setting. Threads of a BLAS spin for a while after a call, so there is a
pause after every solver.
"""

import os
import time

import gpusplu as gs
from gpusplu import gallery

from .. import internals, peers, records
from ..matrices import load
from ..options import device_clock, measured, note, present
from ..phases import PHASES, Problem, attempt, begun
from ..timing import HostClock
from .processor import PAUSE, VARIABLES

CASES = (
    *("kkt:20000x8000x1", "kkt:20000x8000x4", "kkt:20000x8000x8", "kkt:100000x40000x6", "kkt:20000x19000x6"),
    *("stokes:100x100", "stokes:14x14x14", "mixed:100x100", "helmholtz:300x300", "helmholtz:22x22x22"),
    *("ibmpg1t_mna_tran", "ginkgo_mc64_example", "anemometer1_A1", "bcsstk18", "rail_20209_negA", "cotlap_armadillo"),
)
PEERS, BUDGET = ("own_lu", "pardiso", "rslab", "feral"), 0.2
WARM = "kkt:60x20x1"


def add_arguments(parser):
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engine", default="cpu")


def run(arguments):
    os.environ.update(dict.fromkeys(VARIABLES, str(arguments.threads)))
    internals.set_num_threads(arguments.threads)
    others, on_device = present(arguments), arguments.engine != "cpu"
    clock = device_clock(arguments) if on_device else HostClock(arguments.budget)
    solvers(Problem(gallery.named(WARM), False, clock, again=0.0, symmetric=True), arguments.engine, others)
    yield from measured(arguments, arguments.cases, lambda case: beside(case, arguments.engine, others, clock))


def ours(problem, engine):
    """Seconds of each phase, the backward error, what the factor is and what it says of the matrix."""
    clock = problem.clock
    b, new = problem.put(problem.b), problem.put(problem.scaled.data)
    found, factor = begun(
        problem,
        lambda: gs.analyze(problem.A, ldlt=True, engine=engine),
        lambda symbolic: symbolic.factor(problem.A.data),
    )
    found["refactor"] = clock.least(lambda: factor.refactor(new))
    found["solve"] = clock.least(lambda: factor.solve(b))
    found["step"] = clock.least(lambda: factor.refactor_solve(new, b))
    stats, inertia = factor.stats, factor.inertia()
    found |= {"entries": factor.nnz, "bytes": stats["bytes"], "n_delayed": stats.get("n_delayed")}
    found["inertia"] = inertia and f"{inertia.positive}, {inertia.negative}"
    return found | {"backward_error": problem.error(factor.solve)}


def solvers(problem, engine, others):
    """What ours and each of the others take."""
    found, rows = ours(problem, engine), {}
    for name in others:
        time.sleep(PAUSE)
        rows[name] = attempt(lambda name=name: peers.measure(name, problem))
    time.sleep(PAUSE if others else 0)
    return found, {name: there for name, there in rows.items() if there is not None}


def beside(case, engine, others, clock):
    """The records of a case: a peer and a phase each."""
    problem = Problem(load(case), False, clock, symmetric=True)
    found, rows = solvers(problem, engine, others)
    for name in [name for name in rows if "error" in rows[name]]:
        note(f"{case}: {name}: {rows.pop(name)['error']}")
    more = {"n": problem.A.shape[0], "nnz": problem.A.nnz, "threads": internals.num_threads()}
    more |= {name: found[name] for name in ("entries", "bytes", "n_delayed", "inertia")}
    for name, there in (rows or {"none": {}}).items():
        its = {f"peer_{key}": there.get(key) for key in ("backward_error", "entries", "bytes", "inertia")}
        for phase in PHASES:
            values = (found[phase], name, there.get(phase), found["backward_error"])
            yield records.make(case, engine, phase, *values, **its, **more)
