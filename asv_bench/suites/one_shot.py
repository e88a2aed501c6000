"""One splu and one solve, compared with SciPy's, on the real unsymmetric matrices.

Seconds of splu and solve, alternating with SciPy's and without cached patterns, and backward errors of A x = b
(`backward_error`) and of the transposed system (`transposed_error`). An error is too large (`flagged`) above the larger
of 1e-14 and ten times SciPy's. Matrices that splu rejects as singular are left out if SciPy has no solution either.
"""

import numpy as np
import scipy.sparse.linalg

import gpusplu as gs

from .. import records
from ..matrices import load, real
from ..options import measured, note
from ..timing import backward_error, interleaved

CASES = ()
PEERS, BUDGET = ("scipy",), 0.0


def add_arguments(parser):
    parser.add_argument("--engine", default="auto")


def errors(factor, A, b):
    """Backward errors of the plain and the transposed solve."""
    return backward_error(A, factor.solve(b), b), backward_error(A.T, factor.solve(b, "T"), b)


def too_large(ours, scipys):
    return bool(np.any(np.asarray(ours) > np.maximum(1e-14, 10 * np.asarray(scipys))))


def unsolvable(A, b, engine):
    """Whether splu refuses A as singular and SciPy has no solution either."""
    try:
        gs.splu(A, engine=engine)
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
    else:
        return False
    try:
        return not max(errors(scipy.sparse.linalg.splu(A), A, b)) < 1e-8
    except RuntimeError:
        return True


def compare(case, engine, repeat):
    """The record of a case; none where the matrix is singular."""
    A = load(case)
    b = np.random.default_rng(0).normal(size=A.shape[0]).astype(A.dtype)
    if unsolvable(A, b, engine):
        note(f"{case}: singular")
        return
    ours = errors(gs.splu(A, engine=engine), A, b)  # also warms up
    scipys = errors(scipy.sparse.linalg.splu(A), A, b)
    calls = lambda: gs.splu(A, engine=engine, deterministic=True).solve(b), lambda: scipy.sparse.linalg.splu(A).solve(b)
    here, there = interleaved(calls, repeat)
    more = {"transposed_error": ours[1], "peer_backward_error": scipys[0], "peer_transposed_error": scipys[1]}
    more |= {"flagged": too_large(ours, scipys), "n": A.shape[0]}
    yield records.make(case, engine, "total", here, "scipy", there, ours[0], **more)


def run(arguments):
    cases = arguments.cases or real(definite=False)
    yield from measured(arguments, cases, lambda case: compare(case, arguments.engine, arguments.repeat))
