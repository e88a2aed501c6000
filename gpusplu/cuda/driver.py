"""The CUDA driver library, for functions that CuPy has no bindings for."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


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
