"""Solves that JAX compiles, differentiates and batches, compared with klujax, sparsax and JAX's spsolve.

Least seconds of a compiled call with new values: `solve`, `gradient` (the loss and its gradients with respect to the
values and to b) and `vmap` (`--systems` systems with one b each; one after the other if a peer has no batches), on
JAX's default device, which is the "engine" of records. `numpy_s` is gpusplu.spsolve of the same system without JAX.
Errors are backward errors of `solve`, and for gradients the relative difference to those of gpusplu.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import gpusplu as gs

from .. import peers, records
from ..matrices import load
from ..options import measured, note, present
from ..timing import backward_error, timed

CASES = ("add20", "memplus", "poisson:100x100")
PEERS, BUDGET = ("jax_spsolve", "klujax", "sparsax"), 0.0


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


class Fresh:
    """A call with values that it has not seen, which are made beforehand."""

    def __init__(self, function, values, b):
        self.function, self.values, self.b, self.number = function, values, b, 0

    def __call__(self):
        """Seconds of the next one."""
        self.number += 1
        values = settled(self.values * (1 + 1e-7 * self.number))
        return timed(lambda: settled(self.function(values, self.b)))[0]


def settled(arrays):
    """Arrays that are there, of JAX or not."""
    import jax

    return jax.block_until_ready(arrays)


def rounds(calls, repeat, number):
    """Least seconds of each call, made again and again, the calls taking turns by rounds."""
    return [
        min(took)
        for took in zip(*([min(call() for _ in range(number)) for call in calls] for _ in range(repeat)), strict=True)
    ]


def without_jax(A):
    """gpusplu.spsolve of values of a CSR matrix."""

    def solve(values, b):
        return gs.spsolve(sp.csr_array((values, A.indices, A.indptr), shape=A.shape), b)

    return solve


def drawn(A, systems=()):
    """Values near those of A and right-hand sides."""
    rng = np.random.default_rng(0)
    values = A.data * (1 + 0.01 * rng.standard_normal((*systems, A.nnz)))
    return values, rng.standard_normal((*systems, A.shape[0]))


def error_of(phase, found, ours, A, values, b):
    """Backward error of a solution, relative difference of gradients, or None."""
    if phase == "solve":
        return backward_error(sp.csr_array((values, A.indices, A.indptr)), np.asarray(found), b)
    if phase == "vmap":
        return None
    parts = [(np.asarray(a), np.asarray(b)) for a, b in zip(found[1], ours[1], strict=True)]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in parts)


def compare(case, names, systems, repeat):
    """A record for each phase and peer."""
    import jax

    jax.config.update("jax_enable_x64", True)
    A = sp.csr_array(load(case))
    A.sort_indices()
    compiled = [calls_of(ours(A), True)]
    compiled += [calls_of(peers.named(name).solver(A), peers.named(name).batches) for name in names]
    for phase, number in (("solve", 40), ("gradient", 40), ("vmap", 1)):
        values, b = drawn(A, (systems,) if phase == "vmap" else ())
        found = [settled(calls[phase](values, b)) for calls in compiled]  # compiles
        calls = [Fresh(calls[phase], jax.numpy.asarray(values), jax.numpy.asarray(b)) for calls in compiled]
        beside = [Fresh(without_jax(A), values, b)] if phase == "solve" else []
        took = rounds([*calls, *beside], repeat, number)
        more = {"solve": {"numpy_s": took[-1]}, "gradient": {}, "vmap": {"systems": systems}}[phase]
        errors = [error_of(phase, one, found[0], A, values, b) for one in found]
        rows = zip(names, took[1:], errors[1:]) if names else [("none", None, None)]  # noqa: B905
        for name, there, error in rows:
            more |= {"peer_backward_error": error, "n": A.shape[0]}
            yield records.make(case, jax.default_backend(), phase, took[0], name, there, errors[0], **more)


def run(arguments):
    if not find_spec("jax"):
        note("JAX has to be installed")
        return
    names = present(arguments)
    yield from measured(
        arguments, arguments.cases, lambda case: compare(case, names, arguments.systems, arguments.repeat)
    )
