"""Right-hand sides: checks with SciPy's errors, and conversion to the arrays that engines take."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from .arrays import is_cupy, is_cupy_array

TRANS = {"N": 0, "n": 0, "T": 1, "t": 1, "H": 2, "h": 2}
UNITS_PER_SOLVE = 32  # columns of the identity that are solved for together


def complex_dtype(dtype: np.dtype) -> np.dtype:
    return np.result_type(dtype, np.complex64)


def type_name(value: object) -> str:
    """Name of a type as in CPython's argument errors."""
    return "None" if value is None else type(value).__name__


def cast(array: Any, dtype: np.dtype, order: Literal["F", "C"] = "F") -> Any:
    """`array` as `dtype`, contiguous, on the side where it is; NumPy's error if that would lose precision."""
    if array.dtype == dtype and (array.flags.f_contiguous if order == "F" else array.flags.c_contiguous):
        return array
    if type(array) is not ndarray and is_cupy_array(array):
        if array.dtype != dtype:
            np.empty(0, array.dtype).astype(dtype, casting="safe")  # CuPy's astype has no casting
        return array.astype(dtype, order=order, copy=False)
    return array.astype(dtype, order=order, casting="safe", copy=False)


def check_rhs(rhs: ndarray, n: int) -> None:
    """SciPy's errors about the shape of a right-hand side."""
    if rhs.ndim > 2:
        raise ValueError("object too deep for desired array")
    if rhs.ndim == 0:
        raise ValueError("object of too small depth for desired array")
    if rhs.shape[0] != n:
        raise ValueError("b is of incompatible size")


def check_out(out: Any, shape: tuple[int, ...]) -> None:
    """The error about an `out` that a solution of this shape does not fit into."""
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, and the solution {shape}")


def copied(x: Any, out: Any) -> Any:
    """`x`, or `out` with its numbers if there is one."""
    if out is None:
        return x
    check_out(out, x.shape)
    np.copyto(out, x, casting="no")
    return out


def like(rhs: ndarray, x: ndarray) -> ndarray:
    """`x` as the subclass of ndarray that `rhs` is."""
    out = np.array(rhs, dtype=x.dtype, order="F", subok=True)
    out.view(np.ndarray)[...] = x  # a mask stays, as in SciPy
    return out


def check_trans(trans: Any) -> int:
    """SciPy's errors about `trans`; its number."""
    if not isinstance(trans, str) or len(trans) != 1:
        raise TypeError(f"argument 2 must be a unicode character, not {type_name(trans)}")
    if trans not in TRANS:
        raise ValueError("trans must be N, T, or H")
    return TRANS[trans]


def check_array(rhs: Any) -> Any:
    """Raise SciPy's error if `rhs` is no array; return NumPy or CuPy, the module of the array."""
    if type(rhs) is ndarray:
        return np
    if not (isinstance(rhs, np.ndarray) or is_cupy(rhs)):
        advice = "; pass numpy.from_dlpack of it" if hasattr(rhs, "__dlpack__") else ""
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type_name(rhs)}{advice}")
    if not is_cupy(rhs):
        return np
    import cupy

    return cupy


def solve_batch_as_given(
    solve: Callable[[Any, int], Any], rhs: Any, trans: Any, shape: tuple[int, int], dtype: np.dtype
) -> Any:
    """Solve for right-hand sides of a batch of `shape` (nbatch, n): ``solve(b, trans)`` takes C-contiguous arrays of
    `dtype` and of shape (nbatch, n) or (nbatch, n, k)."""
    xp, op = check_array(rhs), check_trans(trans)
    if rhs.shape == shape[1:]:
        rhs = xp.broadcast_to(rhs, shape)
    if rhs.ndim not in (2, 3) or rhs.shape[:2] != shape:
        n, wanted = shape[1], f"({shape[0]}, {shape[1]}"
        raise ValueError(f"b of a batch must have shape ({n},), {wanted}) or {wanted}, k), got {rhs.shape}")
    if rhs.dtype.kind != "c" or dtype.kind != "f":
        return solve(cast(rhs, dtype, order="C"), op)
    parts = cast(rhs, complex_dtype(dtype), order="C")
    columns = parts if parts.ndim == 3 else parts[..., None]
    solved = solve(xp.concatenate((columns.real, columns.imag), axis=2), op)
    half = columns.shape[2]
    x = (solved[..., :half] + 1j * solved[..., half:]).astype(parts.dtype, copy=False)
    return x.reshape(parts.shape)


def solve_as_given(solve: Callable[[Any, int], Any], rhs: Any, trans: Any, n: int, dtype: np.dtype) -> Any:
    """Solve for the caller's array: ``solve(b, trans)`` takes arrays of `dtype` with `n` rows."""
    xp, op = check_array(rhs), check_trans(trans)
    if not 0 < rhs.ndim < 3:
        check_rhs(rhs, n)  # before it is cast, as in SciPy
    plain = np.asarray(rhs) if xp is np else rhs
    if plain.dtype.kind == "c" and dtype.kind == "f":
        parts = cast(plain, complex_dtype(dtype))
        check_rhs(parts, n)
        columns = 2 * prod(parts.shape[1:])
        real_imag = xp.stack((parts.real, parts.imag), axis=-1).reshape(parts.shape[0], columns)
        solved = solve(xp.asfortranarray(real_imag), op).reshape((*parts.shape, 2))
        x = xp.empty(parts.shape, dtype=parts.dtype, order="F")
        x.real, x.imag = solved[..., 0], solved[..., 1]
    else:
        b = cast(plain, dtype)
        check_rhs(b, n)
        x = solve(b, op)
    return x if xp is not np or type(rhs) is np.ndarray else like(rhs, x)
