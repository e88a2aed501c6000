"""Approximate minimum degree: ours against SuiteSparse's, on A + A^T of the real matrices.

    python asv_bench/peers/amd.py [CASE ...] [--repeat 20] [--library libamd.so.2]

Ratios are ours over theirs: below 1 is faster, less fill. Cases: names of real matrices, or gallery names.
"""

import argparse
import ctypes

import numpy as np
from common import geomean, interleaved, load, seconds, select, table

from gpusplu import _core_testing


def compare(name, library, repeat):
    """Row of the table, ratio of seconds, ratio of nnz(L)."""
    A = load(name)
    n = A.shape[0]
    ptr, ind = _core_testing.symmetrize(A.indptr.astype(np.int64), A.indices.astype(np.int32))
    ptr32, theirs = ptr.astype(np.int32), np.empty(n, np.int32)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (ptr32, ind, theirs)]

    def peer():
        status = library.amd_order(ctypes.c_int(n), *pointers, None, None)
        if status < 0:
            raise RuntimeError(f"amd_order returned {status}")

    here, there = interleaved([lambda: _core_testing.amd(ptr, ind), peer], max(3, min(repeat, int(4e7 / ind.size))))
    lnz = [_core_testing.ordering_cost(ptr, ind, perm)[0] for perm in (_core_testing.amd(ptr, ind), theirs)]
    time_ratio, fill_ratio = here / there, lnz[0] / lnz[1]
    row = [name, str(n), str(ind.size), seconds(here), seconds(there), f"{time_ratio:.2f}"]
    return [*row, f"{lnz[0]:.4g}", f"{fill_ratio:.3f}"], time_ratio, fill_ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--library", default="libamd.so.2")
    arguments = parser.parse_args()
    library = ctypes.CDLL(arguments.library)
    cases = arguments.cases or select(definite=False) + select(definite=True)
    rows, times, fills = [], [], []
    for name in cases:
        row, time_ratio, fill_ratio = compare(name, library, arguments.repeat)
        rows.append(row)
        times.append(time_ratio)
        fills.append(fill_ratio)
    print(table(("case", "n", "nnz", "ours", "SuiteSparse", "time", "nnz(L)", "fill"), rows))
    print(f"time: geometric mean {geomean(times):.2f}, worst {max(times):.2f}")
    print(f"fill: geometric mean {geomean(fills):.3f}, worst {max(fills):.3f}")


if __name__ == "__main__":
    main()
