"""What is made once and kept, from whichever thread it is asked for first."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any


class Once:
    """Values by key, each made by the first who asks; others wait for it."""

    __slots__ = ("_found", "_lock", "_process")

    def __init__(self) -> None:
        self._lock, self._process = RLock(), os.getpid()
        self._found: dict[Hashable, Any] = {}

    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._found:
            if self._process != os.getpid():  # a thread that a forked child does not have may hold the lock there
                self._lock, self._process = RLock(), os.getpid()
            with self._lock:
                if key not in self._found:
                    self._found[key] = make()
        return self._found[key]

    def get(self, key: Hashable) -> Any:
        """The value, None if nobody has asked for it."""
        return self._found.get(key)
