"""Iterative refinement on a device, by a graph a step."""

from __future__ import annotations

from ..kernels.queue import Queue
from .recorded import Recorded

# In units of the precision, as the CPU engine has them: solves above the first are refined, one that stays above the
# second is left to the CPU engine.
REFINE_ABOVE, ACCEPT_BELOW = 8, 100
MOST_STEPS = 3


def refine(recorded: Recorded, queue: Queue, trans: int, nrhs: int, error: float, enough: float) -> tuple[float, int]:
    """Refine the solutions in the buffers while that helps and their backward error is above `enough`.

    Returns
    -------
    error : float
        Of what is left there.
    steps : int
        That helped.
    """
    vectors = recorded.buffers.vectors(nrhs)
    for steps in range(MOST_STEPS):
        queue.replay(recorded.graph("refine", trans, nrhs))
        queue.synchronize()
        after = recorded.backward_error()
        if not after < error:
            queue.copy(vectors.x.pointer, vectors.kept.pointer, recorded.vector_bytes(nrhs))
            return error, steps
        helps = after < 0.5 * error
        error = after
        if not helps or error <= enough:
            return error, steps + 1
    return error, MOST_STEPS
