"""Crisscross LU over division points: what is predicted and what is measured, blocked against unblocked.

    python asv_bench/device/crisscross.py [--out records.jsonl] [--orderings auto,amd] [--corners 0,64,128] [case ...]

For corners of several sizes and the one that the model picks: device seconds of the columns before the division, with
those of the corner (`sparse_s`), of the whole factorization and of a solve, beside both curves of the model. A corner
of 0 columns, which has to be among them, is unblocked, sflu. crisscross_fit.py finds the constants that such records
ask for, crisscross_report.py makes a table of them. Needs a device, CuPy, and for real matrices GPUSPLU_MATRICES.
"""

import argparse
import datetime
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import numpy as np
from clocks import DeviceClock
from common import one_of
from harness import append, commit_name

import gpusplu as gs
from gpusplu.engines.crisscross import CrisscrossProgram
from gpusplu.engines.recorded import Recorded

CASES = ["memplus", "bayer10", "ibmpg1t_mna_tran", "faer_matrix_n19168", "case_ACTIVSg10k_nrjac"]
CASES += ["add20", "adder_dcop_05", "rajat19", "case3375wp_nrjac", "add20_seq", "mem_plus_seq", "smult20_seq"]
CASES += ["voter_seq", "rlc:100x100", "circuit:100x100", "power:150x150", "ibmpg2t_mna_tran"]
CORNERS = [0, 16, 48, 96, 128, 168, 256, 512, 768, 1536]


def unblocked(A, ordering):
    """A recorded program without a corner."""
    CrisscrossProgram.forced = A.shape[0]
    lu = gs.splu(A, engine="crisscross", ordering=ordering)
    CrisscrossProgram.forced = None
    return lu._core._recorded


class Divided(CrisscrossProgram):
    """Whose columns before the division can be factored by themselves."""

    alone = False

    @property
    def _factor_begins(self):
        begins = super()._factor_begins
        return self.groups.level_ptr[[0, -2]] if self.alone and self.corner else begins

    def factor_before(self, queue, buffers, values):
        self.alone = True
        self.factor_columns(queue, buffers, values)
        self.alone = False


def measure(first, values, corner, clock):
    """Seconds and predictions with a corner of this many columns; the model's if None."""
    n = first.program.n
    kind = type("Divided", (Divided,), {"forced": None if corner is None else n - corner})
    program = kind(first.device, first.program.plan, first.program.pattern, first.program.dtype)
    program.prepare()
    recorded = Recorded(program)
    device, buffers = recorded.device, recorded.buffers
    with device:
        queue = recorded.begin()
        recorded.send(queue, buffers.values.pointer, values)
        recorded.factor_now(queue)
        recorded.send(queue, buffers.vectors(1).b.pointer, np.ones(n, program.dtype))
        queue.replay(recorded.graph("solve", 0, 1, 1))
        queue.synchronize()
        error = recorded.backward_error()
        graphs = {
            "columns_s": device.record(lambda q: program.factor_before(q, buffers, buffers.values)),
            "sparse_s": device.record(lambda q: program.factor_columns(q, buffers, buffers.values)),
            "factor_s": device.record(lambda q: program.factor(q, buffers, buffers.values)),
            "solve_s": recorded.graph("solve", 0, 1, 0),
            "step_s": recorded.graph("refactor_solve", 0, 1, 0),
        }
        found = {name: clock.device(lambda graph=graph: queue.replay(graph)) for name, graph in graphs.items()}
    sparse, dense = program._predicted
    found |= {"corner": n - program.division, "terms": int(program.corner_terms)}
    return found | {"predicted_sparse_s": sparse, "predicted_dense_s": dense, "error": float(error)}


def sweep(case, ordering, corners, clock):
    A = one_of(case)
    first = unblocked(A, ordering)
    plan, values = first.program.plan, first.values()
    chosen, rows = measure(first, values, None, clock), []
    for corner in corners:
        if corner <= plan.n:
            rows.append(measure(first, values, corner, clock))
    best, without = min(rows, key=lambda row: row["factor_s"]), rows[0]
    print(f"{case} {ordering}: {plan.n} columns, {plan.flops:.2g} multiply-adds, {plan.n_levels} levels")
    for row in [*rows, chosen]:
        dense = row["factor_s"] - row["sparse_s"]
        print(
            f"  {row['corner']:5d}  columns {us(row['columns_s'])} sparse {us(row['sparse_s'])} "
            f"({us(row['predicted_sparse_s'])}) dense {us(dense)} ({us(row['predicted_dense_s'])}) "
            f"factor {us(row['factor_s'])} solve {us(row['solve_s'])} step {us(row['step_s'])} "
            f"terms {row['terms']:.1e} error {row['error']:.0e}"
        )
    off = chosen["factor_s"] / min(best["factor_s"], chosen["factor_s"])
    print(
        f"  unblocked {us(without['factor_s'])}; best corner {best['corner']}: {us(best['factor_s'])}, "
        f"{without['factor_s'] / best['factor_s']:.2f} times as fast; the model's {chosen['corner']}: "
        f"{us(chosen['factor_s'])}, {off:.2f} times the best",
        flush=True,
    )
    return [*rows, chosen]


def us(seconds):
    return f"{seconds * 1e6:7.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, metavar="case")
    parser.add_argument("--orderings", default="auto,amd")
    parser.add_argument("--corners", type=lambda text: [int(size) for size in text.split(",")], default=CORNERS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--budget", type=float, default=0.03, help="seconds a measurement repeats")
    parser.add_argument("--seconds", type=float, default=85, help="no case is begun after that")
    arguments = parser.parse_args()
    clock, begin = DeviceClock(), time.perf_counter()
    clock.budget = arguments.budget
    about = {"engine": "crisscross", "phase": "division", "commit": commit_name()}
    about["date"] = datetime.date.today().isoformat()
    for ordering in arguments.orderings.split(","):
        for case in arguments.cases:
            if time.perf_counter() - begin > arguments.seconds:
                print(f"{case} {ordering}: no time left")
                continue
            rows = sweep(case, ordering, arguments.corners, clock)
            append(arguments.out, [{"case": case, "ordering": ordering, **about, **row} for row in rows])


if __name__ == "__main__":
    main()
