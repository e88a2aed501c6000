"""Inertia of LDL^T on a device: signs of D, and the certificate of core/numeric/factor_inertia.cpp by solves there.

The kernels invert the diagonal blocks of D and store them symmetric to the last bit, so that what they solve with is
the inverse of a Hermitian matrix with their inertia, up to rounding in the solves, which the certificate sees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from .recorded import Recorded

SAMPLES: int = _core.INERTIA_SAMPLES


def inertia_of(recorded: Recorded, symbolic: Any) -> tuple[bool, bool, int, int, float] | None:
    """(held, certain, positive, negative, distance) as the core's factor returns it, for an accepted factorization.

    None if it is not certain; the CPU engine then examines it.
    """
    stream = recorded.begin()
    counts = recorded.program.signs_of_pivots(stream, recorded.buffers)
    if counts is None or counts[2] or counts[0] + counts[1] != recorded.n:
        return None
    distance = distance_of(recorded, symbolic)
    return (True, True, counts[0], counts[1], distance) if distance < _core.CERTAIN_DISTANCE else None


def distance_of(recorded: Recorded, symbolic: Any) -> float:
    """Estimate of ``||I - A (L D L^H)^-1||``, scaled; NaN if numbers left the dtype's range."""
    n, dtype, total = recorded.n, recorded.program.dtype, 0.0
    scale = np.asarray(symbolic.row_scale) if symbolic.row_scale.size else np.ones(n)
    samples = np.random.default_rng(n).standard_normal((SAMPLES, n))
    for begin, end in recorded.buffers.chunks(SAMPLES):
        nrhs, stream = end - begin, recorded.begin()
        vectors = recorded.buffers.vectors(nrhs)
        recorded.send(stream, vectors.b.pointer, np.ascontiguousarray(samples[begin:end] / scale).astype(dtype).T)
        stream.replay(recorded.graph("solve", 0, nrhs, 1))
        stream.synchronize()
        residual = recorded.vector(vectors.residual, nrhs)
        total += float((np.abs(residual.astype(complex) * scale) ** 2).sum())
    return float(np.sqrt(total / SAMPLES))
