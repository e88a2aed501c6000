"""install, uninstall and enabled: code that was written for SciPy or CuPy, unchanged, with our solvers.

They have no entry point for sparse direct solvers, so splu, spsolve and factorized of scipy.sparse.linalg and of
cupyx.scipy.sparse.linalg get another body. They stay the objects that they are: whoever holds one, as a name in a
module, a default argument, an attribute of a class, in a closure or a partial, from before or from now on, calls what
is there at that time. The body calls the function as it was made, of which a copy is kept (_scipy.py), unless gpusplu
is active in the calling context. CuPy's get theirs once somebody else has imported them (_cupyx.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import RLock
from types import FunctionType
from typing import Any

from . import _cupyx, _scipy

if "_holders" not in globals():  # else this module is loaded again, and what it did before still holds
    # True inside enabled(), False inside a function of others that we left a call to; else install() says.
    _enabled_here: ContextVar[bool | None] = ContextVar("gpusplu_enabled", default=None)
    _lock = RLock()
    _installed = False
    _holders = 0
    _replaced: list[FunctionType] = []
    _watch = _cupyx.Watch(lambda: _replace_cupyx())


def _renew_lock() -> None:
    """In a forked child: a thread that is not there may hold it."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_renew_lock)


def install() -> None:
    """Make splu, spsolve and factorized of scipy.sparse.linalg ours, in all threads, until :func:`uninstall`.

    And those of cupyx.scipy.sparse.linalg: now if that is imported, else when somebody imports it.

    See Also
    --------
    enabled, uninstall

    Examples
    --------
    >>> import scipy.sparse.linalg
    >>> gs.install()
    >>> lu = scipy.sparse.linalg.splu(gs.gallery.poisson(10, 10))
    >>> isinstance(lu, gs.LUFactor)
    True
    >>> gs.uninstall()
    """
    global _installed
    with _lock:
        if not _installed:
            _hold()
            _installed = True
    _catch_up()


def uninstall() -> None:
    """Give SciPy and CuPy their functions back. Does nothing if :func:`install` was not called.

    See Also
    --------
    install, enabled

    Examples
    --------
    >>> import scipy.sparse.linalg
    >>> gs.install()
    >>> gs.uninstall()
    >>> type(scipy.sparse.linalg.splu(gs.gallery.poisson(10, 10))).__name__
    'SuperLU'
    """
    global _installed
    with _lock:
        if _installed:
            _installed = False
            _release()


@contextmanager
def enabled() -> Iterator[None]:
    """Like :func:`install` within a ``with`` block, for the current thread or task only.

    See Also
    --------
    install, uninstall

    Examples
    --------
    >>> import scipy.sparse.linalg
    >>> with gs.enabled():
    ...     lu = scipy.sparse.linalg.splu(gs.gallery.poisson(10, 10))
    >>> isinstance(lu, gs.LUFactor)
    True
    """
    with _lock:
        _hold()
    token = _enabled_here.set(True)
    try:
        _catch_up()
        yield
    finally:
        _enabled_here.reset(token)
        with _lock:
            _release()


def is_active() -> bool:
    """Whether a call made here and now through SciPy's or CuPy's names would reach gpusplu."""
    here = _enabled_here.get()
    return _installed if here is None else here


def _hold() -> None:
    global _holders
    if _holders == 0:
        from . import compat

        _replace_all(_scipy.functions(), partial(getattr, compat))
        _watch.begin()
    _holders += 1


def _catch_up() -> None:
    """CuPy's functions may have been imported before we watched, or by a thread that is not done."""
    _cupyx.wait_for_import()  # without the lock, which that thread may need
    _replace_cupyx()


def _replace_cupyx() -> None:
    with _lock:
        if _holders > 0:
            _replace_all(_cupyx.functions(), _later)


def _later(name: str) -> Callable[..., Any]:
    """Our function for one of CuPy's, from a module that imports CuPy: not before it is called."""

    def ours(*args: Any, **kwargs: Any) -> Any:
        from . import compat_cupyx

        return getattr(compat_cupyx, name)(*args, **kwargs)

    return ours


def _replace_all(functions: dict[str, FunctionType], ours: Callable[[str], Callable[..., Any]]) -> None:
    for name, function in functions.items():
        if function not in _replaced:
            _replace(function, _scipy.original_of(function), ours(name))
            _replaced.append(function)


def _release() -> None:
    global _holders
    _holders -= 1
    if _holders == 0:
        for function in _replaced:
            _restore(function, _scipy.original_of(function))
        _replaced.clear()


def _body(*args: Any, _gpusplu: tuple[Callable[..., Any], ...], **kwargs: Any) -> Any:
    """What is called in the place of a function of SciPy's or CuPy's."""
    active, ours, theirs, original = _gpusplu
    if active():
        return ours(theirs, *args, **kwargs)
    return original(*args, **kwargs)


def _alone(original: Callable[..., Any]) -> Callable[..., Any]:
    """`original`, and what it calls as it was made too: CuPy's splu wraps what SciPy's returns, and nothing else."""

    def theirs(*args: Any, **kwargs: Any) -> Any:
        token = _enabled_here.set(False)
        try:
            return original(*args, **kwargs)
        finally:
            _enabled_here.reset(token)

    return theirs


def _replace(function: FunctionType, original: FunctionType, ours: Callable[..., Any]) -> None:
    """Give a function another body than `original`, its copy; its signature is still read off that.

    Threads may call it meanwhile, so what the new body needs comes first and goes last: an argument by keyword that
    nobody passes, and which the old body does not look at.
    """
    parts = (is_active, ours, _alone(original), original)
    function.__kwdefaults__ = {**(original.__kwdefaults__ or {}), "_gpusplu": parts}
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
