"""Any number of hard systems: python -m tests.property.hard --systems 100000 --engine cpu --seed 1."""

import argparse
from collections import Counter
from time import perf_counter

from .emulated_engines import GPU_ENGINES, use_emulated_device
from .generators import GENERATORS
from .systems import System, run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=1000)
    parser.add_argument("--engine", choices=("cpu", *GPU_ENGINES), default="cpu")
    parser.add_argument("--seed", type=int, default=0, help="of the first system")
    parser.add_argument("--largest", type=int, default=60, help="order")
    parser.add_argument("--generator", choices=GENERATORS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="to stop after")
    options = parser.parse_args()
    if options.engine != "cpu":
        use_emulated_device()
    start, counts, wrong, systems = perf_counter(), Counter(), 0, 0
    for seed in range(options.seed, options.seed + options.systems):
        if perf_counter() - start > options.seconds:
            break
        system = System(seed, options.engine, options.largest, options.generator)
        verdicts = run(system)
        systems += 1
        counts.update(verdict.split(":")[0] for _, verdict in verdicts)
        for what, verdict in verdicts:
            if verdict.startswith("wrong"):
                wrong += 1
                print(f"{system}  # {what}: {verdict}", flush=True)
    solves = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    print(f"{systems} systems, engine {options.engine}: {solves} ({perf_counter() - start:.0f} s)")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
