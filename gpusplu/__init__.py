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

from .common.counting import factorization_count as factorization_count
from .common.threads import register_with_threadpoolctl

try:
    from ._core import uninterrupted
except ModuleNotFoundError:  # gpusplu.distributed works in copies without the core

    def uninterrupted(function: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[misc]
        """`function` of the arguments; with the core, signals with Python handlers wait until it has ended."""
        return function(*arguments)

else:
    from .install import enabled as enabled
    from .install import install as install
    from .install import uninstall as uninstall

if TYPE_CHECKING:  # an alias makes a name public for type checkers
    from . import distributed as distributed
    from . import gallery as gallery
    from . import linalg as linalg
    from . import plotting as plotting
    from . import typing as typing
    from .common.results import Inertia as Inertia
    from .common.stats import Explanation as Explanation
    from .common.stats import Stats as Stats
    from .dispatch.patterns import cache_clear as cache_clear
    from .dispatch.patterns import cache_info as cache_info
    from .dispatch.patterns import cache_limit as cache_limit
    from .engines.repaired_batch import BatchStatus as BatchStatus
    from .errors import *  # noqa: F403
    from .factors.batch import BatchedCholeskyFactor as BatchedCholeskyFactor
    from .factors.batch import BatchedLUFactor as BatchedLUFactor
    from .factors.batch import cholesky_batch as cholesky_batch
    from .factors.batch import splu_batch as splu_batch
    from .factors.cholesky import CholeskyFactor as CholeskyFactor
    from .factors.ldl import LDLFactor as LDLFactor
    from .factors.lu import LUFactor as LUFactor
    from .factors.schur import SchurFactor as SchurFactor
    from .factors.schur import SchurSymbolic as SchurSymbolic
    from .factors.symbolic import Symbolic as Symbolic
    from .factors.updated import UpdatedFactor as UpdatedFactor
    from .linalg import analyze as analyze
    from .linalg import cholesky as cholesky
    from .linalg import explain as explain
    from .linalg import factorized as factorized
    from .linalg import ldlt as ldlt
    from .linalg import splu as splu
    from .linalg import spsolve as spsolve

__version__ = "0.1.0"

# Names by the modules that they are imported from when they are used first: these need NumPy or SciPy, which take
# longer to import than all of gpusplu.
LAZY = {
    name: module
    for module, names in {
        "common.results": "Inertia",
        "common.stats": "Explanation Stats",
        "dispatch.patterns": "cache_clear cache_info cache_limit",
        "engines.repaired_batch": "BatchStatus",
        "errors": "AccuracyError BatchError DeviceFailedError DeviceMemoryError EngineUnavailableError GpuspluError "
        "HostMemoryError IllConditionedUpdateError NoSymmetricFactorError NonFiniteError NotHermitianError "
        "NotPositiveDefiniteError PatternMismatchError SolverError",
        "factors.batch": "BatchedCholeskyFactor BatchedLUFactor cholesky_batch splu_batch",
        "factors.cholesky": "CholeskyFactor",
        "factors.ldl": "LDLFactor",
        "factors.lu": "LUFactor",
        "factors.schur": "SchurFactor SchurSymbolic",
        "factors.symbolic": "Symbolic",
        "factors.updated": "UpdatedFactor",
        "linalg": "analyze cholesky explain factorized ldlt splu spsolve",
    }.items()
    for name in names.split()
}
MODULES = ("distributed", "gallery", "linalg", "plotting", "typing")
__all__ = sorted([*LAZY, *MODULES, "enabled", "factorization_count", "install", "uninstall"])

register_with_threadpoolctl()


if not TYPE_CHECKING:  # else type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name not in LAZY and name not in (*MODULES, "errors"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # A signal handler that uses a module during its import would find it incomplete, and a handler that raises
        # would leave NumPy in a state in which it cannot be imported again.
        module = uninterrupted(import_module, f".{LAZY.get(name, name)}", __name__)
        value = getattr(module, name) if name in LAZY else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Public names."""
    return sorted([*__all__, "__version__"])
