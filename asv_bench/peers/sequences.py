"""Real Newton sequences: refactor and solve at every step, beside SciPy's splu and solve.

    python asv_bench/peers/sequences.py [--repeat 3]

Backward errors of the plain and the transposed system are the worst of a sequence. One that at some step is above the
larger of 1e-14 and ten times SciPy's is flagged with !.
"""

import argparse

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from common import geomean, interleaved, seconds, sequences, table
from one_shot import errors

import gpusplu as gs


def compare(name, indptr, indices, data, repeat):
    """Row of the table, ratio."""
    n = indptr.size - 1
    b = np.random.default_rng(0).normal(size=n)
    A = sp.csc_array((data[0], indices, indptr), shape=(n, n))
    lu = gs.splu(A)
    here, there, ours, scipys = [], [], [], []
    for values in data[1:]:
        A.data = values
        lu.refactor(values)
        ours.append(errors(lu, A, b))
        scipys.append(errors(scipy.sparse.linalg.splu(A), A, b))
    for values in data[1:]:
        A.data = values
        best = interleaved(
            [lambda v=values: (lu.refactor(v), lu.solve(b)), lambda: scipy.sparse.linalg.splu(A).solve(b)], repeat
        )
        here.append(best[0])
        there.append(best[1])
    ours, scipys = np.array(ours), np.array(scipys)
    wrong = np.any(ours > np.maximum(1e-14, 10 * scipys), axis=0)
    ratio = sum(there) / sum(here)
    row = [name, str(n), str(len(data) - 1), seconds(np.mean(here)), seconds(np.mean(there)), f"{ratio:.1f}"]
    for k in range(2):
        row += [f"{ours[:, k].max():.1e}{'!' if wrong[k] else ' '}", f"{scipys[:, k].max():.1e}"]
    return [*row, str(lu.stats.get("n_repivoted", ""))], ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rows, ratios = [], []
    for name, indptr, indices, data, _ in sequences():
        row, ratio = compare(name, indptr, indices, data, arguments.repeat)
        rows.append(row)
        ratios.append(ratio)
    header = ("sequence", "n", "steps", "a step", "SciPy", "ratio", "error N", "SciPy", "error T", "SciPy", "repivoted")
    print(table(header, rows))
    if ratios:
        print(f"ratio: geometric mean {geomean(ratios):.2f}, worst {min(ratios):.2f}")


if __name__ == "__main__":
    main()
