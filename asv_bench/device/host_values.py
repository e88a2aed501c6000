"""A refactorization and solve with values on the host beside the same on the device and by the CPU engine.

    python asv_bench/device/host_values.py [--out records.jsonl] [case ...]

Microseconds of `refactor_solve` from Python, waited for: of values and vectors on the device; of NumPy's, with 1 and 4
threads that copy them to page-locked memory; of the same with copies in the graph instead of kernels that move them;
and of the CPU engine. Needs a device, CuPy and GPUSPLU_MATRICES.
"""

import argparse
import datetime
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import numpy as np
from clocks import DeviceClock
from common import load
from harness import append, commit_name

import gpusplu as gs
from gpusplu import _core, matrix
from gpusplu.engines.program import Program

CASES = (
    *("add20", "rajat19", "adder_dcop_05", "case3375wp_nrjac", "memplus", "case_ACTIVSg10k_nrjac"),
    *("bayer10", "ibmpg1t_mna_tran"),
)
THREADS = (1, 4)


def copied(program, queue, *arrays):
    """In place of Program.move."""
    for to, source, count in arrays:
        queue.copy(to, source, count * program.dtype.itemsize)


def measure(A, clock):
    """Seconds by way."""
    rng = np.random.default_rng(0)
    values, b = A.data * rng.uniform(0.95, 1.05, A.nnz), rng.normal(size=A.shape[0])
    there = [matrix.to_device(array) for array in (values, b)]
    lu, cpu = gs.splu(A, engine="supernodal"), gs.splu(A, engine="cpu")

    def step(factor):
        return factor.refactor_solve(values, b)

    found = {"device_s": clock.wall(lambda: lu.refactor_solve(*there)), "cpu_s": clock.wall(lambda: step(cpu))}
    step(lu)  # finds out how to take values
    before = _core.num_threads()
    for threads in THREADS:
        _core.set_num_threads(threads)
        found[f"host_{threads}_s"] = clock.wall(lambda: step(lu))
    _core.set_num_threads(before)
    move, Program.move = Program.move, copied
    try:
        other = gs.splu(A, engine="supernodal")
        step(other)
        found["copies_s"] = clock.wall(lambda: step(other))
    finally:
        Program.move = move
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    arguments = parser.parse_args()
    clock = DeviceClock()
    clock.budget = 0.05
    about = {"phase": "step", "commit": commit_name(), "date": datetime.date.today().isoformat()}
    for case in arguments.cases:
        A = load(case)
        found = measure(A, clock)
        append(arguments.out, [{"case": case, "nnz": A.nnz, **found, **about}])
        print(f"{case}: " + ", ".join(f"{name[:-2]} {1e6 * value:.0f} us" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
