"""Seconds of the analysis, stage by stage, over numbers of threads; needs no device.

    python asv_bench/device/analysis.py [--threads 1,2,4] [--repeat 2] [case or group ...]

Real matrices come from GPUSPLU_MATRICES. A line a case and number of threads: least total of the repeats, its stages.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from cases import select
from common import load

from gpusplu import _core


def analyze(A, definite):
    """Total seconds, seconds by stage, ordering and entries of L."""
    pattern = _core.canonical_from_columns(A.shape[0], A.indptr, A.indices)
    start = time.perf_counter()
    symbolic = _core.analyze(pattern.ptr, pattern.ind, A.data, cholesky=definite)
    return time.perf_counter() - start, dict(symbolic.stages), symbolic.ordering, symbolic.lnz


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="names or groups: circuit, middle, large; none means all")
    parser.add_argument("--threads", help="numbers, separated by commas; powers of two up to the cores unless given")
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    threads = [2**k for k in range(cores.bit_length())]
    if arguments.threads:
        threads = [int(number) for number in arguments.threads.split(",")]
    for case in select(arguments.cases):
        A = load(case.name)
        print(f"{case.name}: n {A.shape[0]}, nnz {A.nnz}", flush=True)
        for number in threads:
            _core.set_num_threads(number)
            total, stages, ordering, lnz = min(
                (analyze(A, case.definite) for _ in range(arguments.repeat)), key=lambda result: result[0]
            )
            parts = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in stages.items())
            print(f"  {number} threads {1e3 * total:.1f} ms: {parts}; {ordering}, nnz(L) {lnz}", flush=True)
    _core.set_num_threads(0)


if __name__ == "__main__":
    main()
