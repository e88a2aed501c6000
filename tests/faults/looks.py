"""How long calls go without letting handlers of signals run: the longest such stretch of every phase.

    python -m faults.looks [SIZE]        (with tests/ in PYTHONPATH)

The system sends a signal every 4 ms of processor time, as if Ctrl-C came at every moment of a call.
Between two runs of the handler the thread that calls was deaf. In seconds, and in seconds of this thread's processor
time, to which others that use the machine do not add. SIZE scales the unknowns.
"""

import signal
import sys
import time

import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from gpusplu.cost.calibration import for_core
from gpusplu.engines.supernodal.plan import Limits, make_plan
from support.analyses import factor_canonical

OFTEN = 0.004  # seconds between looks: what the system's coarse clock can tell apart


class Looks:
    """Longest stretches by what was called and its phase."""

    def __init__(self):
        self.longest = {}

    def measure(self, what, call):
        at, phases = [time.perf_counter(), time.thread_time()], ["before any"]

        def note():
            now, key = [time.perf_counter(), time.thread_time()], (what, phases[-1])
            before = self.longest.get(key, (0.0, 0.0))
            self.longest[key] = tuple(max(b, n - a) for b, n, a in zip(before, now, at, strict=True))
            at[:] = now

        def tell(phase, done, total):
            if phase and phase != phases[-1]:
                note()
                phases.append(phase)

        watched, handled = _core.watch(tell, OFTEN), signal.signal(signal.SIGPROF, lambda *_: note())
        signal.setitimer(signal.ITIMER_PROF, OFTEN, OFTEN)
        try:
            result = call()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            note()
            signal.signal(signal.SIGPROF, handled)
            _core.watch(watched)
        return result

    def table(self):
        yield "| call | phase | longest without a handler | of processor time |"
        yield "|---|---|---:|---:|"
        for (what, phase), (wall, processor) in self.longest.items():
            yield f"| {what} | {phase} | {wall * 1e3:,.0f} ms | {processor * 1e3:,.0f} ms |"


def hard_to_match(n):
    """Columns with the same few rows, and entries of all sizes: searches for augmenting paths go far."""
    rng = np.random.default_rng(3)
    row = (np.arange(n)[:, None] + rng.integers(0, 3000, (n, 10))) % n
    return sp.coo_array((np.exp(rng.normal(0, 8, row.size)), (row.ravel(), np.repeat(np.arange(n), 10))), shape=(n, n))


def main(size=1.0):
    looks = Looks()
    measure = looks.measure
    side, plane = max(4, round(40 * size ** (1 / 3))), max(8, round(500 * size**0.5))
    cube, square = gallery.poisson(side, side, side), gallery.poisson(plane, plane)
    row, column = np.random.default_rng(7).integers(0, cube.shape[0], (2, int(4e6 * size)), dtype=np.int32)
    measure("canonical form", lambda: _core.canonical_from_coordinates(cube.shape[0], row, column))
    hard = hard_to_match(int(30_000 * size)).tocsc()
    measure("matching", lambda: gs.analyze(hard, engine="cpu"))
    b = np.ones((cube.shape[0], 200), order="F")
    for ordering in ("nd", "amd"):
        measure(f"analyze, {ordering}", lambda ordering=ordering: gs.analyze(cube, engine="cpu", ordering=ordering))
    for kind, options in (("LU", {"ldlt": False}), ("Cholesky", {"cholesky": True}), ("LDL^T", {"ldlt": True})):
        symbolic = gs.analyze(cube, engine="cpu", **options)
        factor = measure(f"{kind} by fronts", lambda symbolic=symbolic: symbolic.factor(cube.data))
        measure(f"{kind} by fronts, refactor", lambda factor=factor: factor.refactor(2 * cube.data))
        measure(f"{kind} by fronts, 200 solves", lambda factor=factor: factor.solve(b))
        del factor
    canonical = _core.canonical_from_columns(square.shape[0], square.indptr, square.indices)
    symbolic = _core.analyze(canonical.ptr, canonical.ind, square.data, for_core(), method="column")
    factor = measure("LU by columns", lambda: factor_canonical(symbolic, canonical, square.data))
    for which in ("first", "second"):
        measure(f"LU by columns, {which} refactor", lambda: factor.refactor(2 * square.data))
    b = np.ones((square.shape[0], 40), order="F")
    measure("LU by columns, 40 solves", lambda: factor.solve(b))
    fronts = gs.analyze(square, engine="cpu", cholesky=True).parts()
    measure(
        "plan of the supernodal engine", lambda: make_plan(fronts[1].core, fronts[0].pattern, square.dtype, Limits())
    )
    values = np.repeat(square[:2000, :2000].tocsc().data[None], int(400 * size) + 1, axis=0)
    small = sp.csc_array(square[:2000, :2000])
    batch = measure("batch", lambda: gs.splu_batch(small, values, engine="cpu"))
    measure("batch, solve", lambda: batch.solve(np.ones(2000)))
    print(*looks.table(), sep="\n")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
