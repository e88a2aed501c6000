"""What must not happen while a caller captures a stream: garbage collection, and unsafe calls of the library.

Device work that the library does on its own behalf, in a background thread or inside a call of the CPU engine, must
not invalidate the capture. Another thread invalidates a capture in three ways:

- It calls a function that is unsafe during a capture in global mode, such as an allocation or a module load. A thread
  in relaxed capture mode may do so.
- It submits work to the legacy default stream while a blocking stream is captured. Background work has its own
  non-blocking stream (`Device.caller_stream`).
- It synchronizes the device. Background work never does.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from . import presence
from .driver import is_child, library

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Thread(threading.local):
    in_background = False


_thread = Thread()


def in_background() -> bool:
    """Whether this thread currently works on the library's own behalf."""
    return _thread.in_background


@contextmanager
def background_work() -> Iterator[None]:
    """Inside, device work of this thread neither invalidates stream captures nor becomes part of one."""
    before, _thread.in_background = _thread.in_background, True
    try:
        presence.no_device()  # initializes the driver, without which the capture mode cannot be set
        with relaxed_capture_mode():
            yield
    finally:
        _thread.in_background = before


@contextmanager
def relaxed_capture_mode() -> Iterator[None]:
    """Inside, allocations and other unsafe calls of this thread do not invalidate captures of other threads."""
    before = exchange_capture_mode(RELAXED)
    try:
        yield
    finally:
        if before is not None:
            exchange_capture_mode(before)


def exchange_capture_mode(mode: int) -> int | None:
    """Set this thread's capture mode and return the previous one; None if the driver is not initialized."""
    driver, value = library(), ctypes.c_int(mode)
    failed = driver is None or is_child() or driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(value))
    return None if failed else value.value


class Collection:
    """Disables collection while any thread is inside: it could destroy graphs or free memory, which the driver forbids
    during a capture. The first thread disables collection, and the last one enables it again if it was enabled."""

    def __init__(self) -> None:
        self._lock, self._inside, self._enabled = threading.Lock(), 0, False

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
