"""Solves that JAX compiles, differentiates and batches, beside klujax, sparsax and JAX's own spsolve.

Least seconds of a compiled call with values it has not seen: `solve`, `gradient` (the loss and its gradients with
respect to the values and to b) and `vmap` (`--systems` systems with a b each; one after the other where a peer has no
batches). `numpy_s` is gpusplu.spsolve of the same system without JAX. Errors are backward errors of `solve`, and for
gradients the relative difference to ours.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .. import peers, records
from ..matrices import load
from ..options import measured, note, present
from ..timing import backward_error, best

CASES = ("add20", "memplus", "poisson:100x100")
PEERS, BUDGET = ("jax_spsolve", "klujax", "sparsax"), 0.0
SETS = 4  # of values that calls take turns with, so that none is the one before


def add_arguments(parser):
    parser.add_argument("--systems", type=int, default=256, help="under vmap")


def ours(A):
    """Our solve of a CSR matrix's values and a right-hand side."""
    from jax.experimental.sparse import BCSR

    import gpusplu.jax

    return lambda values, b: gpusplu.jax.spsolve(BCSR((values, A.indices, A.indptr), shape=A.shape), b)


def calls_of(solve, batches):
    """Compiled functions of values and b by phase."""
    import jax

    def loss(values, b):
        return (solve(values, b) ** 2).sum()

    mapped = jax.vmap(solve) if batches else lambda values, b: jax.lax.map(lambda each: solve(*each), (values, b))
    calls = {"solve": solve, "gradient": jax.value_and_grad(loss, (0, 1)), "vmap": mapped}
    return {phase: jax.jit(call) for phase, call in calls.items()}


class Turns:
    """A function called with the next of several sets of arguments each time."""

    def __init__(self, function, sets):
        self.function, self.sets, self.number = function, sets, 0

    def __call__(self):
        self.number += 1
        return self.function(*self.sets[self.number % len(self.sets)])


def arguments_of(A, systems):
    """Sets of values and b by phase, as JAX has them."""
    import jax.numpy as jnp

    rng = np.random.default_rng(0)

    def drawn(*count):
        values = A.data * (1 + 0.01 * rng.standard_normal((*count, A.nnz)))
        return jnp.asarray(values), jnp.asarray(rng.standard_normal((*count, A.shape[0])))

    single = [drawn() for _ in range(SETS)]
    return {"solve": single, "gradient": single, "vmap": [drawn(systems) for _ in range(2)]}


def rounds(functions, repeat, calls):
    """Least seconds of each function, called again and again, the functions taking turns."""
    return [min(took) for took in zip(*([best(call, calls) for call in functions] for _ in range(repeat)), strict=True)]


def difference(found, expected):
    """Relative, of two gradients."""
    parts = [(np.asarray(a), np.asarray(b)) for a, b in zip(found[1], expected[1], strict=True)]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in parts)


def compare(case, names, systems, repeat):
    """A record for each phase and peer."""
    import jax

    jax.config.update("jax_enable_x64", True)
    A = sp.csr_array(load(case))
    A.sort_indices()
    sets = arguments_of(A, systems)
    solvers = {"ours": (ours(A), True)} | {
        name: (peers.named(name).solver(A), peers.named(name).BATCHES) for name in names
    }
    compiled = {name: calls_of(*solver) for name, solver in solvers.items()}
    numbers = [(sp.csr_array((np.asarray(v), A.indices, A.indptr)), np.asarray(b)) for v, b in sets["solve"]]
    for phase, few in (("solve", 40), ("gradient", 40), ("vmap", 1)):
        turns = [
            Turns(lambda *given, call=calls[phase]: jax.block_until_ready(call(*given)), sets[phase])
            for calls in compiled.values()
        ]
        found = [jax.block_until_ready(calls[phase](*sets[phase][0])) for calls in compiled.values()]  # compiles
        alone = [Turns(gs.spsolve, numbers)] if phase == "solve" else []
        took = rounds([*turns, *alone], repeat, few)
        more = {"systems": systems} if phase == "vmap" else {"numpy_s": took[-1]} if phase == "solve" else {}
        errors = [None] * len(found)
        if phase == "solve":
            errors = [backward_error(numbers[0][0], np.asarray(x), numbers[0][1]) for x in found]
        elif phase == "gradient":
            errors = [difference(one, found[0]) for one in found]
        for name, there, error in zip(
            names or ["none"], took[1 : 1 + len(names)] or [None], errors[1:] or [None], strict=True
        ):
            yield records.make(
                case, "cpu", phase, took[0], name, there, errors[0], peer_backward_error=error, n=A.shape[0], **more
            )


def run(arguments):
    if not find_spec("jax"):
        note("JAX has to be installed")
        return
    names = present(arguments)
    yield from measured(
        arguments, arguments.cases, lambda case: compare(case, names, arguments.systems, arguments.repeat)
    )
