"""What is measured, a module a suite, all with the same few names.

CASES : sequence of str
    Measured unless others are asked for.
PEERS : tuple of str
    Of `asv_bench.peers`, the same.
BUDGET : float
    Seconds that one measurement repeats, the same.
add_arguments(parser)
    Its own options, besides those of `options.add_common`.
run(arguments)
    Iterator of records, as `asv_bench.records` says.
child(arguments)
    Only where each case is measured in a process of its own: what that does.

The first line of its docstring says what it measures.
"""

from importlib import import_module

PROCESSOR = (
    *("processor", "ldlt", "one_shot", "sequences", "programs", "neighbours"),
    *("memory", "methods", "orderings", "dense", "analysis", "gradients", "tensors"),
    *("schur", "inverse", "updates", "precision"),
)
DEVICE = (
    *("supernodal", "circuits", "right_hand_sides", "streaming", "host_values", "glu", "sflu", "crisscross"),
    *("crisscross_fit", "moves", "captured", "batches", "devices", "sanitize"),
)
NAMES = (*PROCESSOR, *DEVICE)


def named(name):
    """The module of a suite."""
    return import_module(f"{__name__}.{name}")


def describe(name):
    return named(name).__doc__.splitlines()[0]
