"""Arrays on a device that are compared bit by bit with other arrays there."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Unsigned integers of 4, 8 and 16 bytes that hold the bits of numbers.
BITS = {4: np.uint32, 8: np.uint64, 16: np.uint64}
UNWRITTEN = 2  # contents of memory for a result before it is written


class Difference:
    """Whether arrays differ in any bit; computed in the current stream, read later.

    Parameters
    ----------
    device : cuda.devices.Device
    written : event
        After which the second arrays of the pairs are written.
    *pairs : tuple of cupy.ndarray
        Two arrays of one shape and dtype each.
    """

    def __init__(self, device: Any, written: Any, *pairs: tuple[Any, Any]):
        self._stream = device.caller_stream()
        self._stream.wait(written)
        self._device_flags = [differs(*pair) for pair in pairs]
        self._host_flags = device.pinned(np.dtype(np.uint8), len(pairs))
        self._host_flags[:] = UNWRITTEN
        for k, flag in enumerate(self._device_flags):
            self._stream.copy(self._host_flags.ctypes.data + k, device.pointer(flag), 1)

    def __bool__(self) -> bool:
        if (self._host_flags == UNWRITTEN).any():  # else another thread has waited
            self._stream.synchronize()
        return bool(self._host_flags.any())


def differs(one: Any, other: Any) -> Any:
    """Whether two arrays differ, as an array of one number."""
    bits = BITS[one.itemsize]
    return (one.reshape(-1).view(bits) != other.reshape(-1).view(bits)).any(keepdims=True)
