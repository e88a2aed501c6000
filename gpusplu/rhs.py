"""Right-hand sides as callers have them: what SciPy says about them, and what engines take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from . import matrix

TRANS = {"N": 0, "n": 0, "T": 1, "t": 1, "H": 2, "h": 2}


def complex_dtype(dtype: np.dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


def type_name(value: object) -> str:
    """As CPython's own argument errors name it."""
    return "None" if value is None else type(value).__name__


def cast(array: Any, dtype: np.dtype) -> Any:
    """`array` as `dtype`, Fortran-contiguous, on the side where it is; NumPy's error if that would lose precision."""
    if array.dtype == dtype and array.flags.f_contiguous:
        return array
    if matrix.is_cupy_array(array):
        if array.dtype != dtype:
            np.empty(0, array.dtype).astype(dtype, casting="safe")  # CuPy's astype has no casting
        return array.astype(dtype, order="F", copy=False)
    return array.astype(dtype, order="F", casting="safe", copy=False)


def check_rhs(rhs: ndarray, n: int) -> None:
    """SciPy's errors about the shape of a right-hand side."""
    if rhs.ndim > 2:
        raise ValueError("object too deep for desired array")
    if rhs.ndim == 0:
        raise ValueError("object of too small depth for desired array")
    if rhs.shape[0] != n:
        raise ValueError("b is of incompatible size")


def like(rhs: ndarray, x: ndarray) -> ndarray:
    """`x` as the subclass of ndarray that `rhs` is."""
    out = np.array(rhs, dtype=x.dtype, order="F", subok=True)
    out[...] = x
    return out
