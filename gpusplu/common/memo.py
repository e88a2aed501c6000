"""Memo: values that are made once, in the first thread that requests them."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any


class Memo:
    """Values by key. The first thread that requests a value makes it and others wait. `found`: initial values."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[Hashable, Any] | None = None) -> None:
        self._found = {} if found is None else found

    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._found:
            # One lock per process: in a forked child the parent's lock may stay held by a thread that does not exist.
            with self._found.setdefault((Memo, os.getpid()), RLock()):
                if key not in self._found:
                    self._found[key] = make()
        return self._found[key]

    def get(self, key: Hashable) -> Any:
        """The value, None if it has not been requested."""
        return self._found.get(key)

    def values(self) -> list[Any]:
        """All values."""
        return [value for key, value in self.items() if not (isinstance(key, tuple) and key[0] is Memo)]

    def items(self) -> list[tuple[Hashable, Any]]:
        """Values with their keys, locks included; a snapshot, as other threads may add values."""
        return list(self._found.items())

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value that was made elsewhere, unless the key has one."""
        self._found.setdefault(key, value)
