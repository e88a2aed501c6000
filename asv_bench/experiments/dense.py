"""Dense fronts compared with LAPACK and BLAS calls on the same blocks, with 1 and 2 threads.

Cases are fronts of W columns and H further rows, WxH; number types are `--dtypes`. Least seconds of several repeats of
`lu_front` and `cholesky_front`, and of getrf + 2 trsm + gemm and potrf + trsm + syrk/herk of SciPy's BLAS; fronts of
less than a microsecond include the clock.
"""

import time
from itertools import product

import numpy as np

from .. import internals, records
from ..options import measured, names, present
from ..peers.packages import LAPACK

CASES = ("1x10", "4x20", "8x30", "16x60", "32x100", "64x200", "150x250", "400x600", "1780x558", "4000x0")
PEERS, BUDGET = ("lapack",), 0.0
THREADS = (1, 2)


def add_arguments(parser):
    parser.add_argument("--dtypes", type=names, default=["float64"], help="names joined by commas")


def flops(w, h, dtype, cholesky):
    real = 2 * w * (w * w / 3 + w * h + h * h)
    return real * (4 if np.dtype(dtype).kind == "c" else 1) / (2 if cholesky else 1)


def random(rng, dtype, *shape):
    a = rng.uniform(-0.5, 0.5, shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.uniform(-0.5, 0.5, shape)
    return np.asfortranarray(a.astype(dtype))


def least_seconds(call, repeats, *blocks):
    least = np.inf
    for _ in range(repeats):
        copies = [block.copy(order="F") for block in blocks]
        start = time.perf_counter()
        call(*copies)
        least = min(least, time.perf_counter() - start)
    return least


def compare(w, h, dtype, cholesky, threads, beside):
    """Our seconds, the peer's and flops of one front."""
    rng = np.random.default_rng(0)
    panel, ut, c = random(rng, dtype, w + h, w), random(rng, dtype, h, w), random(rng, dtype, h, h)
    if cholesky:
        panel[np.arange(w), np.arange(w)] = w + h
    work = flops(w, h, dtype, cholesky)
    repeats, there = int(min(20000, max(4, 5e9 / work))), None
    here = internals.time_front(cholesky, panel, ut, c, repeats, threads)
    if beside:
        from threadpoolctl import threadpool_limits

        blocks = [np.asfortranarray(panel[:w]), np.asfortranarray(panel[w:]), *(() if cholesky else (ut,)), c]
        with threadpool_limits(threads):
            there = least_seconds(LAPACK().front(cholesky, dtype), min(repeats, 200), *blocks)
    return here, there, work


def run(arguments):
    internals.set_num_threads(max(THREADS))
    beside = "lapack" in present(arguments)
    yield from measured(arguments, arguments.cases, lambda case: of_case(case, arguments.dtypes, beside))


def of_case(case, dtypes, beside):
    """A record of every number type, kind and number of threads."""
    w, h = map(int, case.split("x"))
    for dtype, cholesky, threads in product(dtypes, (False, True), THREADS):
        kind = "cholesky" if cholesky else "lu"
        here, there, work = compare(w, h, dtype, cholesky, threads, beside)
        more = {"variant": f"{kind}, {dtype}, threads: {threads}", "flops": work}
        yield records.make(case, "cpu", "factor", here, "lapack" if beside else "none", there, **more)
