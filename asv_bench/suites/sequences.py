"""Real Newton sequences: refactor and solve at every step, beside SciPy's splu and solve.

Seconds are means of a step. Backward errors of the plain (`backward_error`) and the transposed system
(`transposed_error`) are the worst of a sequence; a sequence is `flagged` that at some step has one above the larger of
1e-14 and ten times SciPy's.
"""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import gpusplu as gs

from .. import records
from ..matrices import load_sequence, sequences
from ..options import measured
from ..timing import interleaved
from .one_shot import errors, too_large

CASES = ()
PEERS, BUDGET = ("scipy",), 0.0


def add_arguments(parser):
    parser.add_argument("--engine", default="auto")


def compare(case, engine, repeat):
    """The record of a sequence."""
    A, data = load_sequence(case)
    b = np.random.default_rng(0).normal(size=A.shape[0])
    lu = gs.splu(A, engine=engine)
    here, there, ours, scipys = [], [], [], []
    matrices = [sp.csc_array((values, A.indices, A.indptr), shape=A.shape) for values in data[1:]]
    for B in matrices:
        lu.refactor(B.data)
        ours.append(errors(lu, B, b))
        scipys.append(errors(scipy.sparse.linalg.splu(B), B, b))
    for B in matrices:
        calls = (
            lambda B=B: (lu.refactor(B.data), lu.solve(b)),
            lambda B=B: scipy.sparse.linalg.splu(B).solve(b),
        )
        for took, seconds in zip((here, there), interleaved(calls, repeat), strict=True):
            took.append(seconds)
    worst, of_scipy = np.max(ours, axis=0), np.max(scipys, axis=0)
    more = {"transposed_error": worst[1], "peer_backward_error": of_scipy[0], "peer_transposed_error": of_scipy[1]}
    more |= {"flagged": too_large(ours, scipys), "steps": len(matrices), "n": A.shape[0]}
    more["n_repivoted"] = lu.stats.get("n_repivoted")
    return records.make(case, engine, "sequence", np.mean(here), "scipy", np.mean(there), worst[0], **more)


def run(arguments):
    cases = arguments.cases or [f"{name}_seq" for name, *_ in sequences()]
    yield from measured(arguments, cases, lambda case: [compare(case, arguments.engine, arguments.repeat)])
