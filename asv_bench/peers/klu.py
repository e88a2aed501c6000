"""splu beside KLU on the real unsymmetric matrices: analysis, factorization, refactorization and solve.

    SS=/path/of/libssshim.so python asv_bench/peers/klu.py [--threads 2] [--repeat 20] [matrix ...]

The shim is built from shared/peers/suitesparse_shim.c; KLU has one thread. Ratios are KLU's seconds over ours: the
least of the repeats for refactor and solve, KLU's one analysis and factorization against the least of three of ours.
"""

import argparse
import os

import numpy as np
from common import load, our_phases, peers_module, print_phases, select


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    if not os.path.exists(os.environ.get("SS", "")):
        print("no KLU: set SS to libssshim.so (shared/peers/suitesparse_shim.c)")
        return
    os.environ["GPUSPLU_NUM_THREADS"] = str(arguments.threads)  # read when the core first starts threads
    peer = peers_module("peers").SuiteSparse()
    results = []
    for name in arguments.matrices or select(False):
        A = load(name)
        if np.iscomplexobj(A):
            continue
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        there = peer.bench("klu", A, b)
        if "status" in there:
            print(f"{name}: KLU's status is {there['status']}")
            continue
        results.append((name, A.shape[0], our_phases(A, b, arguments.repeat, cholesky=False), there))
    print_phases("KLU", results)


if __name__ == "__main__":
    main()
