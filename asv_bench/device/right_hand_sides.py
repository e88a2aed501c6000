"""Seconds of solves with 1, 4, 16 and 32 right-hand sides beside cuDSS, on the same device in the same run.

    python asv_bench/device/right_hand_sides.py [--peer cudss] [--columns 1,4,16,32] [--kernels] [case ...]

Right-hand sides and solutions are on the device. Ours is one replay of the graph without the measurement of the
backward error, as cuDSS has none; both are medians between CUDA events (clocks.py). "of one" is how many solves with
one right-hand side the solve takes, "error" the largest normwise backward error of a column without refinement.
`--kernels` says what each kernel takes. Environment: as supernodal.py.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import launches
from cases import select
from clocks import DeviceClock
from common import backward_error, load, seconds, table

import gpusplu as gs


def right_hand_sides(n, columns):
    """Shape (n, columns), or (n,) for one."""
    b = np.random.default_rng(columns).normal(size=(n, columns))
    return np.asfortranarray(b) if columns > 1 else b[:, 0]


def error(A, x, b):
    x, b = x.reshape(len(b), -1, order="F"), b.reshape(len(b), -1, order="F")
    return max(backward_error(A, x[:, k], b[:, k]) for k in (0, x.shape[1] // 2, x.shape[1] - 1))


class Ours:
    """A factor of the engine, without refinement."""

    def __init__(self, A, definite):
        self.clock = DeviceClock()
        self.factor = gs.analyze(A, cholesky=definite, engine="supernodal", refine="never").factor(A.data)

    def solve(self, b):
        """Seconds of a solve, its solution, and seconds by kernel."""
        import cupy

        columns = 1 if b.ndim == 1 else b.shape[1]
        x = self.factor.solve(cupy.asarray(b))  # allocates, compiles and records
        core = self.factor._core
        recorded, device = core._recorded, core._device
        with device:
            queue, graph = device.caller_queue(), recorded.graph("solve", 0, columns, 0)
            took = self.clock.device(lambda: queue.replay(graph))
        asked = launches.commands_by_time(device, lambda queue: recorded.solve(queue, 0, columns, 0), self.clock)
        kernels = {name: value for name, value in asked if name.startswith("solve")}
        return took, x.get(), kernels


class Theirs:
    """cuDSS; it is told the number of right-hand sides before its analysis."""

    def __init__(self, A, definite):
        self.A, self.definite, self.clock = A, definite, DeviceClock()

    def solve(self, b):
        import cudss
        import cupy

        with cudss.CuDSS(self.A, cupy.asarray(b), self.definite) as solver:
            solver.analyze()
            solver.factor()
            took = self.clock.device(solver.solve)
            return took, solver.x.get(), {}


def measure(case, columns, peer):
    """Rows of the table of one case, and seconds by kernel of ours."""
    A = load(case.name)
    solvers = [Ours(A, case.definite)] + ([Theirs(A, case.definite)] if peer == "cudss" else [])
    rows, kernels, one = [], {}, {}
    for count in columns:
        b = right_hand_sides(A.shape[0], count)
        row, taken = [f"{case.name} x {count}"], []
        for k, solver in enumerate(solvers):
            took, x, by_kernel = solver.solve(b)
            taken.append(took)
            one.setdefault(k, took)
            row += [seconds(took), f"{took / one[k]:.2f}", f"{error(A, x, b):.0e}"]
            if k == 0:
                kernels[count] = by_kernel
        rows.append([*row, f"{taken[1] / taken[0]:.2f}" if peer == "cudss" else "-"])
    return rows, kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["ibmpg2t_spd_tran", "elast:20x20x20", "convdiff:50"])
    parser.add_argument("--columns", default="1,4,16,32")
    parser.add_argument("--peer", default="cudss", choices=("cudss", "none"))
    parser.add_argument("--kernels", action="store_true")
    arguments = parser.parse_args()
    columns = [int(count) for count in arguments.columns.split(",")]
    rows = []
    for case in select(arguments.cases):
        found, kernels = measure(case, columns, arguments.peer)
        rows += found
        for count, by_kernel in kernels.items() if arguments.kernels else ():
            print(f"{case.name} x {count}:", ", ".join(f"{name} {seconds(value)}" for name, value in by_kernel.items()))
    peer = ("cudss", "of one", "error") if arguments.peer == "cudss" else ()
    print(table(("case", "ours", "of one", "error", *peer, "ratio"), rows))


if __name__ == "__main__":
    main()
