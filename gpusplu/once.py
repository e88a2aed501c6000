"""What is made once and kept, from whichever thread it is asked for first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any


class Once:
    """Values by key, each made by the first who asks; others wait for it."""

    __slots__ = ("_found", "_lock")

    def __init__(self) -> None:
        self._lock = RLock()
        self._found: dict[Hashable, Any] = {}

    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._found:
            with self._lock:
                if key not in self._found:
                    self._found[key] = make()
        return self._found[key]

    def get(self, key: Hashable) -> Any:
        """The value, None if nobody has asked for it."""
        return self._found.get(key)
