"""What the comparisons share: where matrices and peers are, timing, means, tables."""

import csv
import gc
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gpusplu import gallery
from gpusplu.cli.report import backward_error, describe, seconds, table

__all__ = [
    "backward_error",
    "best",
    "describe",
    "geomean",
    "interleaved",
    "load",
    "one_of",
    "our_phases",
    "peers_module",
    "print_phases",
    "seconds",
    "select",
    "sequences",
    "table",
    "timed",
]

MATRICES = Path(os.environ.get("GPUSPLU_MATRICES", Path(__file__).resolve().parents[3] / "shared" / "matrices"))


def load(case):
    """A real matrix by its name, or a generated one by that of `gpusplu.gallery.named`; canonical CSC."""
    if ":" in case:
        return gallery.named(case)
    A = sp.csc_array(sp.load_npz(MATRICES / f"{case}.npz"))
    A.sum_duplicates()
    return A


def one_of(case):
    """What `load` returns, or the first matrix of a sequence by the name of its file."""
    for name, indptr, indices, data, _ in sequences() if case.endswith("_seq") else ():
        if case == f"{name}_seq":
            return sp.csc_array((data[0], indices, indptr), shape=(len(indptr) - 1,) * 2)
    return load(case).tocsc()


def select(definite):
    """Names of the real matrices that are, or are not, symmetric positive definite, by falling size."""
    with (MATRICES / "INDEX.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["spd"].startswith(("yes", "likely")) == definite]
    return [row["name"] for row in sorted(rows, key=lambda row: -int(row["nnz"]))]


def sequences():
    """Name, pattern (indptr, indices), values (nmat, nnz) and tags of each real Newton sequence."""
    folder = Path(os.environ.get("GPUSPLU_SEQUENCES", MATRICES.parent / "sequences"))
    for path in sorted(folder.glob("*_seq.npz")):
        with np.load(path) as file:
            yield path.stem.removesuffix("_seq"), file["indptr"], file["indices"], file["data"], file["tags"]


def timed(function):
    """Seconds and result of one call, without a garbage collection inside."""
    gc.collect()
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def interleaved(functions, repeat):
    """Least seconds of each function, taking turns so that a noisy moment hits them all."""
    best = [float("inf")] * len(functions)
    for _ in range(repeat):
        for k, function in enumerate(functions):
            best[k] = min(best[k], timed(function)[0])
    return best


def best(function, repeat):
    """Least seconds of one function called again and again, as a simulator does: caches and threads stay warm."""
    gc.collect()
    least = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - start)
    return least


def geomean(ratios):
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def peers_module(name):
    """A module of the folder of peers: GPUSPLU_PEERS, or where that module is, else `peers` next to the matrices."""
    folder = os.environ.get("GPUSPLU_PEERS", str(MATRICES.parent / "peers"))
    folder = str(Path(folder).parent) if folder.endswith(".py") else folder
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return __import__(name)


PHASES = ("analyze", "factor", "refactor", "solve")


def our_phases(A, b, repeat, cholesky):
    """Our seconds of each phase and the backward error, keys as those of the peers."""
    import gpusplu as gs

    factorize = gs.cholesky if cholesky else gs.splu
    factor = factorize(A)  # also starts threads
    factor.refactor(A.data)
    return {
        "analyze": best(lambda: gs.analyze(A, cholesky=cholesky), min(repeat, 3)),
        "factor": best(lambda: factor.symbolic.factor(A), min(repeat, 3)),
        "refactor": best(lambda: factor.refactor(A.data), repeat),
        "solve": best(lambda: factor.solve(b), repeat),
        "backward_error": backward_error(A, factor.solve(b), b),
    }


def print_phases(peer, results):
    """Table of (case, n, our phases, the peer's phases); ratios are the peer's seconds over ours."""
    rows, ratios = [], []
    for case, n, here, there in results:
        ratios.append([there[phase] / here[phase] for phase in PHASES])
        row = [case, str(n)]
        for phase, ratio in zip(PHASES, ratios[-1], strict=True):
            row += [seconds(here[phase]), seconds(there[phase]), f"{ratio:.2f}"]
        rows.append([*row, f"{here['backward_error']:.1e}", f"{there['backward_error']:.1e}"])
    columns = [cell for phase in PHASES for cell in (phase, peer, "ratio")]
    print(table(("matrix", "n", *columns, "error", peer), rows))
    means = zip(PHASES, zip(*ratios, strict=True), strict=True)
    print("geometric means: " + ", ".join(f"{phase} {geomean(values):.2f}" for phase, values in means))
