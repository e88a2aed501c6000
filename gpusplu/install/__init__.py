"""install, uninstall and enabled: code that was written for SciPy or CuPy, unchanged, with our solvers.

They have no entry point for sparse direct solvers, so splu, spsolve and factorized of scipy.sparse.linalg and of
cupyx.scipy.sparse.linalg get another body. They stay the objects that they are: whoever holds one, as a name in a
module, a default argument, an attribute of a class, in a closure or a partial, from before or from now on, calls what
is there at that time. The body calls the function as it was made, of which a copy is kept (_scipy.py), unless gpusplu
is active in the calling context. CuPy's get theirs once somebody else has imported them (_cupyx.py).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from threading import RLock
from types import FunctionType
from typing import Any

from .._core import Uninterrupted, uninterrupted
from ..common import scipy_names as _scipy
from . import cupyx_names as _cupyx


class Scope:
    """What holds in a context while this object lives and is not over: calls reach gpusplu, or do not.

    A context knows its scopes by weak references. A generator may be closed in another context than it was entered in,
    where the variable of the first cannot be set, and whoever is interrupted may never come to close anything.
    """

    __slots__ = ("__weakref__", "active", "over")

    def __init__(self, active: bool):
        self.active, self.over = active, False

    def begin(self) -> None:
        """From now on, in this context."""
        _scopes.set((weakref.ref(self), without_ended(_scopes.get())))

    def end(self) -> None:
        """In all contexts. This one forgets it, if it is the same."""
        self.over = True
        _scopes.set(without_ended(_scopes.get()))


#: Scopes of a context, the innermost first: a reference and those outside.
Scopes = tuple[weakref.ref[Scope], Any] | None


def without_ended(scopes: Scopes) -> Scopes:
    """From the innermost scope on that holds."""
    while scopes is not None:
        scope = scopes[0]()
        if scope is not None and not scope.over:
            break
        scopes = scopes[1]
    return scopes


if "_holders" not in globals():  # else this module is loaded again, and what it did before still holds
    _scopes: ContextVar[Scopes] = ContextVar("gpusplu_enabled", default=None)
    _lock = RLock()
    _installed = False
    _holders: weakref.WeakSet[Enabled] = weakref.WeakSet()
    _replaced: list[FunctionType] = []
    _watch = _cupyx.Watch(lambda: _replace_now())


def _reset_lock() -> None:
    """In a forked child: a thread that is not there may hold it."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_reset_lock)


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
    uninterrupted(_install, True)


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
    uninterrupted(_install, False)


def enabled() -> Enabled:
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
    return Enabled()


class Enabled(Uninterrupted, ContextDecorator):
    """What enabled() returns: for one ``with`` block, or to decorate a function with."""

    _scope: Scope | None = None  # within the block

    def _recreate_cm(self) -> Enabled:
        """For each call of a function that is decorated."""
        return Enabled()

    def begin(self) -> None:
        """Hold SciPy's functions."""
        if self._scope is not None:
            raise RuntimeError("this enabled() is in use: call it again for another with block")
        self._scope, self.dropped = Scope(True), _restore_free
        _holders.add(self)
        try:
            _replace_held()
            self._scope.begin()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """In any context and thread, once or more often."""
        if self._scope is not None:
            self._scope.end()
            _holders.discard(self)
            _restore_free()
            self._scope = self.dropped = None


def is_active() -> bool:
    """Whether a call made here and now through SciPy's or CuPy's names would reach gpusplu."""
    scopes = _scopes.get()
    while scopes is not None:
        scope = scopes[0]()
        if scope is not None and not scope.over:
            return scope.active
        scopes = scopes[1]
    return _installed


def _install(installed: bool) -> None:
    global _installed
    before, _installed = _installed, installed
    try:
        _replace_held() if installed else _restore_free()
    except BaseException:
        _installed = before
        raise


def _is_held() -> bool:
    return _installed or len(_holders) > 0


def _replace_held() -> None:
    """Give functions that somebody holds our bodies; those that have them keep them."""
    _replace_now()
    if _cupyx.wait_for_import():  # of another thread, which began before we watched
        _replace_now()


def _replace_now() -> None:
    if not _is_held():
        return
    # Without the lock: a thread that imports may collect garbage, Enabled among it.
    from . import compat

    gpusplu_function: dict[FunctionType, Callable[..., Any]] = {
        **{function: getattr(compat, name) for name, function in _scipy.functions().items()},
        **{function: _lazy(name) for name, function in _cupyx.functions().items()},
    }
    with _lock:
        if _is_held():
            _watch.begin()
            for function in gpusplu_function:
                if function not in _replaced:
                    original = _scipy.original_of(function)
                    _replaced.append(function)
                    _replace(function, original, gpusplu_function[function])


def _restore_free() -> None:
    """Give all functions their bodies back if nobody holds them."""
    with _lock:
        if not _is_held():
            for function in _replaced:
                _restore(function, _scipy.original_of(function))
            _replaced.clear()


def _lazy(name: str) -> Callable[..., Any]:
    """Our function for one of CuPy's, from a module that imports CuPy: not before it is called."""

    def gpusplu_function(*args: Any, **kwargs: Any) -> Any:
        from . import compat_cupyx

        return getattr(compat_cupyx, name)(*args, **kwargs)

    return gpusplu_function


def _body(*args: Any, _gpusplu: tuple[Callable[..., Any], ...], **kwargs: Any) -> Any:
    """What is called in the place of a function of SciPy's or CuPy's."""
    active, gpusplu_function, peer_function, original = _gpusplu
    if active():
        return gpusplu_function(peer_function, *args, **kwargs)
    return original(*args, **kwargs)


def _bypassing(original: Callable[..., Any]) -> Callable[..., Any]:
    """`original`, and what it calls as it was made too: CuPy's splu wraps what SciPy's returns, and nothing else."""

    def peer_function(*args: Any, **kwargs: Any) -> Any:
        scope = Scope(False)
        scope.begin()
        try:
            return original(*args, **kwargs)
        finally:
            scope.end()

    return peer_function


def _replace(function: FunctionType, original: FunctionType, gpusplu_function: Callable[..., Any]) -> None:
    """Give a function another body than `original`, its copy; its signature is still read off that.

    Threads may call it meanwhile, so what the new body needs comes first and goes last: an argument by keyword that
    nobody passes, and which the old body does not look at.
    """
    parts = (is_active, gpusplu_function, _bypassing(original), original)
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
