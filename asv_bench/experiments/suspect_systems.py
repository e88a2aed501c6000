"""What systems with unsuitable pivots cost a batch on a GPU, relative to a batch without them.

Variants: a clean batch, batches with one and ten systems in which a part of the diagonal is almost zero (`spoilt`), and
other values (`seed`): with seeds 1 and 3 one system of memplus has unsuitable pivots without any change. Seconds are
medians of a whole batch of `--systems`, from Python to the end of a synchronization; `first_s` is the first call.
`backward_error` is the largest of all systems, computed on the host, also after a refactorization with further values,
which reuses the pivots of the first ones. It must be at most 100 eps.
"""

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .. import records
from ..matrices import load
from ..options import device_clock, measured
from ..phases import on_host
from ..timing import backward_error

CASES, PEERS, BUDGET = ("memplus",), (), 0.5
VARIANTS = {"clean": (0, 0), "seed 1": (1, 0), "seed 3": (3, 0), "1 spoilt": (0, 1), "10 spoilt": (0, 10)}
SMALL = 1e-13  # factor of diagonal entries that are almost zero
LIMIT = 100 * np.finfo(float).eps


def add_arguments(parser):
    parser.add_argument("--systems", type=int, default=1024)


def values_of(A, count, seed, spoilt):
    """Values of all systems; `spoilt` of them, spread over the batch, have almost zero entries on the diagonal."""
    values = A.data * (1 + 0.05 * np.random.default_rng(seed).random((count, A.nnz)))
    diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
    rng = np.random.default_rng(9)
    for k in np.linspace(1, count - 2, spoilt).astype(int):
        values[k, rng.choice(diagonal, min(60, len(diagonal) // 3), replace=False)] *= SMALL
    return values


def largest_error(A, values, x, b):
    matrices = (sp.csc_array((data, A.indices, A.indptr), A.shape) for data in values)
    return max(backward_error(M, *pair) for M, *pair in zip(matrices, on_host(x), b, strict=True))


def measure(A, values, b, clock):
    """Median and first seconds by phase, the largest backward error, and the number of systems with own pivots."""
    V, B = clock.put(values), clock.put(b)
    batch = gs.splu_batch(A, V, engine="supernodal")
    errors, seconds = [largest_error(A, values, batch.solve(B), b)], {}
    calls = {
        "refactor": lambda: batch.refactor(V),
        "solve": lambda: batch.solve(B),
        "step": lambda: batch.refactor_solve(V, B),
    }
    for phase, call in calls.items():
        first = clock.once(call)[0]
        seconds[phase] = clock.wall(call), first
    errors.append(largest_error(A, values, batch.refactor_solve(V, B), b))
    other = values * (1 + 1e-3 * np.random.default_rng(77).random(values.shape))
    errors.append(largest_error(A, other, batch.refactor_solve(clock.put(other), B), b))
    if max(errors) > LIMIT or (batch.status > gs.BatchStatus.REPIVOTED).any():
        raise RuntimeError(f"largest backward error {max(errors):.1e}, status {set(batch.status.tolist())}")
    return seconds, max(errors), int((batch.status == gs.BatchStatus.REPIVOTED).sum())


def run(arguments):
    clock = device_clock(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.systems, clock))


def of_case(case, count, clock):
    """A record of every variant and phase."""
    A = sp.csc_array(load(case)).astype(float)
    A.sort_indices()
    b, clean = np.random.default_rng(1).standard_normal((count, A.shape[0])), {}
    for variant, (seed, spoilt) in VARIANTS.items():
        seconds, error, repivoted = measure(A, values_of(A, count, seed, spoilt), b, clock)
        for phase, (took, first) in seconds.items():
            more = {"variant": variant, "systems": count, "repivoted": repivoted, "first_s": first}
            more["over_clean"] = took / clean.setdefault(phase, took)
            yield records.make(case, "supernodal", phase, took, backward_error=error, **more)
