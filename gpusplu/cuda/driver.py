"""The CUDA driver library, for functions that CuPy has no bindings for, and the process that uses it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

from ..errors import ON_HOST, EngineUnavailableError

PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID
_owner: int | None = None  # the first process that used CUDA: forked children cannot use its CUDA state


def use_cuda() -> None:
    """Record that this process uses CUDA.

    Raises
    ------
    EngineUnavailableError
        It was forked from one that did.
    """
    global _owner
    if _owner is None:
        _owner = os.getpid()
    elif _owner != os.getpid():
        raise EngineUnavailableError(
            "this process was forked from one that uses CUDA, which does not survive a fork; start processes by "
            f"'spawn' or 'forkserver', or factor here with {ON_HOST}"
        )


def is_child() -> bool:
    """Whether this process was forked from one that uses CUDA."""
    return _owner not in (None, os.getpid())


@cache
def library() -> ctypes.CDLL | None:
    """The library, not initialized; None without a driver."""
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


@cache
def version() -> int:
    """CUDA version of the driver, 12030 for 12.3; 0 without a driver."""
    driver, found = library(), ctypes.c_int()
    return 0 if driver is None or driver.cuDriverGetVersion(ctypes.byref(found)) else found.value


def failure(driver: ctypes.CDLL, error: int, function: str) -> RuntimeError:
    """The exception for a CUresult."""
    texts = []
    for read_text in (driver.cuGetErrorName, driver.cuGetErrorString):
        text = ctypes.c_char_p()
        if not read_text(error, ctypes.byref(text)) and text.value:
            texts.append(text.value.decode())
    name = texts[0] if texts else f"CUDA error {error}"
    return RuntimeError(": ".join([f"{name} in {function}", *texts[1:]]))


class Attribute(ctypes.Structure):
    """CUlaunchAttribute; the values that are used here are one int."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_int * 15))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


Launch = Callable[[int, tuple[int, int, int], int, int], None]


def dependent_launch(arch: int) -> Launch | None:
    """Function that launches a kernel before the previous one is done; it takes function, (grid, block, shared bytes),
    stream, and pointer to the pointer of the argument. None if the device or the driver does not support it."""
    driver = library()
    if driver is None or arch < 90 or version() < 12030:  # before 12.3 graphs have no such edges
        return None
    function = driver.cuLaunchKernelEx
    attribute = Attribute(PROGRAMMATIC_STREAM_SERIALIZATION, 0, 1)

    def launch(kernel: int, shape: tuple[int, int, int], stream: int, arguments: int) -> None:
        grid, block, shared_bytes = shape
        config = Config((grid, 1, 1), (block, 1, 1), shared_bytes, stream, ctypes.pointer(attribute), 1)
        error = function(ctypes.byref(config), ctypes.c_void_p(kernel), ctypes.c_void_p(arguments), None)
        if error:
            raise failure(driver, error, "cuLaunchKernelEx")

    return launch
