"""The core's own factor: the CPU engine's result, the source of pivots for other engines, and their fallback."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .. import _core
from ..common.matrix import Pattern
from ..common.options import Options, may_reuse_analysis, options_of_analysis
from ..cost.model import REFACTORIZATIONS


def cpu_factor(
    symbolic: Any, pattern: Pattern, canonical: np.ndarray, options: Options, kind: str = "lu", delays: Any = None
) -> Any:
    """Factor canonical values, shape (nnz,), by the core's analysis `symbolic`.

    `delays`: a ``_core.Delays`` of the pattern, which LDL^T factorizations read and update.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    spec = spec_of(kind, "csc", options)
    return _core.factor(spec, pattern.core, symbolic, delays or _core.Delays(), canonical)


def spec_of(kind: str, format: str, options: Options, refactorizations: float = REFACTORIZATIONS) -> Any:
    """The core's form of the options. The pattern cache compares its tag; without one it is not used."""
    make = _spec if options.perm is None else _spec.__wrapped__  # an array has no hash
    return make(kind, format, options, refactorizations)


@lru_cache(maxsize=256)
def _spec(kind: str, format: str, options: Options, refactorizations: float) -> Any:
    perm = None if options.perm is None else options.perm.tobytes()
    tag = (kind, format, options_of_analysis(options), perm, refactorizations)
    return _core.FactorSpec(
        kind,
        format,
        tag if may_reuse_analysis(kind, options) else None,
        ordering=options.ordering,
        perm=options.perm,
        matching=options.matching,
        symmetric=options.symmetric,
        refactorizations=refactorizations,
        pivot_threshold=options.pivot_threshold,
        pivoting=options.pivoting,
        refine=options.refine,
        hermitian=options.hermitian,
    )
