"""Column LU against KLU on the real unsymmetric matrices: factor, refactor and solve, same ordering, same process.

    SS=/path/to/libssshim.so python asv_bench/peers/klu.py [name ...] [--threads 1,2] [--repeat 20]

The shim (see shared/peers/suitesparse_shim.c) times KLU. Both engines get KLU's own block triangular form and ordering
(klu_analyze), power-of-two row scaling on our side and max scaling on KLU's. Times are the best of the repeats [s].
"""

import argparse
import ctypes
import os

import numpy as np
from common import backward_error, best, geomean, load

from gpusplu import _core

NAMES = [
    "arc130",
    "fs_183_6",
    "steam2",
    "reorientation_1",
    "bp_1000",
    "cage8",
    "orsirr_1",
    "sherman2",
    "rajat19",
    "nnc1374",
    "2dcyl1",
    "adder_dcop_05",
    "add20",
    "sherman5",
    "ginkgo_mc64_example",
    "case3375wp_nrjac",
    "bayer10",
    "memplus",
    "case_ACTIVSg10k_nrjac",
    "faer_matrix_n19168",
    "anemometer1_A1",
    "ibmpg1t_mna_tran",
]
INT_P = ctypes.POINTER(ctypes.c_int)


class KluSymbolic(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_double) for name in ("symmetry", "est_flops", "lnz", "unz")]
        + [("Lnz", ctypes.POINTER(ctypes.c_double)), ("n", ctypes.c_int), ("nz", ctypes.c_int)]
        + [("P", INT_P), ("Q", INT_P), ("R", INT_P), ("nzoff", ctypes.c_int), ("nblocks", ctypes.c_int)]
    )


class Klu:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.klu_analyze.restype = ctypes.POINTER(KluSymbolic)
        self.common = (ctypes.c_char * 4096)()
        self.lib.klu_defaults(self.common)

    @staticmethod
    def arrays(A):
        return A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data

    def analyze(self, A):
        """Row permutation, column permutation (gather) and block boundaries."""
        ptr, ind, _ = self.arrays(A)
        n = A.shape[0]
        symbolic = self.lib.klu_analyze(n, ptr.ctypes.data_as(INT_P), ind.ctypes.data_as(INT_P), self.common)
        if not symbolic:
            raise RuntimeError("klu_analyze failed")
        s = symbolic.contents
        row_perm, col_perm = (np.ctypeslib.as_array(p, (n,)).copy() for p in (s.P, s.Q))
        return row_perm, col_perm, np.ctypeslib.as_array(s.R, (s.nblocks + 1,)).copy()

    def bench(self, A, b, repeat):
        """{'factor', 'refactor', 'solve'} [s]; refactor and solve are the best of `repeat`."""
        ptr, ind, values = self.arrays(A)
        times, info, x = (ctypes.c_double * 8)(), (ctypes.c_double * 8)(), b.copy()
        address = [a.ctypes.data_as(ctypes.c_void_p) for a in (ptr, ind, values, x)]
        status = self.lib.bench_klu(A.shape[0], *address, repeat, times, info)
        if status:
            raise RuntimeError(f"KLU: status {status}")
        return {"factor": times[1], "refactor": times[2], "solve": times[3]}


def row_scale(A):
    largest = abs(A).max(axis=1).toarray().ravel()
    return np.exp2(-np.round(np.log2(np.where(largest > 0, largest, 1.0))))


def ours(A, b, analysis, repeat, threads):
    _core.set_num_threads(threads)
    row_perm, col_perm, blocks = analysis
    lu = _core.ColumnLU_d(
        A.indptr.astype(np.int64), A.indices.astype(np.int32), row_perm, col_perm, blocks, row_scale(A), np.empty(0)
    )
    factor = best(lambda: lu.factor(A.data, 0.001), 3)
    refactor = best(lambda: lu.refactor(A.data), repeat)
    if (status := lu.refactor(A.data)["status"]) != "ok":
        raise RuntimeError(f"refactor: {status}")
    rhs, x = b[None, :].copy(), np.empty((1, len(b)))
    solve = best(lambda: lu.solve(rhs, x), repeat)
    return {"factor": factor, "refactor": refactor, "solve": solve, "error": backward_error(A, x[0], b)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    if "SS" not in os.environ:
        raise SystemExit("klu.py: set SS to libssshim.so (shared/peers/suitesparse_shim.c)")
    klu = Klu(os.environ["SS"])
    threads = [int(t) for t in args.threads.split(",")]
    phases = ("factor", "refactor", "solve")
    ratios = {(phase, t): [] for phase in phases for t in threads}
    print(f"{'milliseconds; ratio = KLU / ours':34}" + "".join(f"{p:>9} {'(KLU)':>9} {'ratio':>5}" for p in phases))
    for name in args.names:
        A = load(name)
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        try:
            peer, analysis = klu.bench(A, b, args.repeat), klu.analyze(A)
        except RuntimeError as error:
            print(f"{name:24} {error}")
            continue
        for t in threads:
            mine = ours(A, b, analysis, args.repeat, t)
            line = f"{name:24} {t} thread{'s' * (t > 1):1} "
            for phase in phases:
                ratio = peer[phase] / mine[phase]
                ratios[phase, t].append(ratio)
                line += f"{mine[phase] * 1e3:9.4f} {peer[phase] * 1e3:9.4f} {ratio:5.2f}"
            print(f"{line}  error {mine['error']:.1e}", flush=True)
    for t in threads:
        means = ", ".join(f"{p} {geomean(ratios[p, t]):.2f}" for p in phases)
        print(f"geometric mean of KLU / ours, {t} thread{'s' * (t > 1)}: {means}")


if __name__ == "__main__":
    main()
