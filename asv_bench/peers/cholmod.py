"""Cholesky beside CHOLMOD (supernodal, OpenBLAS): analysis, refactorization and solve of positive definite matrices.

    SS=/path/of/libssshim.so python asv_bench/peers/cholmod.py [--threads 2] [--repeat 5] [case ...]

The shim is built from shared/peers/suitesparse_shim.c. Ratios are CHOLMOD's seconds over ours, of the least of the
repeats. Its BLAS threads spin for a while after a call, so there is a pause before ours.
"""

import argparse
import os
import time

import numpy as np
from common import load, our_phases, peers_module, print_phases

CASES = [
    *("1138_bus", "bcsstk26", "bcsstk16", "bcsstk18", "fv2", "bodyy4", "Dubcova1", "rail_20209_negA"),
    *("cotlap_armadillo", "ibmpg2t_spd_tran", "G3_circuit", "elast:20x20x20"),
]


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
    peer = peers_module("peers").SuiteSparse()
    results = []
    for case in arguments.cases:
        A = load(case)
        b = np.random.default_rng(0).normal(size=A.shape[0])
        there = peer.bench("cholmod", A, b)
        time.sleep(0.3)
        results.append((case, A.shape[0], our_phases(A, b, arguments.repeat, cholesky=True), there))
    print_phases("CHOLMOD", results)


if __name__ == "__main__":
    main()
