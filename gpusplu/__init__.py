"""Sparse direct solvers with SciPy's signatures.

>>> import gpusplu as gs
>>> A, b = gs.gallery.poisson(20, 20), np.ones(400)
>>> lu = gs.splu(A)
>>> x = lu.solve(b)
>>> lu.refactor(2 * A.data)
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .counting import factorization_count
from .threads import register_with_threadpoolctl

try:
    from ._core import uninterrupted
except ModuleNotFoundError:  # gpusplu.distributed works in copies without the core

    def uninterrupted(function: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[misc]
        """`function` of the arguments; with the core, signals with Python handlers wait until it has ended."""
        return function(*arguments)

else:
    from .install import enabled, install, uninstall

if TYPE_CHECKING:
    from . import distributed, gallery, linalg, plotting, typing
    from .batch import BatchedCholeskyFactor, BatchedLUFactor
    from .batch_watch import BatchStatus
    from .batches import cholesky_batch, splu_batch
    from .errors import (
        AccuracyError,
        BatchError,
        DeviceFailedError,
        DeviceMemoryError,
        EngineUnavailableError,
        GpuspluError,
        HostMemoryError,
        IllConditionedUpdateError,
        NonFiniteError,
        NoSymmetricFactorError,
        NotHermitianError,
        NotPositiveDefiniteError,
        PatternMismatchError,
        SolverError,
    )
    from .factor import CholeskyFactor, LUFactor
    from .ldl_factor import LDLFactor
    from .linalg import analyze, cholesky, explain, factorized, ldlt, splu, spsolve
    from .patterns import cache_clear, cache_info, cache_limit
    from .results import Inertia
    from .schur import SchurFactor, SchurSymbolic
    from .stats import Explanation, Stats
    from .symbolic import Symbolic
    from .updated import UpdatedFactor

__version__ = "0.1.0"

__all__ = [
    "AccuracyError",
    "BatchError",
    "BatchStatus",
    "BatchedCholeskyFactor",
    "BatchedLUFactor",
    "CholeskyFactor",
    "DeviceFailedError",
    "DeviceMemoryError",
    "EngineUnavailableError",
    "Explanation",
    "GpuspluError",
    "HostMemoryError",
    "IllConditionedUpdateError",
    "Inertia",
    "LDLFactor",
    "LUFactor",
    "NoSymmetricFactorError",
    "NonFiniteError",
    "NotHermitianError",
    "NotPositiveDefiniteError",
    "PatternMismatchError",
    "SchurFactor",
    "SchurSymbolic",
    "SolverError",
    "Stats",
    "Symbolic",
    "UpdatedFactor",
    "analyze",
    "cache_clear",
    "cache_info",
    "cache_limit",
    "cholesky",
    "cholesky_batch",
    "distributed",
    "enabled",
    "explain",
    "factorization_count",
    "factorized",
    "gallery",
    "install",
    "ldlt",
    "linalg",
    "plotting",
    "splu",
    "splu_batch",
    "spsolve",
    "typing",
    "uninstall",
]

# Where the names come from that need NumPy or SciPy, which take longer to import than all of gpusplu.
LAZY = {
    "AccuracyError": "errors",
    "BatchError": "errors",
    "BatchStatus": "batch_watch",
    "BatchedCholeskyFactor": "batch",
    "BatchedLUFactor": "batch",
    "CholeskyFactor": "factor",
    "DeviceFailedError": "errors",
    "DeviceMemoryError": "errors",
    "EngineUnavailableError": "errors",
    "Explanation": "stats",
    "GpuspluError": "errors",
    "HostMemoryError": "errors",
    "IllConditionedUpdateError": "errors",
    "Inertia": "results",
    "LDLFactor": "ldl_factor",
    "LUFactor": "factor",
    "NoSymmetricFactorError": "errors",
    "NonFiniteError": "errors",
    "NotHermitianError": "errors",
    "NotPositiveDefiniteError": "errors",
    "PatternMismatchError": "errors",
    "SchurFactor": "schur",
    "SchurSymbolic": "schur",
    "SolverError": "errors",
    "Stats": "stats",
    "Symbolic": "symbolic",
    "UpdatedFactor": "updated",
    "analyze": "linalg",
    "cache_clear": "patterns",
    "cache_info": "patterns",
    "cache_limit": "patterns",
    "cholesky": "linalg",
    "cholesky_batch": "batches",
    "distributed": "distributed",
    "errors": "errors",
    "explain": "linalg",
    "factorized": "linalg",
    "gallery": "gallery",
    "ldlt": "linalg",
    "linalg": "linalg",
    "plotting": "plotting",
    "splu": "linalg",
    "splu_batch": "batches",
    "spsolve": "linalg",
    "typing": "typing",
}

register_with_threadpoolctl()


if not TYPE_CHECKING:  # else every name would be one

    def __getattr__(name: str) -> Any:
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # A handler that uses what it interrupts the import of would find half of it, and one that raises would leave
        # NumPy behind such that it cannot be imported again.
        module = uninterrupted(import_module, f".{LAZY[name]}", __name__)
        value = module if name == LAZY[name] else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What is public; what is private can be imported all the same."""
    return sorted([*__all__, "__version__"])
