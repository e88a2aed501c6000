"""Constants of the model of crisscross LU (gpusplu/plans/crisscross_model.py) from records of crisscross.py.

    python asv_bench/device/crisscross_fit.py records.jsonl

Prints the constants, and what they are worth: for each case those that all other cases ask for choose a corner; what
that takes, between the corners that were measured, is set against none at all and the best. No device is needed.
"""

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import numpy as np
from common import geomean, one_of
from scipy.optimize import least_squares

import gpusplu as gs
from gpusplu import _core, matrix
from gpusplu.plans.columns import make_column_plan
from gpusplu.plans.crisscross_model import H200, CornerCosts, predict_divisions


def plan_of(case, ordering):
    """As the engine makes it before columns are moved."""
    A = one_of(case)
    pattern = gs.analyze(A, engine="cpu")._pattern
    values = matrix.values_for(pattern, A.data, False)
    core = _core.analyze_columns(pattern.ptr, pattern.ind, values, ordering=ordering, perm=None, matching=True)
    cpu = _core.factor(core, pattern.core, values, pivot_threshold=0.1, pivoting="auto", refine="auto")
    scales = cpu.symbolic.row_scale, cpu.symbolic.col_scale
    return make_column_plan(pattern, cpu.row_perm, cpu.col_perm, *scales)


def measured(paths):
    """(case, ordering, rows by falling division, plan) of all records."""
    records = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for (case, ordering), rows in groupby(records, key=lambda row: (row["case"], row["ordering"])):
        rows = {row["corner"]: row for row in rows}
        yield case, ordering, [rows[corner] for corner in sorted(rows)], plan_of(case, ordering)


def errors(rows, plan, costs):
    """Logarithms of predicted over measured seconds: of the columns, with the corner's, and of the corner's front."""
    curves = predict_divisions(plan, "d", division=plan.n - np.array([row["corner"] for row in rows]), costs=costs)
    columns, sparse, factor = (np.array([row[name] for row in rows]) for name in ("columns_s", "sparse_s", "factor_s"))
    some = curves.dense > 0
    of_front = np.log(curves.dense[some] / np.maximum(factor - sparse, 1e-6)[some])
    return np.concatenate((np.log(curves.columns / columns), np.log(curves.sparse / sparse), of_front))


def fit(found, start=H200, steps=15):
    """Constants with the least squares of these errors, outliers counting little."""

    def all_errors(logarithms):
        return np.concatenate([errors(rows, plan, CornerCosts(*np.exp(logarithms))) for _, _, rows, plan in found])

    start = np.log(np.maximum(start, 1e-12))  # a constant may be zero
    best = least_squares(all_errors, start, max_nfev=steps, loss="soft_l1", f_scale=0.2)
    before, after = (float(np.sqrt(np.mean(all_errors(x) ** 2))) for x in (start, best.x))
    return CornerCosts(*(float(f"{cost:.2g}") for cost in np.exp(best.x))), before, after


def seconds_at(rows, corner):
    """Of a factorization, between measurements."""
    return float(np.interp(corner, [row["corner"] for row in rows], [row["factor_s"] for row in rows]))


def validate(found, costs):
    """Ratios of none to the corner that the others' constants choose, a line each."""
    ratios = []
    for here in found:
        case, ordering, rows, plan = here
        others = [other for other in found if other[0] != case]
        curves = predict_divisions(plan, "d", costs=fit(others, costs, 4)[0])
        corner, best = plan.n - curves.best, min(rows, key=lambda row: row["factor_s"])
        without = rows[0]["factor_s"]
        ratios.append((without / seconds_at(rows, corner), without / best["factor_s"]))
        print(
            f"{case:24s} {ordering:5s} none {1e6 * without:7.1f}  chosen {corner:4d} {ratios[-1][0]:5.2f} times  "
            f"best {best['corner']:4d} {ratios[-1][1]:5.2f}",
            flush=True,
        )
    chosen, best = zip(*ratios, strict=True)
    some = [ratio for ratio in chosen if ratio != 1]
    print(f"geometric mean {geomean(chosen):.2f}, of {len(some)} with a corner {geomean(some):.2f}, ", end="")
    print(f"at best {geomean(best):.2f}; least {min(chosen):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="+", type=Path)
    found = list(measured(parser.parse_args().records))
    costs, before, after = fit(found)
    print(costs)
    print(f"rms of logarithms {before:.2f} -> {after:.2f}")
    validate(found, costs)
