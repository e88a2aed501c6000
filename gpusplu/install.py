"""install, uninstall and enabled: code that was written for SciPy, unchanged, with our solvers.

SciPy has no entry point for sparse direct solvers, so the names are rebound where they live: in every loaded module
that holds splu, spsolve or factorized of scipy.sparse.linalg under any name, SciPy's own (integrate, sparse.linalg) and
the caller's. Each becomes a stub that calls SciPy's function unless gpusplu is active in the calling context; modules
loaded later import the stub. Copies elsewhere (class attributes, default arguments, closures) keep SciPy's functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock
from types import ModuleType
from typing import Any

from . import _scipy

NAMES = ("splu", "spsolve", "factorized")

if "_stubs" not in globals():  # else this module is loaded again, and what it did before still holds
    # Whether this context is inside enabled(); install() holds for all contexts.
    _enabled_here: ContextVar[bool] = ContextVar("gpusplu_enabled", default=False)
    _lock = RLock()
    _installed = False
    _holders = 0
    _stubs: dict[str, Callable[..., Any]] = {}


def _renew_lock() -> None:
    """In a forked child: a thread that is not there may hold it."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_renew_lock)


def install() -> None:
    """Make scipy.sparse.linalg.splu, spsolve and factorized ours, in all threads, until :func:`uninstall`."""
    global _installed
    with _lock:
        if not _installed:
            _hold()
            _installed = True


def uninstall() -> None:
    """Give SciPy its functions back. Does nothing if :func:`install` was not called."""
    global _installed
    with _lock:
        if _installed:
            _installed = False
            _release()


@contextmanager
def enabled() -> Iterator[None]:
    """Like install() within a ``with`` block, for the current thread or task only."""
    with _lock:
        _hold()
    token = _enabled_here.set(True)
    try:
        yield
    finally:
        _enabled_here.reset(token)
        with _lock:
            _release()


def is_active() -> bool:
    """Whether a call made here and now through SciPy's names would reach gpusplu."""
    return _installed or _enabled_here.get()


def _hold() -> None:
    global _holders
    if _holders == 0:
        if not _stubs:
            _stubs.update({name: _make_stub(name) for name in NAMES})
        _rebind({id(stub.__wrapped__): stub for stub in _stubs.values()})  # type: ignore[attr-defined]
        _name_originals(_scipy.__name__)
    _holders += 1


def _release() -> None:
    global _holders
    _holders -= 1
    if _holders == 0:
        _rebind({id(stub): stub.__wrapped__ for stub in _stubs.values()})  # type: ignore[attr-defined]
        _name_originals(None)


def _name_originals(module: str | None) -> None:
    """Say in which module SciPy's functions are found, which pickle looks up; None for their own."""
    for stub in _stubs.values():
        stub.__wrapped__.__module__ = module or stub.__module__  # type: ignore[attr-defined]


def _make_stub(name: str) -> Callable[..., Any]:
    import scipy.sparse.linalg

    from . import compat

    original = getattr(scipy.sparse.linalg, name)
    ours = getattr(compat, name)

    @wraps(original)
    def stub(*args: Any, **kwargs: Any) -> Any:
        if is_active():
            return ours(original, *args, **kwargs)
        return original(*args, **kwargs)

    return stub


def _rebind(replacements: dict[int, Callable[..., Any]]) -> None:
    """Put ``replacements[id(value)]`` in the place of every module-level `value` it has one for."""
    modules: list[object] = list(sys.modules.values())  # anything may be put there
    for module in modules:
        if not isinstance(module, ModuleType):
            continue
        namespace = object.__getattribute__(module, "__dict__")  # does not wake modules that load lazily
        if str(namespace.get("__name__")).partition(".")[0] == __package__:
            continue
        if replacements.keys().isdisjoint(map(id, list(namespace.values()))):
            continue  # nearly all; quick, since there may be a thousand modules
        for name, value in list(namespace.items()):
            if id(value) in replacements:
                namespace[name] = replacements[id(value)]
