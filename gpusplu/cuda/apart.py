"""Work that the library does for itself, in a thread of its own or inside a call, beside callers who capture streams.

There are three ways in which a thread breaks the capture of another one's stream. It calls what the strictest mode of
capture forbids to all threads but those in the relaxed mode, such as an allocation or the loading of a kernel. It gives
commands to the legacy default stream, which would have to wait for the captured stream: so such work has streams of its
own. And it waits for the whole device, which such work never does.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from . import presence
from .driver import library

RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Thread(threading.local):
    apart = False


_thread = Thread()


def is_apart() -> bool:
    """Whether this thread works for the library itself, and has no business with the caller's streams."""
    return _thread.apart


@contextmanager
def apart() -> Iterator[None]:
    """Inside, what this thread does on devices neither breaks captures of others nor is part of the caller's."""
    before, _thread.apart = _thread.apart, True
    try:
        presence.no_device()  # wakes the driver, as work on devices does first of all: else no mode could be set
        with relaxed():
            yield
    finally:
        _thread.apart = before


@contextmanager
def relaxed() -> Iterator[None]:
    """Inside, this thread's allocations and the like do not break captures of other threads."""
    before = exchange(RELAXED)
    try:
        yield
    finally:
        if before is not None:
            exchange(before)


def exchange(mode: int) -> int | None:
    """Set how this thread's calls agree with captures; how they did before, None where there is no awake driver."""
    driver, value = library(), ctypes.c_int(mode)
    failed = driver is None or driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(value))
    return None if failed else value.value
