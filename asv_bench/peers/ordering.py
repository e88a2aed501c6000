"""Nested dissection against METIS (pymetis): seconds with 1 and 2 threads, and entries of the Cholesky factor.

    python asv_bench/peers/ordering.py [--repeat 3] [case ...]

Cases are real matrices by name (GPUSPLU_MATRICES, else ../shared/matrices) or generated ones, named as for
gallery.named. Both orderings get the same symmetrized graph, whose making is not timed. Times are minima over
the repeats, which alternate between the two.
"""

import argparse

import numpy as np
import pymetis
import scipy.sparse as sp
from common import geomean, load, timed

from gpusplu import _core_testing

DEFAULT = [
    "G3_circuit",
    "ibmpg1t_mna_tran",
    "ibmpg2t_mna_tran",
    "ibmpg2t_spd_tran",
    "rlc:700x700",
    "poisson:1000x1000",
    "poisson:80x80x80",
    "elast:40x40x40",
    "cotlap_armadillo",
    "anemometer1_A1",
    "case_ACTIVSg10k_nrjac",
    "memplus",
    "bcsstk18",
]
LARGE = 50_000  # unknowns from which a case counts in the means


def graph_of(a):
    """ptr (int64) and ind (int32) of A + A^T without its diagonal."""
    a = sp.csc_array((np.ones(a.nnz, np.int8), a.indices, a.indptr), shape=a.shape)
    a.sum_duplicates()
    ptr, ind = _core_testing.symmetrize(a.indptr.astype(np.int64), a.indices.astype(np.int32))
    return np.asarray(ptr), np.asarray(ind)


def compare(case, repeat):
    """Row of the table: n, best seconds of METIS and ours with 1 and 2 threads, entries of L relative to METIS's."""
    ptr, ind = graph_of(load(case))
    adjacency = pymetis.CSRAdjacency(ptr.astype(np.int32), ind)
    metis, one, two = [], [], []
    for _ in range(repeat):
        seconds, (metis_perm, _) = timed(lambda: pymetis.nested_dissection(adjacency))
        metis.append(seconds)
        seconds, perm = timed(lambda: _core_testing.nested_dissection(ptr, ind, threads=2))
        two.append(seconds)
        seconds, _ = timed(lambda: _core_testing.nested_dissection(ptr, ind, threads=1))
        one.append(seconds)
    lnz, flops, levels = _core_testing.ordering_cost(ptr, ind, perm)
    metis_lnz, metis_flops, metis_levels = _core_testing.ordering_cost(ptr, ind, np.asarray(metis_perm, np.int32))
    return len(ptr) - 1, min(metis), min(one), min(two), lnz / metis_lnz, flops / metis_flops, levels / metis_levels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=DEFAULT)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    _core_testing.set_num_threads(2)
    print(f"{'case':24}{'n':>9}{'METIS s':>9}{'1 thread':>16}{'2 threads':>16}{'nnz(L)':>8}{'flops':>7}{'levels':>7}")
    rows = []
    for case in arguments.cases:
        n, metis, one, two, lnz, flops, levels = compare(case, arguments.repeat)
        print(f"{case:24}{n:9}{metis:9.3f}{one:8.3f} ({one / metis:4.2f}x){two:8.3f} ({two / metis:4.2f}x)"
              f"{lnz:8.3f}{flops:7.3f}{levels:7.2f}", flush=True)  # fmt: skip
        if n >= LARGE:
            rows.append((one / metis, two / metis, lnz, flops, levels))
    if rows:
        one, two, lnz, flops, levels = map(geomean, zip(*rows, strict=True))
        print(f"geometric mean above {LARGE} unknowns: {one:.2f}x with 1 thread, {two:.2f}x with 2, nnz(L) {lnz:.3f}, "
              f"flops {flops:.3f}, levels {levels:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
