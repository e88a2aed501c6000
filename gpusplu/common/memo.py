"""What is made once and kept, from whichever thread it is asked for first."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any


class Memo:
    """Values by key, each made by the first who asks; others wait for it. Some may be there to begin with."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[Hashable, Any] | None = None) -> None:
        self._found = {} if found is None else found

    def __call__(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._found:
            # One lock a process: a thread that a forked child does not have may hold its parent's.
            with self._found.setdefault((Memo, os.getpid()), RLock()):
                if key not in self._found:
                    self._found[key] = make()
        return self._found[key]

    def get(self, key: Hashable) -> Any:
        """The value, None if nobody has asked for it."""
        return self._found.get(key)

    def values(self) -> list[Any]:
        """All that was made or kept."""
        return [value for key, value in self.items() if not (isinstance(key, tuple) and key[0] is Memo)]

    def items(self) -> list[tuple[Hashable, Any]]:
        """With their keys, and the lock; others may add to them meanwhile."""
        return list(self._found.items())

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value that was made elsewhere, if there is none."""
        self._found.setdefault(key, value)
