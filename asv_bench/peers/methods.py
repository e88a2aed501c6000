"""Column LU against fronts on the real matrices: measured and modelled seconds, and constants that would fit better.

usage: python asv_bench/peers/methods.py [MATRIX ...]

The model is core/analysis/time_model.cpp: seconds = base + rows + entries + fill + flops, each with a constant.
"""

import sys

import numpy as np
from common import interleaved, load, select, table
from scipy.optimize import nnls

from gpusplu import _core, _core_testing

PHASES = ("factor", "refactor", "solve")
LARGEST = 1_000_000  # entries: beyond, column LU takes minutes


def measure(A, method):
    """Features of the model and seconds of the phases."""
    ptr, ind, values = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    symbolic = _core.analyze(ptr, ind, values, method=method)
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    factor = _core.factor(symbolic, pattern, values)
    b = A @ np.ones(A.shape[0])
    seconds = interleaved(
        [
            lambda: _core.factor(symbolic, pattern, values),
            lambda: factor.refactor(values),
            lambda: factor.solve(b),
        ],
        repeat=5,
    )
    features = [1.0, A.shape[0], A.nnz, symbolic.lnz, symbolic.flops]
    model = _core_testing.predict_seconds(method, A.shape[0], A.nnz, symbolic.lnz, symbolic.flops)
    return features, seconds, model


def main(names):
    rows, collected = [], {"column": [], "front": []}
    for name in names:
        A = load(name)
        if A.nnz > LARGEST or A.dtype != float:
            continue
        totals = {}
        for method, all_of in collected.items():
            try:
                features, seconds, model = measure(A, method)
            except RuntimeError as error:
                print(f"{name}: {error}")
                break
            all_of.append((features, seconds))
            totals[method] = seconds
            ratios = " ".join(f"{m / s:5.2f}" for m, s in zip(model, seconds, strict=True))
            rows.append([name, method, *(f"{1e3 * s:.3f}" for s in seconds), ratios])
    print(table(["matrix", "method", *(f"{p} ms" for p in PHASES), "modelled / measured"], rows))
    for method, all_of in collected.items():
        X = np.array([features for features, _ in all_of])
        for k, phase in enumerate(PHASES):
            y = np.array([seconds[k] for _, seconds in all_of])
            constants, _ = nnls(X / y[:, None], np.ones(len(y)))
            spread = np.exp(np.std(np.log(np.maximum(X @ constants, 1e-9) / y)))
            print(f"{method:6s} {phase:8s}", " ".join(f"{c:.3g}" for c in constants), f"(spread {spread:.2f}x)")


if __name__ == "__main__":
    main(sys.argv[1:] or select(False) + select(True))
