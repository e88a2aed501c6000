"""Page-locked memory of the host that a factor's values and vectors pass through, at addresses that graphs know."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ... import _core
from ...common.matrix import EPS
from ...cuda.layout import struct

if TYPE_CHECKING:
    from .program import Program

STATUS = struct("shared/values.hpp", "Status")
STAGED = 1 << 26  # bytes of an array at most; larger ones go in pieces (cuda/pieces.py)


class Status(NamedTuple):
    """What a factorization and a measured solve say of themselves: ``struct Status`` of kernels/shared/values.hpp."""

    n_perturbed: int
    n_tiny: int
    not_finite: int
    largest: float
    asymmetry: float
    growth: float
    residual: float
    x_norm: float
    b_norm: float
    a_norm: float


NOTHING = Status(*([0] * 3), *([0.0] * 7))


def is_asymmetric(found: Status, dtype: np.dtype) -> bool:
    """Whether new values of `dtype` differed by more than rounding from those that they have to equal."""
    return bool(found.asymmetry > _core.SYMMETRY_UNITS * EPS[dtype] * found.largest)


class Staging:
    """The status of one factor, and on first use arrays for the caller's that are on the host.

    Attributes
    ----------
    status : ndarray of STATUS, shape ()
        Written by the device.
    values : ndarray, shape (pattern.size,)
    b, x : ndarray, shape (n,)
        One right-hand side and its solution.
    """

    def __init__(self, program: Program):
        self._program, self._device = program, program.device
        self.status = self._device.pinned(STATUS, 1)[0:1].reshape(())
        self.status_address = int(self.status.ctypes.data)  # page-locked, so kernels know it by the same one
        self._largest = self.status["largest"]
        self._some: np.ndarray | None = None

    def forget(self) -> None:
        """Have `is_told` say whether the device has written the status since now."""
        self._largest[()] = 0

    @property
    def is_told(self) -> bool:
        """The caller has waited. Of a matrix without an entry but zeros nobody can tell."""
        return bool(self._largest[()] > 0)

    @cached_property
    def small(self) -> bool:
        """Whether graphs may pass values and a right-hand side through here."""
        most = max(self._program.pattern.size, self._program.n)
        return bool(most * self._program.dtype.itemsize <= STAGED)

    @cached_property
    def values(self) -> np.ndarray:
        return self._pinned(self._program.pattern.size)

    @cached_property
    def b(self) -> np.ndarray:
        return self._pinned(self._program.n)

    @cached_property
    def x(self) -> np.ndarray:
        return self._pinned(self._program.n)

    def _pinned(self, count: int) -> np.ndarray:
        array: np.ndarray = self._device.pinned(self._program.dtype, count)
        return array

    def take(self, values: np.ndarray | None = None, b: np.ndarray | None = None) -> None:
        """Put what is given into the arrays that graphs copy from."""
        if values is not None:
            _core.copy(self.values, values)
        if b is not None:
            self.b[...] = b.reshape(-1)

    def some(self, nbytes: int) -> np.ndarray:
        """Memory for other arrays, used until the next call; pageable where it is large [bytes]."""
        if nbytes > STAGED:
            return np.empty(nbytes, np.uint8)
        if self._some is None or self._some.size < nbytes:
            self._some = self._device.pinned(np.dtype(np.uint8), nbytes)
        return self._some[:nbytes]

    def stage(self, array: np.ndarray) -> np.ndarray:
        """`array`, column by column, where copies can take it from."""
        staged = self.values if self._is_values(array) else self.some(array.nbytes).view(array.dtype)
        staged[...] = array.reshape(-1, order="F")
        return staged

    def _is_values(self, array: np.ndarray) -> bool:
        return array.ndim == 1 and array.size == self._program.pattern.size != self._program.n
