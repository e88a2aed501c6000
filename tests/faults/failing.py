"""The library that makes allocations and threads fail (failing.cpp): compiled here, preloaded to programs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("failing.cpp")


@cache
def library() -> str:
    """Where it is; compiled once a session, by the compiler that builds the core."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    path = Path(tempfile.mkdtemp(prefix="gpusplu-faults-")) / "failing.so"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Werror"]
    subprocess.run([str(compiler), *flags, str(SOURCE), "-o", str(path), "-ldl"], check=True)
    return str(path)


def functions() -> ctypes.CDLL:
    """Of the library, in a program that it is preloaded to."""
    found = ctypes.CDLL(None)
    found.failing_watch.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
    found.failing_count.restype = ctypes.c_long
    found.failing_threads.argtypes = [ctypes.c_long]
    found.failing_delays.argtypes = [ctypes.c_uint]
    return found


def allocations(work: Callable[[], object]) -> int:
    """How often the core allocates meanwhile."""
    library = functions()
    assert library.failing_watch(b"/_core.", -1, -1)
    work()
    return int(library.failing_count())


@contextmanager
def failing(first: int, last: int) -> Iterator[None]:
    """The core's allocations numbered first .. last fail."""
    library = functions()
    library.failing_watch(b"/_core.", first, last)
    try:
        yield
    finally:
        library.failing_count()
