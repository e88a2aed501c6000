"""Cholesky beside MKL PARDISO: analysis, refactorization and solve of symmetric positive definite matrices.

    MKL=/path/of/libmkl_rt.so.2 MKL_NUM_THREADS=2 python asv_bench/peers/pardiso.py [--repeat 3] [case ...]

pypardiso's wheels bring the library. Ratios are PARDISO's seconds over ours. The two do not take turns here: PARDISO's
threads spin for a while after a call and would slow the other down, so there is a pause between them.
"""

import argparse
import ctypes
import os
import time

import numpy as np
from common import backward_error, geomean, load, peers_module, seconds, table, timed

import gpusplu as gs

PHASES = ("analyze", "refactor", "solve")


def ours(A, b, repeat):
    """Seconds of each phase and the backward error, keys as the peer's."""
    analyze, symbolic = timed(lambda: gs.analyze(A, cholesky=True))
    factor = symbolic.factor(A.data)
    refactor = min(timed(lambda: factor.refactor(A.data))[0] for _ in range(repeat))
    solve = min(timed(lambda: factor.solve(b))[0] for _ in range(repeat))
    error = backward_error(A, factor.solve(b), b)
    return {"analyze": analyze, "refactor": refactor, "solve": solve, "backward_error": error}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["G3_circuit", "elast:20x20x20"])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    peer, library = peers_module("pardiso"), ctypes.CDLL(os.environ["MKL"])
    rows, ratios = [], []
    for case in arguments.cases:
        A = load(case)
        b = np.random.default_rng(0).normal(size=A.shape[0])
        here = ours(A, b, arguments.repeat)
        there = peer.bench(library, A, b, spd=True)
        time.sleep(0.5)
        ratios.append([there[phase] / here[phase] for phase in PHASES])
        row = [case, str(A.shape[0])]
        for phase, ratio in zip(PHASES, ratios[-1], strict=True):
            row += [seconds(here[phase]), seconds(there[phase]), f"{ratio:.2f}"]
        rows.append([*row, f"{here['backward_error']:.1e}", f"{there['backward_error']:.1e}"])
    columns = [cell for phase in PHASES for cell in (phase, "PARDISO", "ratio")]
    print(table(("matrix", "n", *columns, "error", "PARDISO"), rows))
    means = zip(PHASES, zip(*ratios, strict=True), strict=True)
    print("geometric means: " + ", ".join(f"{phase} {geomean(values):.2f}" for phase, values in means))


if __name__ == "__main__":
    main()
