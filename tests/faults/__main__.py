"""``python -m tests.faults --minutes 60``: mutated pickles and files for as long as that, other ones every time."""

import argparse
import collections
import time

from .batches import run_batch

MODULES = ("pickles", "files")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1_000_000)
    parser.add_argument("--cases", type=int, default=500, help="of a batch")
    chosen = parser.parse_args()
    seed, failures, end = chosen.seed, 0, time.monotonic() + 60 * chosen.minutes
    outcomes = {module: collections.Counter() for module in MODULES}
    while time.monotonic() < end:
        for module in MODULES:
            counts, failure = run_batch(module, seed, chosen.cases)
            outcomes[module] += counts
            failures += bool(failure)
            if failure:
                print(failure, flush=True)
        seed += chosen.cases
    for module, counts in outcomes.items():
        print(module, sum(counts.values()), dict(counts.most_common()))
    return min(failures, 1)


if __name__ == "__main__":
    raise SystemExit(main())
