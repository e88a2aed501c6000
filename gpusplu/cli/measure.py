"""Seconds of each phase of an engine on one matrix, for tables and for the calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..common import matrix
from ..common.timing import Measured, backward_error, nothing, other_values, repeated, synchronizer, timed
from ..engines import registry
from ..errors import GpuspluError
from ..linalg import analyze


def measure(
    A: sp.csc_array,
    engine: Any,
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
    finish = synchronizer() if registry.named(factor.engine).on_device or on_device else nothing
    factor.refactor(new)
    x = factor.solve(rhs)
    error = backward_error(scaled, x if isinstance(x, np.ndarray) else x.get(), b)
    refactor = repeated(lambda: factor.refactor(new), budget, finish)
    solve = repeated(lambda: factor.solve(rhs), budget, finish)
    step = repeated(lambda: factor.refactor_solve(new, rhs), budget, finish)
    return Measured(analysis, factorization, refactor, solve, step, error, factor)


def failure(measuring: Callable[[], Measured]) -> Measured | str:
    """The measurements, or the reason why there are none."""
    try:
        return measuring()
    except (GpuspluError, RuntimeError, ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
