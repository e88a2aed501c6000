"""What the accuracy policy needs of a factor on a device: pivot reports, iterative refinement, the inertia of LDL^T.

Refinement stays between graphs, one per step: the core's policy decides on the host how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...cuda.stream import Stream
from .buffers import Status
from .call import Call, CommandGraphs

SAMPLES: int = _core.INERTIA_SAMPLES


def report_of(found: Status, structure: Any, growth_bound: float) -> _core.PivotReport:
    """Pivot report for the accuracy policy, of a factorization by an analysis, or a plan, that knows its kind."""
    failed = found.not_finite > 0 or found.growth > growth_bound
    if structure.ldlt:  # the error that a replaced pivot causes in a block is not symmetric
        failed = failed or found.n_perturbed > 0
    if structure.cholesky:
        return _core.PivotReport(failed=failed or found.n_perturbed > 0)
    return _core.PivotReport(
        failed=failed, n_perturbed=found.n_perturbed, n_tiny=found.n_tiny, max_multiplier=found.growth
    )


def refine(
    commands: CommandGraphs, stream: Stream, trans: int, nrhs: int, policy: Any, pivots: Any, symbolic: Any
) -> _core.Refined:
    """Refine the solutions in the buffers by the accuracy policy; the host examines errors of single rows.

    Parameters
    ----------
    commands : CommandGraphs
        After a measured solve.
    stream : Stream
    trans, nrhs : int
    policy : _core.AccuracyPolicy
    pivots : _core.PivotReport
        Of the factorization.
    symbolic : _core.Symbolic
        Its scales show which rows hold nothing but rounding errors.
    """
    vectors = commands.buffers.vectors(nrhs)

    def measure(by_rows: bool) -> tuple[float, float]:
        return commands.backward_error(), rowwise_error(commands, trans, nrhs, symbolic) if by_rows else 0.0

    def step(sized: bool) -> float:
        before = commands.vector(vectors.x, nrhs) if sized else None
        stream.replay(commands.graph(Call(trans=trans, nrhs=nrhs, measured=True, steps=1)))
        stream.synchronize()
        if before is None:
            return 0.0
        x = commands.vector(vectors.x, nrhs)
        return _core.relative_size((x - before).reshape(-1), x.reshape(-1), nrhs)

    def go_back() -> None:
        stream.copy(vectors.x.pointer, vectors.kept.pointer, commands.vector_bytes(nrhs))

    return policy.refine(pivots, measure, step, go_back)


def rowwise_error(commands: CommandGraphs, trans: int, nrhs: int, symbolic: Any) -> float:
    """Of the solutions in the buffers, the largest over all rows."""
    vectors, pattern = commands.buffers.vectors(nrhs), commands.program.pattern
    scale = np.asarray(symbolic.col_scale if trans else symbolic.row_scale, dtype=float)
    b, x = (commands.vector(vector, nrhs).reshape(-1) for vector in (vectors.b, vectors.x))
    return _core.rowwise_error(pattern.ptr, pattern.ind, commands.values(), "NTH"[trans], x, b, scale)


def inertia_of(commands: CommandGraphs, symbolic: Any) -> tuple[bool, bool, int, int, float] | None:
    """(held, certain, positive, negative, distance) as the core's factor returns it, for an accepted factorization.

    The kernels invert the diagonal blocks of D and store them symmetric to the last bit, so that what they solve with
    is the inverse of a Hermitian matrix with their inertia, up to rounding in the solves, which the certificate of
    core/numeric/factor.cpp sees. None if it is not certain; the CPU engine then examines it.
    """
    stream = commands.begin()
    counts = commands.program.signs_of_pivots(stream, commands.buffers)
    if counts is None or counts[2] or counts[0] + counts[1] != commands.n:
        return None
    distance = distance_of(commands, symbolic)
    return (True, True, counts[0], counts[1], distance) if distance < _core.CERTAIN_DISTANCE else None


def distance_of(commands: CommandGraphs, symbolic: Any) -> float:
    """Estimate of ``||I - A (L D L^H)^-1||``, scaled; NaN if numbers left the dtype's range."""
    n, dtype, total = commands.n, commands.program.dtype, 0.0
    scale = np.asarray(symbolic.row_scale) if symbolic.row_scale.size else np.ones(n)
    samples = np.random.default_rng(n).standard_normal((SAMPLES, n))
    for begin, end in commands.buffers.chunks(SAMPLES):
        nrhs, stream = end - begin, commands.begin()
        vectors = commands.buffers.vectors(nrhs)
        commands.send(stream, vectors.b.pointer, np.ascontiguousarray(samples[begin:end] / scale).astype(dtype).T)
        stream.replay(commands.graph(Call(solve=True, nrhs=nrhs, measured=True)))
        stream.synchronize()
        residual = commands.vector(vectors.residual, nrhs)
        total += float((np.abs(residual.astype(complex) * scale) ** 2).sum())
    return float(np.sqrt(total / SAMPLES))
