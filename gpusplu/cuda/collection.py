"""Garbage collection, which must not run while commands are added to a stream that the caller captures."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Collection:
    """Disables collection while any thread is inside: it could destroy graphs or free memory, which the driver forbids
    during a capture. The first thread disables collection, and the last one enables it again if it was enabled."""

    def __init__(self) -> None:
        self._lock, self._inside, self._enabled = Lock(), 0, False

    @contextmanager
    def off(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._enabled = gc.isenabled()
                gc.disable()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._enabled:
                    gc.enable()

    def forked(self) -> None:
        """Reset in a forked child: threads that were inside do not exist there."""
        if self._inside and self._enabled:
            gc.enable()
        self.__init__()  # type: ignore[misc]


_collection = Collection()
no_collection = _collection.off
os.register_at_fork(after_in_child=_collection.forked)
