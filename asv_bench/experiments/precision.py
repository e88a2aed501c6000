"""Mixed precision compared with double precision: seconds, bytes and backward errors on every real matrix.

cholesky for positive definite matrices, otherwise splu; the "peer" is the same with ``precision="double"``. Backward
errors (`backward_error`, `double_error`) and those of single rows (`rows_error`, `double_rows_error`) are the largest
of four solves: with A and its transpose, of a solution between 1 and 2 and of a random right-hand side. `precision` is
that of the final factor, `steps` and `iterations` those of refinement and GMRES.
"""

import numpy as np

import gpusplu as gs

from .. import records
from ..matrices import load, real
from ..options import device_clock, measured, note
from ..phases import on_host
from ..timing import HostClock, backward_error

CASES = ()
PEERS, BUDGET = (), 0.2
PRECISIONS = ("mixed", "double")


def add_arguments(parser):
    parser.add_argument("--engine", default="cpu")


def rows_error(A, x, b):
    """The largest residual of a row beside its own size."""
    r, size = abs(b - A @ x), abs(A) @ abs(x) + abs(b)
    return float((r / np.where(size == 0, 1, size)).max())


def errors(A, factor, put):
    """The largest backward error, and the largest of a row."""
    n, rng, found = A.shape[0], np.random.default_rng(0), []
    for trans, op in (("N", A), ("T", A.T)):
        for b in (op @ np.linspace(1, 2, n), rng.normal(size=n)):
            b = b.astype(A.dtype)
            x = on_host(factor.solve(put(b), trans))
            found.append((backward_error(op, x, b), rows_error(op, x, b)))
    return [max(column) for column in zip(*found, strict=True)]


def measure(A, definite, precision, engine, clock):
    """Numbers of one factor."""
    factor = (gs.cholesky if definite else gs.splu)(A, engine=engine, precision=precision)
    values, b = clock.put(A.data), clock.put(np.ones(A.shape[0], A.dtype))
    worst = errors(A, factor, clock.put)
    seconds = {
        "refactor": clock.wall(lambda: (factor.refactor(values), factor.check())),
        "solve": clock.wall(lambda: factor.solve(b)),
    }
    return seconds, worst, factor.stats


def run(arguments):
    names = arguments.cases or [*real(False), *real(True)]
    yield from measured(arguments, names, lambda case: of_case(case, arguments))


def of_case(case, arguments):
    A, definite = load(case), case.startswith(("poisson", "elast")) or case in real(True)
    A = A.astype(np.promote_types(A.dtype, np.float64))
    clock = HostClock(arguments.budget) if arguments.engine == "cpu" else device_clock(arguments)
    try:
        mixed, double = (measure(A, definite, one, arguments.engine, clock) for one in PRECISIONS)
    except RuntimeError as error:
        note(f"{case}: {error}")
        return
    stats = mixed[2]
    more = {
        "double_error": double[1][0],
        "rows_error": mixed[1][1],
        "double_rows_error": double[1][1],
        "bytes": int(stats.bytes),
        "double_bytes": int(double[2].bytes),
        "precision": stats.precision,
        "steps": stats.n_refinement,
        "iterations": stats.n_gmres,
    }
    for phase, took in mixed[0].items():
        yield records.make(case, arguments.engine, phase, took, "double", double[0][phase], mixed[1][0], **more)
