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

from .common.counting import factorization_count
from .common.threads import register_with_threadpoolctl

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
    from .common.results import Inertia
    from .common.stats import Explanation, Stats
    from .dispatch.patterns import cache_clear, cache_info, cache_limit
    from .engines.repaired_batch import BatchStatus
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
    from .factors.batch import BatchedCholeskyFactor, BatchedLUFactor, cholesky_batch, splu_batch
    from .factors.cholesky import CholeskyFactor
    from .factors.ldl import LDLFactor
    from .factors.lu import LUFactor
    from .factors.schur import SchurFactor, SchurSymbolic
    from .factors.symbolic import Symbolic
    from .factors.updated import UpdatedFactor
    from .linalg import analyze, cholesky, explain, factorized, ldlt, splu, spsolve

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

# Modules of the names that need NumPy or SciPy, which take longer to import than all of gpusplu.
LAZY = {
    "AccuracyError": "errors",
    "BatchError": "errors",
    "BatchStatus": "engines.repaired_batch",
    "BatchedCholeskyFactor": "factors.batch",
    "BatchedLUFactor": "factors.batch",
    "CholeskyFactor": "factors.cholesky",
    "DeviceFailedError": "errors",
    "DeviceMemoryError": "errors",
    "EngineUnavailableError": "errors",
    "Explanation": "common.stats",
    "GpuspluError": "errors",
    "HostMemoryError": "errors",
    "IllConditionedUpdateError": "errors",
    "Inertia": "common.results",
    "LDLFactor": "factors.ldl",
    "LUFactor": "factors.lu",
    "NoSymmetricFactorError": "errors",
    "NonFiniteError": "errors",
    "NotHermitianError": "errors",
    "NotPositiveDefiniteError": "errors",
    "PatternMismatchError": "errors",
    "SchurFactor": "factors.schur",
    "SchurSymbolic": "factors.schur",
    "SolverError": "errors",
    "Stats": "common.stats",
    "Symbolic": "factors.symbolic",
    "UpdatedFactor": "factors.updated",
    "analyze": "linalg",
    "cache_clear": "dispatch.patterns",
    "cache_info": "dispatch.patterns",
    "cache_limit": "dispatch.patterns",
    "cholesky": "linalg",
    "cholesky_batch": "factors.batch",
    "distributed": "distributed",
    "errors": "errors",
    "explain": "linalg",
    "factorized": "linalg",
    "gallery": "gallery",
    "ldlt": "linalg",
    "linalg": "linalg",
    "plotting": "plotting",
    "splu": "linalg",
    "splu_batch": "factors.batch",
    "spsolve": "linalg",
    "typing": "typing",
}

register_with_threadpoolctl()


if not TYPE_CHECKING:  # else type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # A signal handler that uses a module during its import would find it incomplete, and a handler that raises
        # would leave NumPy in a state in which it cannot be imported again.
        module = uninterrupted(import_module, f".{LAZY[name]}", __name__)
        value = module if name == LAZY[name] else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Public names."""
    return sorted([*__all__, "__version__"])
