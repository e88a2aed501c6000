"""Right-hand sides as callers have them: what SciPy says about them, and what engines take."""

from __future__ import annotations

from collections.abc import Callable
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


def solve_as_given(solve: Callable[[Any, int], Any], rhs: Any, trans: Any, n: int, dtype: np.dtype) -> Any:
    """Solve for whatever array the caller gave: ``solve(b, trans)`` takes arrays of `dtype` with `n` rows."""
    if not (isinstance(rhs, np.ndarray) or matrix.is_cupy(rhs)):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type_name(rhs)}")
    if not isinstance(trans, str) or len(trans) != 1:
        raise TypeError(f"argument 2 must be a unicode character, not {type_name(trans)}")
    if trans not in TRANS:
        raise ValueError("trans must be N, T, or H")
    xp: Any = np
    if matrix.is_cupy(rhs):
        import cupy

        xp = cupy
    if rhs.dtype.kind == "c" and dtype.kind == "f":
        parts = cast(rhs, complex_dtype(dtype))
        check_rhs(parts, n)
        real_imag = xp.stack((parts.real, parts.imag), axis=-1).reshape(parts.shape[0], -1)
        solved = solve(xp.asfortranarray(real_imag), TRANS[trans]).reshape((*parts.shape, 2))
        x = xp.empty(parts.shape, dtype=parts.dtype, order="F")
        x.real, x.imag = solved[..., 0], solved[..., 1]
    else:
        b = cast(rhs if xp is not np else np.asarray(rhs), dtype)
        check_rhs(b, n)
        x = solve(b, TRANS[trans])
    return x if xp is not np or type(rhs) is np.ndarray else like(rhs, x)
