"""Waits of the host for a device, which signals can interrupt.

CUDA's own waits return only when the device is done, and Python runs no signal handler before. So the thread that
receives signals does not use them: it polls in the core, which checks for signals. When the thread leaves, the device
continues the submitted work.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
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


class Waiter:
    """A thread that waits for others, one wait after the other: starting one per wait takes longer than most waits."""

    def __init__(self) -> None:
        self._waits: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._raised: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()
        threading.Thread(target=self._work, name="gpusplu waits", daemon=True).start()

    def _work(self) -> None:
        while (wait := self._waits.get()) is not None:
            try:
                wait()
            except BaseException as error:
                self._raised = error
            del wait  # releases what it references
            self._ended.release()

    def __call__(self, wait: Callable[[], object]) -> BaseException | None:
        """`wait()`, and what it raised. Where a signal's handler raises, the thread ends with its wait."""
        self._raised = None
        self._waits.put(wait)
        try:
            self._ended.acquire()
        except BaseException:
            self._waits.put(None)
            raise
        return self._raised


#: Waiters without a task; empty in a forked child, which has no threads.
IDLE: list[Waiter] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=IDLE.clear)


def wait_interruptibly(wait: Callable[[], object]) -> None:
    """Call `wait()`, which signals cannot interrupt: the main thread lets another thread do it, which continues to wait
    if the main thread leaves.

    During interpreter shutdown no other thread and no signal handler runs.
    """
    if threading.current_thread() is not threading.main_thread() or sys.is_finalizing():
        wait()
        return
    waiter = IDLE.pop() if IDLE else Waiter()
    raised = waiter(wait)
    IDLE.append(waiter)
    if raised:
        raise raised
