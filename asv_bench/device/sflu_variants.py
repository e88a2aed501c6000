"""What the sflu engine's ways are worth: waiting instead of levels, groups of columns, blocks for long columns.

    python asv_bench/device/sflu_variants.py [--out records.jsonl] [--variants groups,levels] [case ...]

Seconds of a refactorization and of a solve between CUDA events around replays of their graphs, of the engine as it is
("groups") and of what VARIANTS switches off. Factors have to be the same bit by bit, but those of "warps", which sums
long columns in another order. Plans with more than 2e8 multiply-adds are left out but for ibmpg2t_mna_tran, and without
--variants columns by themselves where there are more than 1e5. Needs a device, CuPy, GPUSPLU_MATRICES and
GPUSPLU_SEQUENCES. Without a device: --dry, for small cases, runs in the emulator of the tests and reports no times.
sflu_report.py makes a table of the records.
"""

import argparse
import datetime
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import numpy as np
from circuits import CASES, COLUMN_FLOPS, PUBLISHED, load_case
from clocks import DeviceClock
from harness import append, attempt, commit_name

import gpusplu as gs
from gpusplu.engines.recorded import Recorded
from gpusplu.engines.sflu import SfluProgram
from gpusplu.kernels import launch

VARIANTS = {
    "groups": {},
    "levels": {"by_levels": True},
    "columns": {"grouped": False},
    "columns_levels": {"grouped": False, "by_levels": True},
    "warps": {"splits": False},
}
MOST_COLUMNS = 100_000  # that are groups by themselves


def main_program(A):
    """Canonical values of A, and the program that the engine made of it."""
    factor = gs.splu(A, engine="sflu")
    program = factor._core._recorded.program
    return factor._core._recorded.values(), program


def measure(program, attributes, canonical, b, clock):
    """Seconds of refactorization and solve, the backward error, bytes of factor and solution."""
    kind = type("Variant", (SfluProgram,), attributes)
    made = kind(program.device, program.plan, program.pattern, program.dtype)
    made.prepare()
    recorded = Recorded(made)
    with program.device:
        queue = recorded.begin()
        recorded.send(queue, recorded.buffers.values.pointer, canonical)
        recorded.factor_now(queue)
        vectors = recorded.buffers.vectors(1)
        recorded.send(queue, vectors.b.pointer, b)
        queue.replay(recorded.graph("solve", 0, 1, 1))
        queue.synchronize()
        found = {"error": recorded.backward_error(), "launches": len(made._factor_begins) - 1}
        result = [np.empty(program.plan.nnz, program.dtype), np.empty(program.n, program.dtype)]
        for array, buffer in zip(result, (recorded.buffers.own["factor"], vectors.x), strict=True):
            queue.copy(array.ctypes.data, buffer.pointer, array.nbytes)
        queue.synchronize()
        if clock is not None:
            for name, key in (("refactor_s", ("factor",)), ("solve_s", ("solve", 0, 1, 0))):
                graph = recorded.graph(*key)
                found[name] = clock.device(lambda graph=graph: queue.replay(graph))
    return found, [array.tobytes() for array in result]


def sweep(case, variants, clock):
    """A record of every variant."""
    start = time.perf_counter()
    A, _ = load_case(case)
    canonical, program = main_program(A)
    plan, first, records = program.plan, None, []
    if 2 * plan.flops > COLUMN_FLOPS and case not in PUBLISHED:
        print(f"{case}: left out, {plan.flops:.1e} multiply-adds")
        return []
    b = np.random.default_rng(0).normal(size=plan.n).astype(program.dtype)
    for name in variants or [v for v in VARIANTS if plan.n <= MOST_COLUMNS or not v.startswith("columns")]:
        found, result = measure(program, VARIANTS[name], canonical, b, clock)
        first = first or result
        found["same"] = result == first
        records.append({"case": case, "variant": name, "n": plan.n, "levels": plan.n_levels, **found})
    cells = [
        f"{r['variant']} {1e6 * r.get('refactor_s', 0):.0f} + {1e6 * r.get('solve_s', 0):.0f}"
        f"{'' if r['same'] or r['variant'] == 'warps' else ' DIFFERENT BITS'} ({r['launches']}, {r['error']:.0e})"
        for r in records
    ]
    print(f"{case}: {'; '.join(cells)}; {time.perf_counter() - start:.1f} s", flush=True)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"{', '.join(CASES)}; none means all but the largest meshes")
    parser.add_argument("--variants", type=lambda names: names.split(","))
    parser.add_argument("--out", type=Path, help="file that JSON lines are appended to")
    parser.add_argument("--budget", type=float, default=0.02, help="seconds that a measurement repeats")
    parser.add_argument("--dry", action="store_true", help="in the emulator")
    arguments = parser.parse_args()
    clock = None
    if arguments.dry:
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "kernels"))
        from emulated_device import EmulatedDevice

        device = EmulatedDevice()
        launch.open_device = lambda which=None: device
    else:
        clock = DeviceClock()
        clock.budget = arguments.budget
    about = {"engine": "sflu", "phase": "variants", "commit": commit_name(), "date": datetime.date.today().isoformat()}
    print("microseconds of refactor + solve (launches of a refactorization, backward error)")
    for case in arguments.cases or [case for case in CASES if case not in ("rlc:300x300", "rlc:700x700")]:
        records = attempt(lambda case=case: sweep(case, arguments.variants, clock))
        if isinstance(records, dict):
            print(f"{case}: {records['error']}", flush=True)
        else:
            append(arguments.out, [{**record, **about} for record in records])


if __name__ == "__main__":
    main()
