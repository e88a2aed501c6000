"""Seconds of each phase of an engine on one matrix, for tables and for the constants of `costs`."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from . import matrix
from .errors import GpuspluError
from .linalg import analyze

MOST, LEAST = 200, 3  # calls of what is repeated


class Measured(NamedTuple):
    """Seconds of a matrix with one engine; `refactor`, `solve` and `step` are medians of repeated calls.

    Attributes
    ----------
    step : float
        Of `refactor_solve`.
    factor_object : Factor
        Of other values than the first.
    """

    analyze: float
    factor: float
    refactor: float
    solve: float
    step: float
    backward_error: float
    factor_object: Any


def measure(
    A: sp.csc_array,
    engine: str,
    *,
    cholesky: bool = False,
    on_device: bool = False,
    budget: float = 0.2,
    **options: Any,
) -> Measured:
    """Analyse, factor, refactor with other values and solve.

    Parameters
    ----------
    A : csc_array, shape (n, n)
    engine : str
    cholesky : bool, optional
    on_device : bool, optional
        Values and right-hand sides are CuPy's.
    budget : float, optional
        How long refactor, solve and both together are repeated, each [s].
    **options
        Of `gpusplu.analyze`.

    Raises
    ------
    GpuspluError, RuntimeError
        What the engine raises.
    """
    put = matrix.to_device if on_device else np.asarray
    scaled = other_values(A, cholesky)
    b = scaled @ np.ones(A.shape[1], A.dtype)
    analysis, symbolic = timed(lambda: analyze(A, cholesky=cholesky, engine=engine, **options))
    factorization, factor = timed(lambda: symbolic.factor(A.data))
    new, rhs = put(scaled.data), put(b)
    finish = synchronizer() if factor.engine != "cpu" or on_device else nothing
    factor.refactor(new)
    x = factor.solve(rhs)
    error = backward_error(scaled, x if isinstance(x, np.ndarray) else x.get(), b)
    refactor = repeated(lambda: factor.refactor(new), budget, finish)
    solve = repeated(lambda: factor.solve(rhs), budget, finish)
    step = repeated(lambda: factor.refactor_solve(new, rhs), budget, finish)
    return Measured(analysis, factorization, refactor, solve, step, error, factor)


def other_values(A: sp.csc_array, cholesky: bool) -> sp.csc_array:
    """A with its rows and columns scaled a little, both alike for `cholesky`."""
    rng = np.random.default_rng(0)
    left = rng.uniform(0.95, 1.05, A.shape[0])
    right = left if cholesky else rng.uniform(0.95, 1.05, A.shape[1])
    scales = left[A.indices] * np.repeat(right, np.diff(A.indptr))
    return sp.csc_array((A.data * scales.astype(A.data.real.dtype), A.indices, A.indptr), shape=A.shape)


def backward_error(A: Any, x: np.ndarray, b: np.ndarray) -> float:
    """Normwise backward error ``|b - A x| / (|A| |x| + |b|)`` in the infinity norm; the worst of several columns."""
    if x.size == 0:
        return 0.0
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
    """What a call on the host has to wait for."""


def synchronizer() -> Callable[[], None]:
    """Waits for CuPy's current stream."""
    import cupy

    finish: Callable[[], None] = cupy.cuda.get_current_stream().synchronize
    return finish


def repeated(function: Callable[[], Any], budget: float, finish: Callable[[], None] = nothing) -> float:
    """Median seconds of calls, each waited for, for `budget` seconds after a third of it to warm up."""

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


def failure(measuring: Callable[[], Measured]) -> Measured | str:
    """What was measured, or why nothing was."""
    try:
        return measuring()
    except (GpuspluError, RuntimeError, ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
