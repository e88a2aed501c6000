"""The CPU engine: the core's own factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..errors import NotPositiveDefiniteError
from ..matrix import Pattern
from ..options import Options


def cpu_factor(symbolic: Any, pattern: Pattern, canonical: np.ndarray, options: Options) -> Any:
    """Factor canonical values, shape (nnz,), by the core's analysis `symbolic`.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    try:
        return _core.factor(
            symbolic,
            pattern.core,
            canonical,
            pivot_threshold=options.pivot_threshold,
            pivoting=options.pivoting,
            refine=options.refine,
        )
    except _core.NotPositiveDefinite as error:
        raise NotPositiveDefiniteError(error.column, error.pivot) from None


def cpu_refactor(factor: Any, canonical: np.ndarray) -> None:
    """Factor other canonical values with a factor of the core.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    try:
        factor.refactor(canonical)
    except _core.NotPositiveDefinite as error:
        raise NotPositiveDefiniteError(error.column, error.pivot) from None
