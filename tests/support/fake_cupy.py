"""CuPy as far as the facade uses it, in host memory: arrays of another class, which NumPy's functions do not see."""

from __future__ import annotations

import numpy as np


class ndarray(np.ndarray):
    """What `gpusplu.common.matrix` takes for an array on a device: its class is defined in a module called cupy."""

    def get(self, order="C"):
        return np.array(self, order=order, subok=False)

    def set(self, array):
        assert array.dtype == self.dtype
        self[...] = array

    def astype(self, dtype, order="K", copy=True):  # no casting
        return super().astype(dtype, order=order, copy=copy)


ndarray.__module__ = "cupy"


def asarray(array):
    return np.array(array, order="K").view(ndarray)


def empty(shape, dtype, order="C"):
    return np.empty(shape, dtype, order).view(ndarray)


def stack(arrays, axis):
    return np.stack(arrays, axis=axis).view(ndarray)


def broadcast_to(array, shape):
    return np.broadcast_to(array, shape).view(ndarray)


def ascontiguousarray(array):
    return np.ascontiguousarray(array).view(ndarray)


def asfortranarray(array):
    return np.asfortranarray(array).view(ndarray)


def argsort(array):
    return np.argsort(array).view(ndarray)


def aligned(array, offset=0):
    """The same on the emulated device, `offset` bytes behind a multiple of 16."""
    room = np.zeros(array.nbytes + 32, np.uint8)
    begin = -room.ctypes.data % 16 + offset
    moved = room[begin : begin + array.nbytes].view(array.dtype).view(ndarray)
    moved[...] = array
    return moved
