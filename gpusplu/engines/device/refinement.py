"""Iterative refinement on a device, one graph per step; the core's accuracy policy decides how many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...cuda.stream import Stream
from .recorded import Recorded


def refine(
    recorded: Recorded, stream: Stream, trans: int, nrhs: int, policy: Any, pivots: Any, symbolic: Any
) -> _core.Refined:
    """Refine the solutions in the buffers by the accuracy policy; the host examines errors of single rows.

    Parameters
    ----------
    recorded : Recorded
        After a measured solve.
    stream : Stream
    trans, nrhs : int
    policy : _core.AccuracyPolicy
    pivots : _core.PivotReport
        Of the factorization.
    symbolic : _core.Symbolic
        Its scales show which rows hold nothing but rounding errors.
    """
    vectors = recorded.buffers.vectors(nrhs)

    def measure(by_rows: bool) -> tuple[float, float]:
        return recorded.backward_error(), rowwise_error(recorded, trans, nrhs, symbolic) if by_rows else 0.0

    def step(sized: bool) -> float:
        before = recorded.vector(vectors.x, nrhs) if sized else None
        stream.replay(recorded.graph("refine", trans, nrhs))
        stream.synchronize()
        if before is None:
            return 0.0
        x = recorded.vector(vectors.x, nrhs)
        return _core.relative_size((x - before).reshape(-1), x.reshape(-1), nrhs)

    def go_back() -> None:
        stream.copy(vectors.x.pointer, vectors.kept.pointer, recorded.vector_bytes(nrhs))

    return policy.refine(pivots, measure, step, go_back)  # type: ignore[no-any-return]


def rowwise_error(recorded: Recorded, trans: int, nrhs: int, symbolic: Any) -> float:
    """Of the solutions in the buffers, the largest over all rows."""
    vectors, pattern = recorded.buffers.vectors(nrhs), recorded.program.pattern
    scale = np.asarray(symbolic.col_scale if trans else symbolic.row_scale, dtype=float)
    b, x = (recorded.vector(vector, nrhs).reshape(-1) for vector in (vectors.b, vectors.x))
    return _core.rowwise_error(pattern.ptr, pattern.ind, recorded.values(), "NTH"[trans], x, b, scale)
