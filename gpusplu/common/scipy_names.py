"""Original functions of SciPy and CuPy, whether or not install() has replaced their bodies; warnings like SciPy's."""

from __future__ import annotations

import os
import sys
import warnings
from types import FunctionType
from typing import Any

NAMES = ("splu", "spsolve", "factorized")
#: Copies of the original functions.
_originals: dict[FunctionType, FunctionType] = {}
# Folder of gpusplu's code, which includes the bodies that install() puts into functions of SciPy and CuPy.
FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep


def function(name: str) -> FunctionType:
    """The function `name` of scipy.sparse.linalg with its current body, without wrappers of other code.

    If other code has replaced it by a function without ``__wrapped__``, the function seen before.
    """
    from inspect import unwrap

    from scipy.sparse.linalg._dsolve import linsolve

    def is_scipys(made: Any) -> bool:
        return getattr(made, "__globals__", None) is vars(linsolve)

    found: FunctionType = unwrap(getattr(linsolve, name), stop=is_scipys)
    if not is_scipys(found):
        found = next((made for made in _originals if is_scipys(made) and made.__name__ == name), found)
    return found


def original(name: str) -> FunctionType:
    """The original function `name` of scipy.sparse.linalg."""
    return original_of(function(name))


def functions() -> dict[str, FunctionType]:
    """All functions by name, with their current bodies."""
    return {name: function(name) for name in NAMES}


def original_of(made: FunctionType) -> FunctionType:
    """The original of a function."""
    if made not in _originals:  # before its body is replaced
        _originals.setdefault(made, copied(made))
    return _originals[made]


def copied(made: FunctionType) -> FunctionType:
    """A copy of a function, which pickle finds in this module."""
    copy = FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, made.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = made.__kwdefaults__, made.__annotations__
    copy.__doc__, copy.__qualname__, copy.__module__ = made.__doc__, made.__qualname__, __name__
    copy.__dict__.update(made.__dict__)
    return copy


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return original(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def umfpack_is_demanded() -> bool:
    """Whether use_solver(useUmfpack=True) was called although UMFPACK is not installed: in this thread, or with SciPy
    1.13, which has one setting for all threads, in any."""
    linsolve = sys.modules.get("scipy.sparse.linalg._dsolve.linsolve")
    setting = getattr(linsolve, "useUmfpack", False)
    chosen = setting if isinstance(setting, bool) else getattr(setting, "u", False)
    return bool(chosen and getattr(linsolve, "noScikit", False))


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line that called into gpusplu."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
