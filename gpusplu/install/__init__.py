"""install, uninstall and enabled: run code written for SciPy or CuPy with gpusplu's solvers, unchanged.

SciPy and CuPy have no entry point for sparse direct solvers, so gpusplu replaces the bodies of splu, spsolve and
factorized of scipy.sparse.linalg and of cupyx.scipy.sparse.linalg. The function objects stay the same, so every
reference, older or newer (a name in a module, a default argument, an attribute of a class, a closure or a partial),
calls the current body. Unless gpusplu is active in the calling context, the new body calls a copy of the original
function (common/scipy_names.py). CuPy's functions are replaced once other code has imported them (cupyx_names.py).
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
    """Whether calls reach gpusplu in a context, as long as this object lives and is not over.

    A context refers to its scopes by weak references: a generator may be closed in another context than the one it was
    entered in, where the variable of the first cannot be set, and interrupted code may never close its scope.
    """

    __slots__ = ("__weakref__", "active", "over")

    def __init__(self, active: bool):
        self.active, self.over = active, False

    def begin(self) -> None:
        """Start the scope in this context."""
        _scopes.set((weakref.ref(self), without_ended(_scopes.get())))

    def end(self) -> None:
        """End the scope in all contexts, and remove it from the current one."""
        self.over = True
        _scopes.set(without_ended(_scopes.get()))


#: Scopes of a context, the innermost first: a reference and the outer scopes.
Scopes = tuple[weakref.ref[Scope], Any] | None


def without_ended(scopes: Scopes) -> Scopes:
    """The scopes from the innermost active one outwards."""
    while scopes is not None:
        scope = scopes[0]()
        if scope is not None and not scope.over:
            break
        scopes = scopes[1]
    return scopes


if "_holders" not in globals():  # else the module is reloaded and keeps its state
    _scopes: ContextVar[Scopes] = ContextVar("gpusplu_enabled", default=None)
    _lock = RLock()
    _installed = False
    _holders: weakref.WeakSet[Enabled] = weakref.WeakSet()
    _replaced: list[FunctionType] = []
    _watch = _cupyx.Watch(lambda: _replace_now())


def _reset_lock() -> None:
    """Replace the lock in a forked child, where a thread that does not exist may hold it."""
    global _lock
    _lock = RLock()


os.register_at_fork(after_in_child=_reset_lock)


def install() -> None:
    """Replace splu, spsolve and factorized of scipy.sparse.linalg by gpusplu's in all threads, until :func:`uninstall`.

    The functions of cupyx.scipy.sparse.linalg are replaced too: now if it is imported, else after its import.

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
    """Restore the functions of SciPy and CuPy. Does nothing if :func:`install` was not called.

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
    """Result of enabled(): a context manager for one ``with`` block, or a decorator."""

    _scope: Scope | None = None  # within the block

    def _recreate_cm(self) -> Enabled:
        """A new object for each call of a decorated function."""
        return Enabled()

    def begin(self) -> None:
        """Replace the functions and start the scope."""
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
        """End the scope; may be called in any context and thread, and more than once."""
        if self._scope is not None:
            self._scope.end()
            _holders.discard(self)
            _restore_free()
            self._scope = self.dropped = None


def is_active() -> bool:
    """Whether a call of SciPy's or CuPy's functions in this context reaches gpusplu."""
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
    """Replace the bodies of the functions while install() or an enabled() is in effect, unless already replaced."""
    _replace_now()
    if _cupyx.wait_for_import():  # by another thread, begun before `_watch` was active
        _replace_now()


def _replace_now() -> None:
    if not _is_held():
        return
    # Import without the lock: a garbage collection during the import may delete an Enabled.
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
    """Restore all functions unless install() or an enabled() is in effect."""
    with _lock:
        if not _is_held():
            for function in _replaced:
                _restore(function, _scipy.original_of(function))
            _replaced.clear()


def _lazy(name: str) -> Callable[..., Any]:
    """gpusplu's function for one of CuPy's. Its module imports CuPy, so it is imported at the first call."""

    def gpusplu_function(*args: Any, **kwargs: Any) -> Any:
        from . import compat_cupyx

        return getattr(compat_cupyx, name)(*args, **kwargs)

    return gpusplu_function


def _body(*args: Any, _gpusplu: tuple[Callable[..., Any], ...], **kwargs: Any) -> Any:
    """New body of a function of SciPy or CuPy."""
    active, gpusplu_function, peer_function, original = _gpusplu
    if active():
        return gpusplu_function(peer_function, *args, **kwargs)
    return original(*args, **kwargs)


def _bypassing(original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` with gpusplu inactive: CuPy's splu wraps the result of SciPy's splu and requires its type."""

    def peer_function(*args: Any, **kwargs: Any) -> Any:
        scope = Scope(False)
        scope.begin()
        try:
            return original(*args, **kwargs)
        finally:
            scope.end()

    return peer_function


def _replace(function: FunctionType, original: FunctionType, gpusplu_function: Callable[..., Any]) -> None:
    """Replace the body of a function. `original` is its copy and still provides the signature.

    Other threads may call the function meanwhile. So the data of the new body, a keyword-only argument that callers do
    not pass and the old body ignores, is added first and removed last.
    """
    parts = (is_active, gpusplu_function, _bypassing(original), original)
    function.__kwdefaults__ = {**(original.__kwdefaults__ or {}), "_gpusplu": parts}
    function.__wrapped__ = original  # type: ignore[attr-defined]
    function.__code__ = _body.__code__.replace(
        co_name=function.__name__,
        co_qualname=function.__qualname__,
        co_freevars=original.__code__.co_freevars,  # must match the number of cells of the function
    )


def _restore(function: FunctionType, original: FunctionType) -> None:
    function.__code__ = original.__code__
    function.__kwdefaults__ = original.__kwdefaults__
    function.__dict__.pop("__wrapped__", None)
    function.__dict__.update(original.__dict__)
