"""What programs that fork share: threads that keep the core busy, and children that must end.

`splu` is loaded here, before any thread: a child forked while another thread imports a module waits for that import for
ever, whatever the module (docs/use/reliability.md).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from gpusplu import gallery, splu

ELASTIC = gallery.named("elast:8x8x8")
CIRCUIT = gallery.named("circuit:40x40")


def solves(matrix=ELASTIC) -> bool:
    """Whether a factorization and a solve work here."""
    x = splu(matrix).solve(np.ones(matrix.shape[0]))
    return bool(abs(matrix @ x - 1).max() < 1e-9)


@contextmanager
def busy(work: Callable[[], object], threads: int = 2):
    """Threads that do `work` over and over."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            work()

    all_threads = [threading.Thread(target=loop) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in all_threads:
            thread.join()


def child(work: Callable[[], object], seconds: float = 30) -> str:
    """What `work` returns or raises in a forked child, as text; "hangs" if it does not end in time."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = str(work())
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    end = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hangs"
        time.sleep(0.001)
    with os.fdopen(read) as pipe:
        return pipe.read() or "crashed"
