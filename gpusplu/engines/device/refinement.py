"""Iterative refinement on a device, by a graph a step, and the check of answers that pivots make doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...cuda.stream import Stream
from .recorded import Recorded

# In units of the precision, as the CPU engine has them: solves above the first are refined, one that stays above the
# second is left to the CPU engine.
REFINE_ABOVE, ACCEPT_BELOW = 8, 100
MOST_STEPS = 3


def refine(recorded: Recorded, stream: Stream, trans: int, nrhs: int, error: float, enough: float) -> tuple[float, int]:
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
        stream.replay(recorded.graph("refine", trans, nrhs))
        stream.synchronize()
        after = recorded.backward_error()
        if not after < error:
            stream.copy(vectors.x.pointer, vectors.kept.pointer, recorded.vector_bytes(nrhs))
            return error, steps
        helps = after < 0.5 * error
        error = after
        if not helps or error <= enough:
            return error, steps + 1
    return error, MOST_STEPS


def is_doubtful(status: Any, dtype: np.dtype) -> bool:
    """Whether a norm may hide what is wrong with a factor: pivots were perturbed, or multipliers are very large."""
    return bool(status.n_perturbed > 0 or status.growth > np.finfo(dtype).eps ** -0.5)


def settle(
    recorded: Recorded, stream: Stream, trans: int, nrhs: int, error: float, symbolic: Any
) -> tuple[float, int, bool]:
    """More steps for a doubtful factor until they are small, and what they say.

    As in the CPU engine (core/numeric/factor.cpp) the last step has to leave the first digit of the solutions as it is,
    and they have to be accurate row by row. The rows are looked at on the host.

    Returns
    -------
    error : float
        Of what is left in the buffers.
    steps : int
        That helped.
    sound : bool
    """
    eps = float(np.finfo(recorded.program.dtype).eps)
    vectors, pattern, values = recorded.buffers.vectors(nrhs), recorded.program.pattern, recorded.values()
    scale = np.asarray(symbolic.col_scale if trans else symbolic.row_scale, dtype=float)
    b, x = (recorded.vector(vector, nrhs) for vector in (vectors.b, vectors.x))

    def rowwise(x: np.ndarray) -> float:
        rows: float = _core.rowwise_error(
            pattern.ptr, pattern.ind, values, "NTH"[trans], x.reshape(-1), b.reshape(-1), scale
        )
        return rows

    rows, moved, steps = rowwise(x), 0.0, 0
    while steps < MOST_STEPS:
        stream.replay(recorded.graph("refine", trans, nrhs))
        stream.synchronize()
        refined, after = recorded.vector(vectors.x, nrhs), recorded.backward_error()
        rows_after = rowwise(refined)
        largest = abs(refined).max(axis=1)
        moved = float((abs(refined - x).max(axis=1) / np.where(largest > 0, largest, 1)).max())
        if not max(after, rows_after) < max(error, rows, REFINE_ABOVE * eps):
            stream.copy(vectors.x.pointer, vectors.kept.pointer, recorded.vector_bytes(nrhs))
            break
        helps = rows_after < 0.5 * rows
        x, error, rows, steps = refined, after, rows_after, steps + 1
        if moved <= eps**0.5 and not (helps and rows > REFINE_ABOVE * eps):
            break
    return error, steps, moved <= 0.1 and rows <= eps**0.5
