"""Timing of calls, values to time them with, and backward errors of solutions."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

MOST, LEAST = 200, 3  # number of repeated calls


class Measured(NamedTuple):
    """Seconds of a matrix with one engine; `refactor`, `solve` and `step` are medians of repeated calls.

    Attributes
    ----------
    step : float
        Time of `refactor_solve`.
    factor_object : Factor
        Factor of values other than the first ones.
    """

    analyze: float
    factor: float
    refactor: float
    solve: float
    step: float
    backward_error: float
    factor_object: Any


def other_values(A: sp.csc_array, cholesky: bool) -> sp.csc_array:
    """A with slightly scaled rows and columns; for `cholesky` with the same scales."""
    rng = np.random.default_rng(0)
    left = rng.uniform(0.95, 1.05, A.shape[0])
    right = left if cholesky else rng.uniform(0.95, 1.05, A.shape[1])
    scales = left[A.indices] * np.repeat(right, np.diff(A.indptr))
    return sp.csc_array((A.data * scales.astype(A.data.real.dtype), A.indices, A.indptr), shape=A.shape)


def backward_error(A: Any, x: np.ndarray, b: np.ndarray) -> float:
    """Normwise backward error ``|b - A x| / (|A| |x| + |b|)`` in the infinity norm; the worst of several columns."""
    if x.size == 0:
        return 0.0
    if sp.issparse(A):
        A = sp.csr_array(A, copy=True)  # abs sums duplicates in place, which changes the order of the caller's values
    rows = abs(A).sum(axis=1).max()
    residual, scale = abs(b - A @ x).max(axis=0), rows * abs(x).max(axis=0) + abs(b).max(axis=0)
    worst = np.max(np.where(residual > 0, residual, 0) / np.where(scale > 0, scale, 1))
    return float(worst) if np.all(np.isfinite(residual)) else float("nan")


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one call, without a garbage collection inside."""
    gc.collect()
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def nothing() -> None:
    """Synchronization of calls on the host: none."""


def synchronizer() -> Callable[[], None]:
    """A function that waits for CuPy's current stream."""
    import cupy

    return cupy.cuda.get_current_stream().synchronize


def repeated(function: Callable[[], Any], budget: float, finish: Callable[[], None] = nothing) -> float:
    """Median seconds of synchronized calls during `budget` seconds, after a warm-up of a third of that."""

    def call() -> float:
        start = perf_counter()
        function()
        finish()
        return perf_counter() - start

    gc.collect()
    took, end = call(), perf_counter() + budget / 3
    while perf_counter() < end:
        took = min(took, call())
    count = int(min(MOST, max(LEAST, budget / max(took, 1e-9))))
    return statistics.median(call() for _ in range(count))
