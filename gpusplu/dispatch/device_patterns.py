"""Matrices of CuPy whose factor is on a device: their index arrays are recognised there, and nothing goes to the host.

Of a pattern whose factor was used on a device there are its index arrays on the host, by which it is remembered
(patterns.py), and a copy of them on the device. The arrays of a matrix are compared with that bit by bit, and the host
reads the answer: an array that was edited in place is another one, whatever object it is.
"""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import Any

import numpy as np

from ..common import matrix
from ..common.matrix import Columns
from ..cuda.kept import Difference, Written
from . import patterns


class ColumnsThere(Columns):
    """Compressed columns whose values are on a device: they come to the host when `data` is asked for.

    Attributes
    ----------
    there : cupy.ndarray
        C-contiguous.
    device : int
        That they are on.
    """

    __slots__ = ("_here", "device", "there")

    def __init__(self, n: int, there: Any, indices: np.ndarray, indptr: np.ndarray, device: int):
        self.shape, self.indices, self.indptr = (n, n), indices, indptr
        self.there, self.device = there, device
        self._here: np.ndarray | None = None

    dtype = property(lambda self: self.there.dtype)
    nnz = property(lambda self: self.there.size)
    was_here = property(lambda self: self._here is not None, doc="Whether somebody asked for `data`.")

    @property
    def data(self) -> np.ndarray:  # type: ignore[override]
        """The values on the host."""
        if self._here is None:
            self._here = self.there.get()
        return self._here

    def here(self) -> Columns:
        """The matrix on the host."""
        return Columns(self.shape[0], self.data, self.indices, self.indptr)


class Recognised:
    """Index arrays on the host, and the same on a device.

    Parameters
    ----------
    device : cuda.devices.Device
    key : tuple
        `key_of` a matrix.
    here : tuple of ndarray
        Indices and pointers, which nobody writes into.
    """

    __slots__ = ("device", "here", "key", "nbytes", "there", "written")

    def __init__(self, device: Any, key: tuple[Any, ...], here: tuple[Any, Any]):
        self.device, self.key, self.here = device, key, here
        self.there = tuple(map(matrix.to_device, here))
        self.written = Written(device)
        self.nbytes = sum(array.nbytes for array in here)

    def is_of(self, A: Any) -> bool:
        """Whether a matrix with this key has these index arrays; waits for the device."""
        return not Difference(self.device, self.written, *zip((A.indices, A.indptr), self.there, strict=True))


# The last used first. Threads put another tuple in its place: who is late forgets what others found, and no more.
_recognised: tuple[Recognised, ...] = ()


def forget() -> None:
    """Forget all, with the patterns."""
    global _recognised
    _recognised = ()


patterns.FORGET_ALSO.append(forget)
atexit.register(forget)  # while there is CUDA


def key_of(A: Any) -> tuple[Any, ...]:
    """What is told of a matrix without a look at its arrays."""
    return A.shape, A.data.shape, A.indices.dtype, A.indices.shape, A.indptr.dtype, A.indptr.shape


def columns_of(A: Any) -> Any:
    """A matrix of CuPy in compressed columns; of one in compressed rows, the transpose.

    Parameters
    ----------
    A : cupyx.scipy.sparse.csc_matrix or csr_matrix, shape (n, n)

    Returns
    -------
    Columns
        `ColumnsThere` where the pattern is recognised; else on the host.
    """
    found = recognise(A)
    if found is not None:
        return ColumnsThere(A.shape[0], A.data, *found.here, found.device.index)
    host = A.get()
    return Columns(A.shape[0], host.data, host.indices, host.indptr)


def recognise(A: Any) -> Recognised | None:
    """What has the index arrays of a matrix, if that is known."""
    if not _recognised:
        return None
    key = key_of(A)
    candidates = [known for known in _recognised if known.key == key]
    if not candidates:
        return None
    device = current_device()
    if not can_be(device, A):
        return None
    found = next((known for known in candidates if known.device is device and known.is_of(A)), None)
    if found is not None and found is not _recognised[0]:
        put_first(found)
    return found


def can_be(device: Any, A: Any) -> bool:
    """Whether a device takes the arrays of a matrix as they are."""
    whole = type(A.data) is device.array_class and A.data.flags.c_contiguous
    return bool(whole and all(map(device.can_read, (A.data, A.indices, A.indptr))))


def learn(A: Any, columns: Any) -> None:
    """Recognise a matrix from now on, which `columns` are of, and whose factor is on the current device.

    Not if SciPy has its arrays otherwise: without what lies behind the last entry, or in another type. Nor if there is
    no memory for them.
    """
    device = current_device()
    if can_be(device, A) and key_of(A) == key_of(columns):
        with suppress(MemoryError):
            put_first(Recognised(device, key_of(A), (columns.indices, columns.indptr)))


def current_device() -> Any:
    from ..cuda import devices

    return devices.open_device()


def put_first(known: Recognised) -> None:
    """Within the bounds of remembered patterns, by number and by bytes."""
    global _recognised
    kept: list[Recognised] = []
    left = patterns.STORE.max_bytes
    for each in (known, *(other for other in _recognised if other is not known)):
        left -= each.nbytes
        if left < 0 or len(kept) == patterns.STORE.max_entries:
            break
        kept.append(each)
    _recognised = tuple(kept)
