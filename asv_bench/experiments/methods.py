"""Methods of the CPU engine: measured and predicted seconds, and constants that fit better.

Column LU and fronts, and LDL^T by fronts if the matrix is symmetric. The model is core/analysis/analyze.cpp with the
constants of gpusplu/cost/table.py: seconds = base + rows + entries + fill + flops, each with a constant. Cases are the
real matrices by default.
"""

import numpy as np
from scipy.optimize import nnls

from .. import internals, records
from ..matrices import load, real
from ..options import measured, note
from ..timing import interleaved

CASES = ()
PEERS, BUDGET = (), 0.0
PHASES = ("factor", "refactor", "solve")
METHODS = ("column", "front", "ldlt")
LARGEST = 1_000_000  # entries: beyond, column LU takes minutes


def add_arguments(parser):
    parser.add_argument("--fit", action="store_true", help="say constants that would fit better")


def measure(A, method, repeat):
    """Features of the model, seconds of the phases measured and modelled."""
    features, predicted, calls = internals.method_phases(A, method)
    return features, interleaved(calls, repeat), predicted


def run(arguments):
    collected = {method: [] for method in METHODS}
    cases = arguments.cases or [*real(False), *real(True)]
    yield from measured(arguments, cases, lambda case: of_case(case, arguments.repeat, collected))
    if arguments.fit:
        say_constants(collected)


def of_case(case, repeat, collected):
    """A record of every method and phase; features and seconds go to `collected`."""
    A = load(case)
    if A.nnz > LARGEST or A.dtype != float:
        note(f"{case}: left out")
        return
    for method in METHODS if abs(A - A.T).max() == 0 else METHODS[:2]:
        features, seconds, predicted = measure(A, method, repeat)
        collected[method].append((features, seconds))
        for phase, took, model in zip(PHASES, seconds, predicted, strict=True):
            yield records.make(case, "cpu", phase, took, variant=method, predicted_s=model)


def say_constants(collected):
    """Nonnegative constants with the least squares of relative errors, and how far these spread."""
    for method, found in collected.items():
        if not found:
            continue
        X = np.array([features for features, _ in found])
        for k, phase in enumerate(PHASES):
            y = np.array([seconds[k] for _, seconds in found])
            constants, _ = nnls(X / y[:, None], np.ones(len(y)))
            spread = np.exp(np.std(np.log(np.maximum(X @ constants, 1e-9) / y)))
            note(f"{method:6s} {phase:8s} {' '.join(f'{c:.3g}' for c in constants)} (spread {spread:.2f}x)")
