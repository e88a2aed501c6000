"""The matrix in double precision on a device, where residuals of its factors are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.matrix import Pattern, is_cupy_array
from ..device.buffers import STATUS, Status, is_asymmetric
from ..device.interrupted import outliving
from ..device.program import COMMON, MatrixPart

UNUSED = ("done", "status", "report", "accumulated", "factored")  # arguments of kernels that also measure errors
REAL = np.dtype("d")


def rows_on_device(device: Any, pattern: Pattern, dtype: np.dtype, kind: int) -> MatrixPart:
    """A pattern on a device, for any values in double precision; `kind`: as cuda/nvrtc.py numbers kinds."""
    rows = MatrixPart(device, dtype, kind)
    rows.pattern = pattern
    device.prepare(COMMON, rows.dtype.char, rows.kind)
    return rows


class DeviceMatrix:
    """A `DoubleMatrix` on a device.

    Parameters
    ----------
    rows : MatrixPart
        From `rows_on_device`.
    values : ndarray, shape (nnz,), or cupy.ndarray, shape (size,)
        Canonical ones on the host, or the caller's on the device.

    Attributes
    ----------
    is_symmetric : bool
        Whether values on the device are, if they have to be.
    """

    def __init__(self, rows: MatrixPart, values: Any):
        self._rows, self._device, self.is_symmetric = rows, rows.device, True
        self._values = self._gathered(values) if is_cupy_array(values) else self.local(values)

    def _gathered(self, given: Any) -> Any:
        """Canonical values of the caller's, checked for symmetry."""
        rows, device = self._rows, self._device
        values, found = device.array((rows.pattern.nnz,), rows.dtype), np.zeros(1, STATUS)
        status = device.zeros(STATUS.itemsize)
        device.own_stream().synchronize()
        stream, pointer = device.caller_stream(), device.pointer
        rows.launch_values(stream, "gather_values", pointer(given), pointer(values), 0, status.pointer)
        with outliving(device, status):
            stream.read(found, status.pointer, found.nbytes)
        self.is_symmetric = not is_asymmetric(Status(*found[0].item()), rows.dtype)
        return values

    def _residual(self, b: Any, x: Any, trans: int, sizes: Any = None, norms: Any = None) -> Any:
        """``b - op(A) x``; with `sizes` and `norms` also the results of kernels/common/residual.cu."""
        device = self._device
        b, x = (one if one.flags.f_contiguous else one.copy(order="F") for one in (b, x))
        r = device.array(b.shape, self._rows.dtype)
        named = {"values": self._values, "x": x, "b": b, "r": r, "sizes": sizes, "norms": norms}
        pointers = {name: None if array is None else device.pointer(array) for name, array in named.items()}
        stream = device.caller_stream()
        self._rows.launch_rows(stream, "row_sizes", trans, nrhs=b.shape[1], **pointers, **dict.fromkeys(UNUSED))
        return r

    def residual(self, b: Any, x: Any, trans: int) -> tuple[Any, Any]:
        sizes = self._device.array(b.shape, REAL)
        return self._residual(b, x, trans, sizes=sizes), sizes

    def measured(self, b: Any, x: Any, trans: int) -> tuple[Any, np.ndarray]:
        norms = self.full((4, b.shape[1]), 0.0, REAL)
        r = self._residual(b, x, trans, norms=norms)
        return r, norms.get().T

    def local(self, array: np.ndarray) -> Any:
        copy = self._device.array(array.shape, array.dtype)
        copy.set(np.asfortranarray(array))
        return copy

    def full(self, shape: tuple[int, ...], value: float, dtype: np.dtype | None = None) -> Any:
        array = self._device.array(shape, dtype or self._rows.dtype)
        array[...] = value
        return array

    def canonical(self) -> np.ndarray:
        return self._values.get()
