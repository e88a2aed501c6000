"""Solves that torch differentiates, eagerly and on the processor, compared with torch-sla.

Least seconds of a call with new values: `solve`, `gradient` (the loss and its gradients with respect to the values and
to b) and `batch` (`--systems` systems with one b each, in one call). `numpy_s` is gpusplu.spsolve of the same system
without torch. Errors are backward errors of `solve`, and for gradients the relative difference to those of gpusplu.
"""

from importlib.util import find_spec
from time import perf_counter

import scipy.sparse as sp

from .. import peers, records
from ..matrices import load
from ..options import measured, note, present
from .gradients import drawn, error_of, rounds, without_jax

CASES = ("poisson:10x10", "add20", "memplus", "poisson:100x100")
PEERS, BUDGET = ("torch_sla",), 0.0


def add_arguments(parser):
    parser.add_argument("--systems", type=int, default=256, help="of the batch")


def ours(A):
    """Our solve of a CSR matrix's values and a right-hand side."""
    import torch

    import gpusplu.torch

    index = (torch.from_numpy(one) for one in (A.indptr, A.indices, A.data))
    pattern = gpusplu.torch.Pattern(torch.sparse_csr_tensor(*index, A.shape, check_invariants=True))
    return lambda values, b: gpusplu.torch.spsolve(pattern, b, values=values)


def calls_of(solve):
    """Functions of values and b by phase."""
    import torch

    def forward(values, b):
        with torch.no_grad():
            return solve(values, b)

    def gradient(values, b):
        loss = (solve(values, b) ** 2).sum()
        return loss, torch.autograd.grad(loss, (values, b))

    return {"solve": forward, "gradient": gradient, "batch": forward}


class Fresh:
    """A call with values that it has not seen, which are made beforehand."""

    def __init__(self, function, values, b, make):
        self.function, self.values, self.b, self.make, self.number = function, values, make(b), make, 0

    def __call__(self):
        """Seconds of the next one."""
        self.number += 1
        values = self.make(self.values * (1 + 1e-7 * self.number))
        start = perf_counter()
        self.function(values, self.b)
        return perf_counter() - start


def tensor(array):
    """That wants a gradient."""
    import torch

    return torch.from_numpy(array).requires_grad_()


def compare(case, names, systems, repeat):
    """A record for each phase and peer."""
    A = sp.csr_array(load(case))
    A.sort_indices()
    made = [calls_of(solve) for solve in (ours(A), *(peers.named(name).solver(A) for name in names))]
    for phase, number in (("solve", 40), ("gradient", 40), ("batch", 1)):
        values, b = drawn(A, (systems,) if phase == "batch" else ())
        found = [calls[phase](tensor(values), tensor(b)) for calls in made]
        calls = [Fresh(calls[phase], values, b, tensor) for calls in made]
        beside = [Fresh(without_jax(A), values, b, lambda array: array)] if phase == "solve" else []
        took = rounds([*calls, *beside], repeat, number)
        more = {"solve": {"numpy_s": took[-1]}, "gradient": {}, "batch": {"systems": systems}}[phase]
        errors = [error_of("vmap" if phase == "batch" else phase, one, found[0], A, values, b) for one in found]
        rows = zip(names, took[1:], errors[1:]) if names else [("none", None, None)]  # noqa: B905
        for name, there, error in rows:
            more |= {"peer_backward_error": error, "n": A.shape[0]}
            yield records.make(case, "cpu", phase, took[0], name, there, errors[0], **more)


def run(arguments):
    if not find_spec("torch"):
        note("torch has to be installed")
        return
    names = present(arguments)
    yield from measured(
        arguments, arguments.cases, lambda case: compare(case, names, arguments.systems, arguments.repeat)
    )
