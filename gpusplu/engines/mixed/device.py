"""The matrix in double precision on a device, where residuals of its factors are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.matrix import Pattern
from ..device.buffers import STATUS, Status, is_asymmetric
from ..device.interrupted import outliving
from ..device.program import COMMON, MatrixPart

UNUSED = ("done", "status", "report", "accumulated", "factored")  # arguments of kernels that also measure errors
REAL = np.dtype("d")


class RowsOnDevice(MatrixPart):
    """A pattern on a device, for any values in double precision.

    Parameters
    ----------
    device : cuda.devices.Device
    pattern : Pattern
    dtype : dtype
    kind : int
        As cuda/nvrtc.py numbers kinds.
    """

    def __init__(self, device: Any, pattern: Pattern, dtype: np.dtype, kind: int):
        super().__init__(device, dtype, kind)
        self.pattern = pattern
        self.device.prepare(COMMON, self.dtype.char, self.kind)

    def array(self, values: np.ndarray) -> Any:
        """A copy on the device."""
        array = self.device.array(values.shape, values.dtype)
        array.set(values)
        return array

    def matrix(self, values: np.ndarray) -> DeviceMatrix:
        """Of canonical values on the host."""
        return DeviceMatrix(self, self.array(values))

    def gathered(self, given: Any) -> DeviceMatrix:
        """Of the caller's values, an array on the device."""
        values, found = self.device.array((self.pattern.nnz,), self.dtype), np.zeros(1, STATUS)
        status = self.device.zeros(STATUS.itemsize)
        self.device.own_stream().synchronize()
        stream, pointer = self.device.caller_stream(), self.device.pointer
        self.launch_values(stream, "gather_values", pointer(given), pointer(values), 0, status.pointer)
        with outliving(self.device, status):
            stream.read(found, status.pointer, found.nbytes)
        return DeviceMatrix(self, values, not is_asymmetric(Status(*found[0].item()), self.dtype))

    def full(self, shape: tuple[int, ...], value: float, dtype: np.dtype) -> Any:
        """A new array on the device."""
        array = self.device.array(shape, dtype)
        array[...] = value
        return array

    def residual(self, values: Any, b: Any, x: Any, trans: int, sizes: Any = None, norms: Any = None) -> Any:
        """``b - op(A) x``; with `sizes` and `norms` also the results of kernels/common/residual.cu."""
        device = self.device
        b, x = (one if one.flags.f_contiguous else one.copy(order="F") for one in (b, x))
        r = device.array(b.shape, self.dtype)
        named = {"values": values, "x": x, "b": b, "r": r, "sizes": sizes, "norms": norms}
        pointers = {name: None if array is None else device.pointer(array) for name, array in named.items()}
        stream = device.caller_stream()
        self.launch_rows(stream, "row_sizes", trans, nrhs=b.shape[1], **pointers, **dict.fromkeys(UNUSED))
        return r


class DeviceMatrix:
    """A `DoubleMatrix` on a device.

    Parameters
    ----------
    rows : RowsOnDevice
    values : cupy.ndarray, shape (nnz,)
        Canonical.
    is_symmetric : bool, optional
        Or symmetry is not required.
    """

    def __init__(self, rows: RowsOnDevice, values: Any, is_symmetric: bool = True):
        self._rows, self._values, self.is_symmetric = rows, values, is_symmetric

    def residual(self, b: Any, x: Any, trans: int) -> tuple[Any, Any]:
        sizes = self._rows.device.array(b.shape, REAL)
        return self._rows.residual(self._values, b, x, trans, sizes=sizes), sizes

    def measured(self, b: Any, x: Any, trans: int) -> tuple[Any, np.ndarray]:
        norms = self._rows.full((4, b.shape[1]), 0.0, REAL)
        r = self._rows.residual(self._values, b, x, trans, norms=norms)
        return r, norms.get().T

    def local(self, array: np.ndarray) -> Any:
        return self._rows.array(np.asfortranarray(array))

    def full(self, shape: tuple[int, int], value: float) -> Any:
        return self._rows.full(shape, value, self._rows.dtype)

    def canonical(self) -> np.ndarray:
        return self._values.get()
