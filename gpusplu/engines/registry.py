"""The engines by name, in display order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import get_args

from .._core import uninterrupted
from ..typing import BuiltIn
from .interface import Engine

BUILT_IN: tuple[str, ...] = get_args(BuiltIn)
#: The default if there is no choice, and the source of pivots.
DEFAULT: BuiltIn = get_args(BuiltIn)[0]
#: Of these, those that run on the processor, which "auto" considers without a device.
ON_PROCESSOR: tuple[str, ...] = (DEFAULT,)

_engines: dict[str, Engine | None] = dict.fromkeys(BUILT_IN)
_hosts = ON_PROCESSOR


def names() -> tuple[str, ...]:
    """Of all engines."""
    return tuple(_engines)


def named(name: str) -> Engine:
    """The engine of that name; its module is imported now.

    Raises
    ------
    KeyError
    """
    engine = _engines[name]
    if engine is None:
        engine = uninterrupted(import_module, f".{name}.engine", __package__).ENGINE
        _engines[name] = engine
    return engine


def engines(on_device: bool) -> list[Engine]:
    """Those that run on a device, or those that run on the processor."""
    return [
        engine for engine in map(named, names() if on_device else hosts()) if engine.capabilities.on_device == on_device
    ]


def is_not_imported() -> bool:
    """Whether no engine of a device has been imported or added: importing all takes tens of milliseconds."""
    return all(engine is None or not engine.capabilities.on_device for engine in _engines.values())


def hosts() -> tuple[str, ...]:
    """Names of engines that run on the processor, with nothing imported for it."""
    return _hosts


def names_for(kind: str) -> list[str]:
    """Of engines that make this kind of factorization, those on devices first."""
    fitting = [engine for engine in map(named, names()) if kind in engine.capabilities.kinds]
    return [engine.name for engine in sorted(fitting, key=lambda engine: not engine.capabilities.on_device)]


def register(engine: Engine) -> None:
    """Add an engine, or replace the one with its name."""
    _engines[engine.name] = engine
    _count_hosts()


def unregister(name: str) -> None:
    """Remove an engine; a built-in one is restored."""
    if name in BUILT_IN:
        _engines[name] = None
    else:
        _engines.pop(name, None)
    _count_hosts()


def _count_hosts() -> None:
    global _hosts
    _hosts = tuple(
        name
        for name, engine in _engines.items()
        if name in ON_PROCESSOR or (engine and not engine.capabilities.on_device)
    )


@contextmanager
def registered(engine: Engine) -> Iterator[Engine]:
    """`register` within a ``with`` block."""
    register(engine)
    try:
        yield engine
    finally:
        unregister(engine.name)
