"""What is measured: ten suites that are run regularly, and experiments for single questions (`asv_bench/experiments`).

Each is a module with the same few names:

CASES : sequence of str
    Default cases.
PEERS : tuple of str
    Default peers, names in `asv_bench.peers`.
BUDGET : float
    Default seconds that one measurement is repeated.
add_arguments(parser)
    Optional: its own options, besides those of `options.add_common`.
run(arguments)
    Iterator of records, as `asv_bench.records` describes them.
child(arguments)
    Only if each case is measured in a process of its own: what that process does.

The first line of its docstring says what it measures.
"""

from importlib import import_module

REGULAR = (
    *("one_shot", "processor", "scaling", "ldlt", "programs", "neighbours"),  # on the processor
    *("supernodal", "circuits", "batches", "moves"),  # on a GPU
)
EXPERIMENTS = (
    *("captured", "crisscross", "crisscross_fit", "dense", "devices", "glu", "gradients", "inverse", "memory"),
    *("methods", "orderings", "precision", "right_hand_sides", "sanitize", "schur", "sflu", "streaming"),
    *("suspect_systems", "tensors", "updates"),
)
NAMES = (*REGULAR, *EXPERIMENTS)


def named(name):
    """The module of a suite or experiment."""
    folder = "suites" if name in REGULAR else "experiments"
    return import_module(f"..{folder}.{name}", __name__)


def describe(name):
    return named(name).__doc__.splitlines()[0]
