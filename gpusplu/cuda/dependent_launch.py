"""Programmatic dependent launch through CUDA's driver, which CuPy has no function for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from .driver import failure, library, version

PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID


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
