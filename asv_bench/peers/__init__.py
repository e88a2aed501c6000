"""Other solvers and orderings, measured on the same problems as gpusplu."""

from importlib import import_module
from importlib.util import find_spec

from .. import internals
from ..phases import PHASES, attempt

SOLVERS = {
    "cudss": "cudss.CuDSS",
    "klu": "suitesparse.KLU",
    "cktso": "cktso.CKTSO",
    "rslab": "packages.RSLAB",
    "feral": "packages.Feral",
    "cholmod": "suitesparse.CHOLMOD",
    "pardiso": "pardiso.PARDISO",
    "scipy": "packages.SuperLU",
    "own_lu": "packages.OwnLU",
}
ORDERINGS = {"amd": "suitesparse.AMD", "metis": "packages.METIS"}
DIFFERENTIABLE = {
    "jax_spsolve": "differentiable.JaxSpsolve",
    "klujax": "differentiable.Klujax",
    "sparsax": "differentiable.Sparsax",
    "torch_sla": "differentiable.TorchSla",
}
NAMES = {**SOLVERS, **ORDERINGS, **DIFFERENTIABLE, "lapack": "packages.LAPACK"}
SOLVED = 1e-8  # backward error


class Peer:
    """What peers have in common; the first line of their docstrings says what they are.

    A solver has ``measure(problem)``, which returns seconds of analyze, factor, total, refactor, solve and step, as in
    `phases`, and backward_error. An ordering has ``order(ptr, ind)``, which returns a permutation of a graph that
    `internals.graph_of` makes. A differentiable solver has ``solver(A)``, which returns a function of the values of a
    CSR matrix with A's pattern and of a right-hand side.

    Attributes
    ----------
    package : str
        That has to be installed; empty if none.
    kinds : tuple of bool
        Kinds of matrices that a solver is for: False general, True positive definite.
    symmetric : bool
        Whether it is for symmetric indefinite matrices as such.
    parallel : bool
        Whether it has several threads.
    most_flops : float
        Number of multiply-adds above which it takes too long.
    batches : bool
        Whether vmap makes one call of a differentiable solver.
    """

    package, kinds, symmetric, parallel, most_flops, batches = "", (), False, True, float("inf"), False

    def missing(self):
        """What has to be installed or set before it can run; empty if nothing."""
        return "" if not self.package or find_spec(self.package) else f"{self.package} has to be installed"


def named(name):
    """The peer of this name."""
    module, kind = NAMES[name].split(".")
    return getattr(import_module(f"{__name__}.{module}"), kind)()


def measure(name, problem, flops=0.0):
    """Seconds of a solver on a problem; None if it is not for such a problem or takes too long."""
    peer = named(name)
    suits = peer.symmetric if problem.symmetric else problem.definite in peer.kinds
    if not suits or flops > peer.most_flops:
        return None
    if peer.missing():
        raise RuntimeError(peer.missing())
    return peer.measure(problem)


def numbers_of_threads(problem):
    """One, and as many as gpusplu has: fewer can be faster."""
    return sorted({internals.num_threads()} if problem.brief else {1, internals.num_threads()})


def best_of(measure, variants):
    """The least seconds of each phase over several settings that solve, and the worst of their errors.

    Parameters
    ----------
    measure : callable
        Measures one setting, and returns the same as a peer's `measure`.
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
    """The same with total and step, if the phases were measured one by one."""
    return found | {"total": found["analyze"] + found["factor"], "step": found["refactor"] + found["solve"]}
