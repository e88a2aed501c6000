"""Other solvers and orderings to measure beside, a module each, all with the same few names.

missing() -> str
    What is needed and not here; "" where it can run.

Solvers:

KINDS : tuple of bool
    Kinds of matrices that it is for: False general, True positive definite.
MOST_FLOPS : float
    Above so many multiply-adds it takes longer than its numbers are worth [flop].
measure(problem) -> dict
    Seconds of analyze, factor, total, refactor, solve and step, as in `phases`, and backward_error.

Orderings:

order(ptr, ind) -> ndarray
    A permutation, of a graph as `internals.graph_of` makes it.
"""

from importlib import import_module

SOLVERS = ("cudss", "klu", "cktso", "cholmod", "pardiso", "scipy")
ORDERINGS = ("amd", "metis")
OTHERS = ("lapack",)
NAMES = (*SOLVERS, *ORDERINGS, *OTHERS)


def named(name):
    """The module of a peer."""
    return import_module(f"{__name__}.{name}")


def measure(name, problem, flops=0.0):
    """What a solver takes for a problem; None where it does not suit or takes too long."""
    peer = named(name)
    if problem.definite not in peer.KINDS or flops > peer.MOST_FLOPS:
        return None
    if peer.missing():
        raise RuntimeError(peer.missing())
    return peer.measure(problem)


def with_sums(found):
    """The same with total and step, where phases were measured one by one."""
    return found | {"total": found["analyze"] + found["factor"], "step": found["refactor"] + found["solve"]}
