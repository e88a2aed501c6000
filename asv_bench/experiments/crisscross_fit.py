"""Constants of the model of crisscross, fitted to records of the experiment crisscross; needs no device.

Prints the constants with the least squares, and evaluates them: for each case, the constants fitted to all other cases
choose a trailing block; its seconds, interpolated between the measured blocks, are a record (`ours_s`), with those
without a block (`unblocked_s`) and of the best block (`best_s`).
"""

from itertools import groupby
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from .. import internals, records
from ..internals import TrailingCosts, predict_divisions
from ..matrices import load
from ..options import note

CASES, PEERS, BUDGET = (), (), 0.0


def add_arguments(parser):
    parser.add_argument("--records", nargs="+", type=Path, default=records.files("crisscross"))


def measured(found, cases):
    """(case, ordering, rows by falling division, plan) of all records, or of those of some cases."""
    for (case, ordering), rows in groupby(found, key=lambda row: (row["case"], row["ordering"])):
        if not cases or case in cases:
            rows = {row["trailing"]: row for row in rows}
            yield case, ordering, [rows[size] for size in sorted(rows)], internals.column_plan(load(case), ordering)


def errors(rows, plan, costs):
    """Logarithms of predicted over measured seconds: of the columns, with the trailing block's, and of its front."""
    curves = predict_divisions(plan, "d", division=plan.n - np.array([row["trailing"] for row in rows]), costs=costs)
    columns, sparse, factor = (np.array([row[name] for row in rows]) for name in ("columns_s", "sparse_s", "factor_s"))
    some = curves.dense > 0
    of_front = np.log(curves.dense[some] / np.maximum(factor - sparse, 1e-6)[some])
    return np.concatenate((np.log(curves.columns / columns), np.log(curves.sparse / sparse), of_front))


def fit(found, start=internals.TRAILING_COSTS, steps=15):
    """Constants with the least squares of these errors, outliers counting little; both root mean squares."""

    def all_errors(logarithms):
        return np.concatenate([errors(rows, plan, TrailingCosts(*np.exp(logarithms))) for _, _, rows, plan in found])

    start = np.log(np.maximum(start, 1e-12))  # a constant may be zero
    best = least_squares(all_errors, start, max_nfev=steps, loss="soft_l1", f_scale=0.2)
    before, after = (float(np.sqrt(np.mean(all_errors(x) ** 2))) for x in (start, best.x))
    return TrailingCosts(*(float(f"{cost:.2g}") for cost in np.exp(best.x))), before, after


def seconds_at(rows, trailing):
    """Of a factorization, between measurements."""
    return float(np.interp(trailing, [row["trailing"] for row in rows], [row["factor_s"] for row in rows]))


def run(arguments):
    found = list(measured(records.read(arguments.records), arguments.cases))
    costs, before, after = fit(found)
    note(f"{costs}\nrms of logarithms {before:.2f} -> {after:.2f}")
    for case, ordering, rows, plan in found:
        others = [other for other in found if other[0] != case] or found
        trailing = plan.n - predict_divisions(plan, "d", costs=fit(others, costs, 4)[0]).best
        best = min(rows, key=lambda row: row["factor_s"])
        more = {"ordering": ordering, "trailing": int(trailing), "unblocked_s": rows[0]["factor_s"]}
        more |= {"best_trailing": best["trailing"], "best_s": best["factor_s"]}
        yield records.make(case, "crisscross", "chosen", seconds_at(rows, trailing), **more)
