"""Several devices of one host: which ones ``device=`` names, and how their failures are reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import ON_HOST, DeviceFailedError, DeviceMemoryError, EngineUnavailableError, GpuspluError
from . import devices

ALL = "all"


def is_several(which: Any) -> bool:
    """Whether ``device=`` is a list of devices, or all of them."""
    return isinstance(which, (list, tuple)) or (isinstance(which, str) and which == ALL)


def open_devices(which: Any) -> tuple[Any, ...]:
    """The devices that ``device=`` lists, in this order; "all": those that are visible.

    Raises
    ------
    ValueError
        The list is empty, or names a device twice.
    EngineUnavailableError, TypeError
        As `devices.open_device` raises them, which is called for each.
    """
    if isinstance(which, str):
        which = range(devices.count_devices())
        if not which:
            raise EngineUnavailableError(f"device='all': no CUDA device is visible; pass {ON_HOST}")
    opened = tuple(map(devices.open_device, which))
    if not opened:
        raise ValueError("device=[] names no device; leave it out, or pass a number or a list of numbers")
    found: list[int] = [device.index for device in opened]
    twice = sorted({index for index in found if found.count(index) > 1})
    if twice:
        raise ValueError(f"device={list(which)} names device {twice[0]} twice")
    return opened


@contextmanager
def failures(used: Sequence[Any]) -> Iterator[None]:
    """Convert CUDA errors of these devices to DeviceFailedError."""
    try:
        yield
    except (GpuspluError, MemoryError, AssertionError):
        raise
    except RuntimeError as error:  # CUDA's own exceptions exist only where CuPy does
        if not str(error).startswith(("cuda", "CUDA")):
            raise
        raise DeviceFailedError([device.index for device in used], str(error)) from error


def too_small(needed: Sequence[int], free: Sequence[int], used: Sequence[Any]) -> DeviceMemoryError | None:
    """The error for the first device with less memory than it needs, if there is one."""
    short = [k for k, (wanted, available) in enumerate(zip(needed, free, strict=True)) if wanted > available]
    if not short:
        return None
    return DeviceMemoryError(sum(needed), sum(free), [(used[k].index, needed[k], free[k]) for k in short])
