"""Cholesky beside CHOLMOD (supernodal, OpenBLAS): analysis, refactorization and solve of positive definite matrices.

    SS=/path/of/libssshim.so python asv_bench/peers/cholmod.py [--threads 2] [--repeat 5] [case ...]

The shim is built from shared/peers/suitesparse_shim.c. Ratios are CHOLMOD's seconds over ours, of the least of the
repeats. Its BLAS threads spin for a while after a call, so there is a pause before ours.
"""

import argparse
import os
import time

import numpy as np
from common import backward_error, geomean, load, peers_module, seconds, table, timed

PHASES = ("analyze", "refactor", "solve")
CASES = [
    *("1138_bus", "bcsstk26", "bcsstk16", "bcsstk18", "fv2", "bodyy4", "Dubcova1", "rail_20209_negA"),
    *("cotlap_armadillo", "ibmpg2t_spd_tran", "G3_circuit", "elast:20x20x20"),
]


def ours(gs, A, b, repeat):
    """Seconds of each phase and the backward error, keys as the peer's."""
    analyze, symbolic = timed(lambda: gs.analyze(A, cholesky=True))
    factor = symbolic.factor(A.data)
    refactor = min(timed(lambda: factor.refactor(A.data))[0] for _ in range(repeat))
    solve = min(timed(lambda: factor.solve(b))[0] for _ in range(repeat))
    return {"analyze": analyze, "refactor": refactor, "solve": solve, "error": backward_error(A, factor.solve(b), b)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    if not os.path.exists(os.environ.get("SS", "")):
        print("no CHOLMOD: set SS to libssshim.so (shared/peers/suitesparse_shim.c)")
        return
    for name in ("GPUSPLU_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when the libraries are loaded
        os.environ[name] = str(arguments.threads)
    import gpusplu as gs

    peer = peers_module("peers").SuiteSparse()
    rows, ratios = [], []
    for case in arguments.cases:
        A = load(case)
        b = np.random.default_rng(0).normal(size=A.shape[0])
        there = peer.bench("cholmod", A, b)
        time.sleep(0.3)
        here = ours(gs, A, b, arguments.repeat)
        ratios.append([there[phase] / here[phase] for phase in PHASES])
        row = [case, str(A.shape[0])]
        for phase, ratio in zip(PHASES, ratios[-1], strict=True):
            row += [seconds(here[phase]), seconds(there[phase]), f"{ratio:.2f}"]
        rows.append([*row, f"{here['error']:.1e}", f"{there['backward_error']:.1e}"])
    columns = [cell for phase in PHASES for cell in (phase, "CHOLMOD", "ratio")]
    print(table(("matrix", "n", *columns, "error", "CHOLMOD"), rows))
    means = zip(PHASES, zip(*ratios, strict=True), strict=True)
    print("geometric means: " + ", ".join(f"{phase} {geomean(values):.2f}" for phase, values in means))


if __name__ == "__main__":
    main()
