"""What each mode of the glu engine is worth: refactorization by the model's choice, and by one mode alone.

    python asv_bench/device/glu_modes.py [--out records.jsonl] [case ...]

Seconds of a replay of the graph between CUDA events: in double precision by the model's choice ("choice"), by the modes
alone and by other constants of the model of pipelines (microseconds of a column, of an update), and in float32 and
complex128. With the choice: what was predicted, its phases of subtrees, its levels after them and the backward error of
a solve. "pipeline" leaves to the model's levels what does not fit into shared memory. Needs a device, CuPy and
GPUSPLU_MATRICES. glu_report.py makes a table of the records.
"""

import argparse
import datetime
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from clocks import DeviceClock
from common import load
from harness import append, attempt, commit_name

import gpusplu as gs
from gpusplu.engines.glu import MODES, GluProgram

CASES = (
    *("add20", "rajat19", "adder_dcop_05", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "bayer10"),
    *("ibmpg1t_mna_tran", "faer_matrix_n19168", "ibmpg2t_mna_tran"),
)
COSTS = ((0.3, 5000), (0.45, 4000), (0.35, 4000), (0.45, 3000), (0.6, 3000), (0.45, 5500))  # us; updates in a us
# What is forced, constants and dtype by name.
VARIANTS = {
    "choice": (None, {}, "d"),
    **{mode: (mode, {}, "d") for mode in MODES},
    **{f"{column}, 1/{updates}": (None, {"column": column, "update": 1 / updates}, "d") for column, updates in COSTS},
    "float32": (None, {}, "f"),
    "complex128": (None, {}, "D"),
}


def measure(A, variant, clock):
    """A record of one variant."""
    GluProgram.forced_mode, GluProgram.costs, dtype = VARIANTS[variant]
    A = A.astype(np.result_type(A.dtype, dtype) if dtype == "D" else np.dtype(dtype))
    factor = gs.splu(A, engine="glu")
    recorded = factor._core._recorded
    factor.refactor(A.data)
    factor.solve(np.ones(A.shape[0], A.dtype))
    with recorded.device:
        queue, graph = recorded.begin(), recorded.graph("refactor")
        seconds = clock.device(lambda: queue.replay(graph))
    runs = recorded.program.runs
    return {
        "variant": variant,
        "refactor_s": seconds,
        "predicted_s": recorded.program.factor_seconds,
        "phases": int((runs["level_begin"] < 0).sum()),
        "levels": int((runs["level_end"] - runs["level_begin"])[runs["level_begin"] >= 0].sum()),
        "backward_error": factor.backward_error,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    arguments = parser.parse_args()
    clock = DeviceClock()
    clock.budget = 0.03
    about = {"engine": "glu", "phase": "refactor", "commit": commit_name(), "date": datetime.date.today().isoformat()}
    for case in arguments.cases:
        A, cells = load(case), []
        for variant in VARIANTS:
            found = attempt(lambda A=A, variant=variant: measure(A, variant, clock))
            if "error" in found:
                cells.append(f"{variant} {found['error']}")
                continue
            append(arguments.out, [{"case": case, **found, **about}])
            cells.append(f"{variant} {1e6 * found['refactor_s']:.0f}")
            if variant == "choice":
                cells[0] += f" (predicted {1e6 * found['predicted_s']:.0f}, {found['phases']} + {found['levels']})"
        print(f"{case} [us]: {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
