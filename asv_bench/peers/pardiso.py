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
from common import load, our_phases, peers_module, print_phases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["G3_circuit", "elast:20x20x20"])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    peer, library = peers_module("pardiso"), ctypes.CDLL(os.environ["MKL"])
    results = []
    for case in arguments.cases:
        A = load(case)
        b = np.random.default_rng(0).normal(size=A.shape[0])
        here = our_phases(A, b, arguments.repeat, cholesky=True)
        results.append((case, A.shape[0], here, peer.bench(library, A, b, spd=True)))
        time.sleep(0.5)
    print_phases("PARDISO", results)


if __name__ == "__main__":
    main()
