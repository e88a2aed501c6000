"""Cost of comparing both triangles of new values in `refactor`: the same build with and without the comparison.

usage: symmetry_check.py [THREADS ...]. Wall time of alternating calls, medians.
"""

import sys
import time

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery


def definite_like(M):
    """A diagonally dominant matrix with the pattern of M + M^T."""
    S = abs(sp.csc_array(M))
    S = -sp.csc_array(S + S.T)
    S.setdiag(0)
    S.eliminate_zeros()
    A = sp.csc_array(S + sp.diags_array(-np.asarray(S.sum(axis=1)).ravel() + 1e-3 * abs(S).max()))
    A.sort_indices()
    return A


def measure(A, make, seconds=1.5):
    """Median seconds of `refactor` with the comparison and without, and the number of pairs of calls."""
    factor = make(A, engine="cpu")
    values = A.data.copy()
    factor.refactor(values)
    factor.refactor(values)
    core, symbolic = factor.parts()
    _, source = symbolic.parts()[0].pattern.direct_map(values.dtype)
    times = [], []
    end, pairs = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for checked in (0, 1) if pairs % 2 else (1, 0):
            start = time.perf_counter()
            core.refactor(values, source, bool(checked))
            times[checked].append(time.perf_counter() - start)
        pairs += 1
    return *map(np.median, times), pairs


def main():
    cases = {
        "circuit, n 11,790": definite_like(gallery.rlc_mesh(77, 77)),
        "poisson:300x300": gallery.poisson(300, 300),
        "poisson:300x300, CSR": sp.csr_array(gallery.poisson(300, 300)),
        "elast:10": gallery.elasticity(10, 10, 10),
    }
    for threads in map(int, sys.argv[1:] or ["1", "2"]):
        _core.set_num_threads(threads)
        for name, A in cases.items():
            for make in (gs.cholesky, gs.ldlt):
                compared, not_compared, pairs = measure(A, make)
                print(
                    f"{threads} threads {name:22} {make.__name__:9} with {1e3 * compared:.3f} ms, "
                    f"without {1e3 * not_compared:.3f} ms: ratio {compared / not_compared:.3f} ({pairs} pairs)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
