"""The core's own factor: the CPU engine's result, the source of pivots for other engines, and their fallback."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..common.matrix import Pattern
from ..common.options import Options
from ..cost.calibration import for_core
from ..errors import NotPositiveDefiniteError


class indefinite_by_name:
    """Convert the core's exception to the public one."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, _core.NotPositiveDefinite):
            raise NotPositiveDefiniteError(error.column, error.pivot) from None


def cpu_factor(symbolic: Any, pattern: Pattern, canonical: np.ndarray, options: Options) -> Any:
    """Factor canonical values, shape (nnz,), by the core's analysis `symbolic`.

    Fronts renumber columns, so if their order has to stay natural an analysis for fronts is not used.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    if options.ordering == "natural" and options.perm is None and symbolic.method == "front" and symbolic.kind == "lu":
        symbolic = _core.analyze(pattern.ptr, pattern.ind, canonical, for_core(), ordering="natural")
    with indefinite_by_name():
        return _core.factor(
            symbolic,
            pattern.core,
            canonical,
            pivot_threshold=options.pivot_threshold,
            pivoting=options.pivoting,
            refine=options.refine,
            hermitian=options.hermitian,
            any_values=options.symmetric,
            own_order=own_order(options, pattern.n),
        )


def own_order(options: Options, n: int) -> np.ndarray | None:
    """The order of columns of L, U and D that the caller requests, if any."""
    if options.ordering != "natural":
        return None
    return np.arange(n, dtype=np.int32) if options.perm is None else options.perm


def cpu_refactor(factor: Any, canonical: np.ndarray) -> None:
    """Factor other canonical values, symmetric where required, with a factor of the core; raises the same errors as
    `cpu_factor`."""
    with indefinite_by_name():
        factor.refactor(canonical, None, True)
