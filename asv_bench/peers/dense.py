"""Dense fronts against LAPACK and BLAS calls on the same blocks.

``python asv_bench/peers/dense.py [dtype ...]`` prints, for each front of W columns and H further rows, the speed of
``lu_front`` and ``cholesky_front`` with 1 and 2 threads, and that of getrf + 2 trsm + gemm and potrf + trsm + syrk/herk
from SciPy's BLAS with as many threads [Gflop/s]. Least of several repeats; sub-microsecond fronts include the clock.
"""

import sys
import time

import numpy as np
from scipy.linalg import blas, lapack
from threadpoolctl import threadpool_limits

from gpusplu import _core_testing

SIZES = [(1, 10), (4, 20), (8, 30), (16, 60), (32, 100), (64, 200), (150, 250), (400, 600), (1780, 558), (4000, 0)]


def flops(w, h, dtype, cholesky):
    real = 2 * w * (w * w / 3 + w * h + h * h)
    return real * (4 if np.dtype(dtype).kind == "c" else 1) / (2 if cholesky else 1)


def random(rng, dtype, *shape):
    a = rng.uniform(-0.5, 0.5, shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.uniform(-0.5, 0.5, shape)
    return np.asfortranarray(a.astype(dtype))


def least_seconds(call, repeats, *blocks):
    best = np.inf
    for _ in range(repeats):
        copies = [b.copy(order="F") for b in blocks]
        start = time.perf_counter()
        call(*copies)
        best = min(best, time.perf_counter() - start)
    return best


def lapack_lu(letter):
    getrf, trsm = getattr(lapack, letter + "getrf"), getattr(blas, letter + "trsm")
    gemm = getattr(blas, letter + "gemm")

    def call(a11, a21, ut, c):
        lu, _, _ = getrf(a11, overwrite_a=1)
        if c.size:
            l21 = trsm(1.0, lu, a21, side=1, overwrite_b=1)
            u12 = trsm(1.0, lu, ut, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
            gemm(-1.0, l21, u12, beta=1.0, c=c, trans_b=1, overwrite_c=1)

    return call


def lapack_cholesky(letter):
    potrf, trsm = getattr(lapack, letter + "potrf"), getattr(blas, letter + "trsm")
    rank_k = getattr(blas, letter + ("herk" if letter in "cz" else "syrk"))

    def call(a11, a21, c):
        factor, _ = potrf(a11, lower=1, overwrite_a=1, clean=0)
        if c.size:
            l21 = trsm(1.0, factor, a21, side=1, lower=1, trans_a=2, overwrite_b=1)
            rank_k(-1.0, l21, beta=1.0, c=c, lower=1, overwrite_c=1)

    return call


def main(dtypes):
    _core_testing.set_num_threads(2)
    rng = np.random.default_rng(0)
    for dtype in dtypes:
        letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[np.dtype(dtype).char]
        print(f"{dtype}: Gflop/s {'ours 1':>17} {'BLAS 1':>7} {'ours 2':>7} {'BLAS 2':>7}")
        for w, h in SIZES:
            panel, ut, c = random(rng, dtype, w + h, w), random(rng, dtype, h, w), random(rng, dtype, h, h)
            definite = panel.copy(order="F")
            definite[np.arange(w), np.arange(w)] = w + h
            for cholesky in (False, True):
                work = flops(w, h, dtype, cholesky)
                repeats = int(min(20000, max(4, 5e9 / work)))
                source = definite if cholesky else panel
                blocks = [np.asfortranarray(source[:w]), np.asfortranarray(source[w:]), ut, c]
                if cholesky:
                    del blocks[2]
                peer = (lapack_cholesky if cholesky else lapack_lu)(letter)
                speeds = []
                for threads in (1, 2):
                    speeds.append(work / _core_testing._time_front(cholesky, source, ut, c, repeats, threads))
                    with threadpool_limits(threads):
                        speeds.append(work / least_seconds(peer, min(repeats, 200), *blocks))
                name = "cholesky" if cholesky else "lu"
                print(f"({w:5},{h:4}) {name:9}" + " ".join(f"{s / 1e9:7.1f}" for s in speeds), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["float64"])
