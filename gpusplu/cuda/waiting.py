"""Waits of the host for a device, which signals can interrupt.

CUDA's own waits return only when the device is done, and Python runs no signal handler before. So the thread that
receives signals does not use them: it polls in the core, which checks for signals. When the thread leaves, the device
continues the submitted work.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from .. import _core
from .driver import library

NOT_READY = 600  # CUDA_ERROR_NOT_READY


@cache
def stream_query() -> int:
    """Address of cuStreamQuery; 0 if there is no driver."""
    driver = library()
    return 0 if driver is None else ctypes.cast(driver.cuStreamQuery, ctypes.c_void_p).value or 0


def wait_for_stream(stream: Any) -> None:
    """Wait for all commands submitted to one of CuPy's streams, on its device."""
    query = stream_query()
    if not query or _core.poll(query, stream.ptr, NOT_READY) != 0:
        stream.synchronize()  # raises an error, if there is one


@cache
def waiters(process: int) -> ThreadPoolExecutor:
    """Threads that wait for others, those of one process: a forked child has none."""
    return ThreadPoolExecutor(thread_name_prefix="gpusplu waits")


def wait_interruptibly(wait: Callable[[], object]) -> None:
    """Call `wait()`, which signals cannot interrupt: the main thread lets another thread do it, which continues to wait
    if the main thread leaves.

    During interpreter shutdown no other thread and no signal handler runs.
    """
    main = threading.main_thread()
    if threading.current_thread() is main and main.is_alive():
        waiters(os.getpid()).submit(wait).result()
    else:
        wait()
