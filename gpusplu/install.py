"""install, uninstall and enabled: code that was written for SciPy, unchanged, with our solvers.

SciPy has no entry point for sparse direct solvers, so splu, spsolve and factorized of scipy.sparse.linalg get another
body. They stay the objects that they are: whoever holds one, as a name in a module, a default argument, an attribute of
a class, in a closure or a partial, from before or from now on, calls what is there at that time. The body calls the
function as SciPy made it, of which a copy is kept (_scipy.py), unless gpusplu is active in the calling context.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import FunctionType
from typing import Any

from . import _scipy

if "_holders" not in globals():  # else this module is loaded again, and what it did before still holds
    # Whether this context is inside enabled(); install() holds for all contexts.
    _enabled_here: ContextVar[bool] = ContextVar("gpusplu_enabled", default=False)
    _lock = RLock()
    _installed = False
    _holders = 0


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
        from . import compat

        for name in _scipy.NAMES:
            _replace(_scipy.function(name), _scipy.original(name), getattr(compat, name))
    _holders += 1


def _release() -> None:
    global _holders
    _holders -= 1
    if _holders == 0:
        for name in _scipy.NAMES:
            _restore(_scipy.function(name), _scipy.original(name))


def _body(*args: Any, _gpusplu: tuple[Callable[..., Any], ...], **kwargs: Any) -> Any:
    """What is called in the place of a function of SciPy's."""
    active, ours, original = _gpusplu
    if active():
        return ours(original, *args, **kwargs)
    return original(*args, **kwargs)


def _replace(function: FunctionType, original: FunctionType, ours: Callable[..., Any]) -> None:
    """Give a function another body than `original`, its copy; its signature is still read off that.

    Threads may call it meanwhile, so what the new body needs comes first and goes last: an argument by keyword that
    nobody passes, and which the old body does not look at.
    """
    function.__kwdefaults__ = {**(original.__kwdefaults__ or {}), "_gpusplu": (is_active, ours, original)}
    function.__wrapped__ = original  # type: ignore[attr-defined]
    function.__code__ = _body.__code__.replace(
        co_name=function.__name__,
        co_qualname=function.__qualname__,
        co_freevars=original.__code__.co_freevars,  # as many as the function has cells
    )


def _restore(function: FunctionType, original: FunctionType) -> None:
    function.__code__ = original.__code__
    function.__kwdefaults__ = original.__kwdefaults__
    function.__dict__.pop("__wrapped__", None)
    function.__dict__.update(original.__dict__)
