"""What each mode of the glu engine is worth: refactorization by the model's choice, and by one mode alone.

    python asv_bench/device/glu_modes.py [case ...]

Milliseconds of a replay of the graph between CUDA events, double precision unless said otherwise; how many phases of
subtrees the choice has, how many levels after them, and the backward error of a solve. "pipeline only" leaves to the
model's levels what does not fit into shared memory. Needs a device, CuPy and GPUSPLU_MATRICES.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

from clocks import DeviceClock
from common import load

import gpusplu as gs
from gpusplu.engines.glu import MODES, GluProgram

CASES = (
    *("add20", "rajat19", "adder_dcop_05", "memplus", "case3375wp_nrjac", "case_ACTIVSg10k_nrjac", "bayer10"),
    *("ibmpg1t_mna_tran", "faer_matrix_n19168", "ibmpg2t_mna_tran"),
)
VARIANTS = [(None, "d"), *((mode, "d") for mode in MODES), (None, "f"), (None, "D")]


def measure(A, mode, clock):
    """(milliseconds, backward error, phases of pipelines, levels after them)."""
    GluProgram.forced_mode = mode
    factor = gs.splu(A, engine="glu")
    recorded = factor._core._recorded
    b = np.ones(A.shape[0], A.dtype)
    factor.refactor(A.data)
    factor.solve(b)
    with recorded.device:
        queue, graph = recorded.begin(), recorded.graph("refactor")
        seconds = clock.device(lambda: queue.replay(graph))
    runs = recorded.program.runs
    phases = int((runs["level_begin"] < 0).sum())
    levels = int((runs["level_end"] - runs["level_begin"])[runs["level_begin"] >= 0].sum())
    return 1e3 * seconds, factor.backward_error, phases, levels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    clock = DeviceClock()
    clock.budget = 0.05
    names = ["model's choice", *(f"{mode} only" for mode in MODES), "float32", "complex128"]
    print("| case | " + " | ".join(names) + " | phases + levels | error |")
    print("|---|" + "---:|" * (len(names) + 2))
    for case in parser.parse_args().cases:
        A = load(case)
        found = []
        for mode, dtype in VARIANTS:
            number = np.result_type(A.dtype, dtype) if dtype == "D" else np.dtype(dtype)
            found.append(measure(A.astype(number), mode, clock))
        cells = [f"{entry[0]:.3f}" for entry in found]
        _, error, phases, levels = found[0]
        print(f"| {case} | {' | '.join(cells)} | {phases} + {levels} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
