"""Waits of the host for a device, which signals can interrupt.

CUDA's own waits return when the device has come to the end, and Python runs no handler before. So the thread that sees
signals does not wait by them: it asks again and again, in the core, which looks for signals meanwhile. What the device
was asked for goes on when the thread leaves.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import _core

NOT_READY = 600  # CUDA_ERROR_NOT_READY


@cache
def stream_query() -> int:
    """Address of cuStreamQuery; 0 where the driver cannot be found."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        return ctypes.cast(driver.cuStreamQuery, ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0


def wait_for_stream(stream: Any) -> None:
    """Wait for all that was asked of one of CuPy's streams, on its device."""
    query = stream_query()
    if not query or _core.poll(query, stream.ptr, NOT_READY) != 0:
        stream.synchronize()  # which says what is wrong, if anything is


def wait_beside(wait: Callable[[], object]) -> None:
    """`wait()`, which nothing can interrupt: from the main thread by another one, that goes on to wait if need be."""
    if threading.current_thread() is not threading.main_thread():
        wait()
        return
    ended, raised = threading.Lock(), []

    def work() -> None:
        try:
            wait()
        except BaseException as error:
            raised.append(error)
        finally:
            ended.release()

    ended.acquire()
    threading.Thread(target=work, name="gpusplu waits", daemon=True).start()
    ended.acquire()
    if raised:
        raise raised[0]
