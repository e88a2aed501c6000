"""Whether there is a GPU, found without importing CuPy."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.util import find_spec

from ..errors import EngineUnavailableError
from .driver import library, use_cuda


@cache
def no_driver() -> str:
    """Why there can be no GPU, as far as a check without cost shows; empty if there may be one.

    Initializing the driver takes 0.1 to 0.2 s on hosts with several GPUs, too long for short programs.
    """
    if (find_spec("cupy") if "cupy" not in sys.modules else sys.modules["cupy"]) is None:
        return "CuPy is not installed"
    return "" if library() else "there is no CUDA driver"


@cache
def no_device() -> str:
    """Why no GPU can be used; empty if one can."""
    driver, count = library(), ctypes.c_int()
    if no_driver() or driver is None:
        return no_driver()
    try:
        use_cuda()
    except EngineUnavailableError as error:
        return str(error)
    failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    return "there is no CUDA device" if failed or not count.value else ""


def is_loaded() -> bool:
    """Whether CuPy has already been imported, so that no import time has to be counted."""
    return "cupy" in sys.modules
