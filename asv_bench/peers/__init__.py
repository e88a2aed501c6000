"""Other solvers and orderings to measure beside, a module each, all with the same few names.

missing() -> str
    What is needed and not here; "" where it can run.

Solvers:

KINDS : tuple of bool
    Kinds of matrices that it is for: False general, True positive definite.
SYMMETRIC : bool, optional
    It is for symmetric indefinite matrices as such.
MOST_FLOPS : float
    Above so many multiply-adds it takes longer than its numbers are worth [flop].
measure(problem) -> dict
    Seconds of analyze, factor, total, refactor, solve and step, as in `phases`, and backward_error.

Orderings:

order(ptr, ind) -> ndarray
    A permutation, of a graph as `internals.graph_of` makes it.

Solvers of JAX:

BATCHES : bool
    vmap makes one call.
solver(A) -> callable
    Of the values of a CSR matrix with A's pattern and of a right-hand side, to differentiate.
"""

from importlib import import_module

from ..phases import PHASES, attempt

SOLVERS = ("cudss", "klu", "cktso", "rslab", "feral", "cholmod", "pardiso", "scipy", "own_lu")
ORDERINGS = ("amd", "metis")
DIFFERENTIABLE = ("jax_spsolve", "klujax", "sparsax", "torch_sla")
OTHERS = ("lapack",)
SOLVED = 1e-8  # backward error
NAMES = (*SOLVERS, *ORDERINGS, *DIFFERENTIABLE, *OTHERS)


def named(name):
    """The module of a peer."""
    return import_module(f"{__name__}.{name}")


def measure(name, problem, flops=0.0):
    """What a solver takes for a problem; None where it does not suit or takes too long."""
    peer = named(name)
    suits = getattr(peer, "SYMMETRIC", False) if problem.symmetric else problem.definite in peer.KINDS
    if not suits or flops > peer.MOST_FLOPS:
        return None
    if peer.missing():
        raise RuntimeError(peer.missing())
    return peer.measure(problem)


def best_of(measure, variants):
    """What a solver takes with the best of several settings, phase by phase, of those that solve; their worst error.

    Parameters
    ----------
    measure : callable
        What the solver takes with one setting, as a peer's `measure` returns it.
    variants : list of tuple
        Its arguments for each setting.
    """
    tried = [attempt(lambda variant=variant: measure(*variant)) for variant in variants]
    right = [found for found in tried if found.get("backward_error", 1.0) < SOLVED]
    if not right:
        raise RuntimeError("; ".join(found.get("error", "does not solve") for found in tried))
    least = {phase: min(found[phase] for found in right) for phase in PHASES}
    return right[0] | least | {"backward_error": max(found["backward_error"] for found in right)}


def with_sums(found):
    """The same with total and step, where phases were measured one by one."""
    return found | {"total": found["analyze"] + found["factor"], "step": found["refactor"] + found["solve"]}
