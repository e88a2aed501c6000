"""Device pattern cache: index arrays of CuPy's matrices are compared on the device and not copied to the host.

For a pattern with a factor on a device the cache holds the index arrays on the host, which are the key of the pattern
cache (patterns.py), and a copy on the device. A kernel compares the arrays of a matrix with the copy bit by bit and the
host reads the result. So an array that was edited in place does not match, whatever its object identity.
"""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import Any

import numpy as np

from ..common import matrix
from ..common.matrix import Columns
from ..cuda.kept import Difference
from . import patterns


class DeviceColumns(Columns):
    """Compressed columns with values on a device. The first access to `data` copies them to the host.

    Attributes
    ----------
    on_device : cupy.ndarray
        C-contiguous.
    device : int
        Index of their device.
    """

    __slots__ = ("_host_data", "device", "on_device")

    def __init__(self, n: int, on_device: Any, indices: np.ndarray, indptr: np.ndarray, device: int):
        self.shape, self.indices, self.indptr = (n, n), indices, indptr
        self.on_device, self.device = on_device, device
        self._host_data: np.ndarray | None = None

    dtype = property(lambda self: self.on_device.dtype)
    nnz = property(lambda self: self.on_device.size)
    was_fetched = property(lambda self: self._host_data is not None, doc="Whether somebody asked for `data`.")

    @property
    def data(self) -> np.ndarray:  # type: ignore[override]
        """The values on the host."""
        if self._host_data is None:
            self._host_data = self.on_device.get()
        return self._host_data

    def on_host(self) -> Columns:
        """The matrix on the host."""
        return Columns(self.shape[0], self.data, self.indices, self.indptr)


class DevicePattern:
    """Index arrays on the host, and the same on a device.

    Parameters
    ----------
    device : cuda.devices.Device
    key : tuple
        `key_of` a matrix.
    on_host : tuple of ndarray
        Indices and pointers; never modified.
    """

    __slots__ = ("device", "key", "nbytes", "on_device", "on_host", "written")

    def __init__(self, device: Any, key: tuple[Any, ...], on_host: tuple[Any, Any]):
        self.device, self.key, self.on_host = device, key, on_host
        self.on_device = tuple(map(matrix.to_device, on_host))
        self.written = device.caller_stream().record()
        self.nbytes = sum(array.nbytes for array in on_host)

    def is_of(self, A: Any) -> bool:
        """Whether a matrix with this key has these index arrays; waits for the device."""
        return not Difference(self.device, self.written, *zip((A.indices, A.indptr), self.on_device, strict=True))


# Most recently used first. Threads replace the tuple without a lock: a race loses entries of the cache, nothing else.
_device_patterns: tuple[DevicePattern, ...] = ()


def forget() -> None:
    """Clear the cache, together with the pattern cache."""
    global _device_patterns
    _device_patterns = ()


patterns.FORGET_ALSO.append(forget)
atexit.register(forget)  # before CUDA is shut down


def key_of(A: Any) -> tuple[Any, ...]:
    """Shapes and dtypes of a matrix, known without reading its arrays."""
    return A.shape, A.data.shape, A.indices.dtype, A.indices.shape, A.indptr.dtype, A.indptr.shape


def columns_of(A: Any) -> Any:
    """A CuPy matrix in compressed columns; for one in compressed rows, its transpose.

    Parameters
    ----------
    A : cupyx.scipy.sparse.csc_matrix or csr_matrix, shape (n, n)

    Returns
    -------
    Columns
        `DeviceColumns` if the pattern is in the cache, else a copy on the host.
    """
    found = recognise(A)
    if found is not None:
        return DeviceColumns(A.shape[0], A.data, *found.on_host, found.device.index)
    host = A.get()
    return Columns(A.shape[0], host.data, host.indices, host.indptr)


def recognise(A: Any) -> DevicePattern | None:
    """The cached pattern with the index arrays of a matrix, None if there is none."""
    if not _device_patterns:
        return None
    key = key_of(A)
    candidates = [known for known in _device_patterns if known.key == key]
    if not candidates:
        return None
    device = current_device()
    if not can_be(device, A):
        return None
    found = next((known for known in candidates if known.device is device and known.is_of(A)), None)
    if found is not None and found is not _device_patterns[0]:
        put_first(found)
    return found


def can_be(device: Any, A: Any) -> bool:
    """Whether a device can read the arrays of a matrix without conversion."""
    whole = type(A.data) is device.array_class and A.data.flags.c_contiguous
    return bool(whole and all(map(device.can_read, (A.data, A.indices, A.indptr))))


def learn(A: Any, columns: Any) -> None:
    """Cache the pattern of a matrix with a factor on the current device; `columns` is the same matrix on the host.

    Does nothing if SciPy's arrays differ (truncated after the last entry, or of another dtype) or if memory is short.
    """
    device = current_device()
    if can_be(device, A) and key_of(A) == key_of(columns):
        with suppress(MemoryError):
            put_first(DevicePattern(device, key_of(A), (columns.indices, columns.indptr)))


def current_device() -> Any:
    from ..cuda import devices

    return devices.open_device()


def put_first(known: DevicePattern) -> None:
    """Move a pattern to the front; entries beyond the limits of the pattern cache (number and bytes) are dropped."""
    global _device_patterns
    kept: list[DevicePattern] = []
    left = patterns.STORE.max_bytes
    for each in (known, *(other for other in _device_patterns if other is not known)):
        left -= each.nbytes
        if left < 0 or len(kept) == patterns.STORE.max_entries:
            break
        kept.append(each)
    _device_patterns = tuple(kept)
