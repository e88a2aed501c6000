"""Peak resident memory of a factorization in a fresh process, against the bytes of the factor and the input.

    python asv_bench/peers/memory.py [case ...]

The peak is what a process that loads a matrix and calls splu (cholesky where the name starts with `spd/`) adds to one
that has only imported gpusplu and loaded the matrix, plus the input: Linux's VmHWM, reset just before the call.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from common import geomean, load, table

import gpusplu as gs

DEFAULT = (
    "memplus",
    "bayer10",
    "ibmpg2t_mna_tran",
    "rlc:300x300",
    "convdiff:30",
    "spd/ibmpg2t_spd_tran",
    "spd/elast:20x20x20",
    "spd/poisson:40x40x40",
    "spd/G3_circuit",
)


def resident(field):
    """A memory figure of this process [bytes]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def measure(case):
    """Bytes of peak, factor and input, in this process."""
    A = load(case.removeprefix("spd/"))
    factorize = gs.cholesky if case.startswith("spd/") else gs.splu
    factorize(load("poisson:2")).solve(np.ones(2))  # starts threads and loads libraries
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM := VmRSS
    factor = factorize(A)
    factor.solve(np.ones(A.shape[0]))
    size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    return {"peak": resident("VmHWM") - before + size, "factor": int(factor.stats["bytes"]), "input": size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=DEFAULT)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    rows, ratios = [], []
    for case in arguments.cases:
        run = subprocess.run([sys.executable, __file__, "--measure", case], capture_output=True, text=True, check=True)
        found = json.loads(run.stdout)
        ratios.append(found["peak"] / (found["factor"] + found["input"]))
        rows.append([case, *[f"{found[key] / 1e6:.1f}" for key in ("input", "factor", "peak")], f"{ratios[-1]:.2f}"])
    print(table(("matrix", "input MB", "factor MB", "peak MB", "peak / both"), rows))
    print(f"ratio: geometric mean {geomean(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
