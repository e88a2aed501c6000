"""SciPy's own functions, whether or not install() put stubs in their places, and warnings that look like SciPy's."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any


def original(name: str) -> Callable[..., Any]:
    """scipy.sparse.linalg's `name` as SciPy defined it."""
    import scipy.sparse.linalg

    function: Callable[..., Any] = inspect.unwrap(getattr(scipy.sparse.linalg, name))
    return function


def __getattr__(name: str) -> Any:
    """SciPy's functions by name: where pickle finds them while install() holds their places."""
    if name in ("splu", "spsolve", "factorized"):
        return original(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def umfpack_is_demanded() -> bool:
    """Whether use_solver(useUmfpack=True) was called in this thread although UMFPACK is not there."""
    linsolve = sys.modules.get("scipy.sparse.linalg._dsolve.linsolve")
    chosen = getattr(getattr(linsolve, "useUmfpack", None), "u", False)
    return bool(chosen and getattr(linsolve, "noScikit", False))


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line that called into gpusplu."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
