"""One factorization and one solve, beside SciPy's splu, over the real unsymmetric matrices.

    python asv_bench/peers/one_shot.py [--repeat 3] [case ...]

Prints seconds of splu + solve, SciPy's over ours, and backward errors of A x = b and of the transposed system. An error
is flagged with ! where it is above the larger of 1e-14 and ten times SciPy's.
"""

import argparse

import numpy as np
import scipy.sparse.linalg
from common import backward_error, describe, geomean, interleaved, load, seconds, select, table

import gpusplu as gs


def errors(factor, A, b):
    """Backward errors of the plain and the transposed solve."""
    return backward_error(A, factor.solve(b), b), backward_error(A.T, factor.solve(b, "T"), b)


def flagged(ours, scipys):
    """Our error, and whether it is too large."""
    return f"{ours:.1e}{' ' if ours <= max(1e-14, 10 * scipys) else '!'}"


def unsolvable(A, b):
    """Whether splu refuses A as singular and SciPy has no solution either."""
    try:
        gs.splu(A)
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
    else:
        return False
    try:
        return not max(errors(scipy.sparse.linalg.splu(A), A, b)) < 1e-8
    except RuntimeError:
        return True


def compare(case, repeat):
    """Row of the table, and the ratio; None where the matrix is singular."""
    A = load(case)
    b = np.random.default_rng(0).normal(size=A.shape[0]).astype(A.dtype)
    if unsolvable(A, b):
        return [case, str(A.shape[0]), "singular", *[""] * 6], None
    ours = errors(gs.splu(A), A, b)  # also warms up
    scipys = errors(scipy.sparse.linalg.splu(A), A, b)
    here, there = interleaved([lambda: gs.splu(A).solve(b), lambda: scipy.sparse.linalg.splu(A).solve(b)], repeat)
    row = [case, str(A.shape[0]), seconds(here), seconds(there), f"{there / here:.2f}"]
    for own, other in zip(ours, scipys, strict=True):
        row += [flagged(own, other), f"{other:.1e}"]
    return row, there / here


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rows, ratios, failed = [], [], 0
    for case in arguments.cases or select(definite=False):
        try:
            row, ratio = compare(case, arguments.repeat)
            ratios += [] if ratio is None else [ratio]
        except Exception as error:  # a matrix that cannot be solved is a finding, not the end
            failed += 1
            row = [case, "", f"{type(error).__name__}: {describe(error)}"[:60], *[""] * 6]
        rows.append(row)
    print(table(("matrix", "n", "gpusplu", "SciPy", "ratio", "error N", "SciPy", "error T", "SciPy"), rows))
    if ratios:
        print(f"ratio: geometric mean {geomean(ratios):.2f}, worst {min(ratios):.2f} ({len(ratios)} matrices)")
    print(f"failed {failed}, flagged {sum(cell.endswith('!') for row in rows for cell in row)}")


if __name__ == "__main__":
    main()
