"""Deferred calls of a factor, check="later": the arrays that they accept, and which factors support them.

A caller that captures them must know all memory that the graph accesses. So arrays that need a conversion are refused.
Without ``out`` the solution is allocated by CuPy; arrays that kernels cannot use in place are copied by commands of the
graph.
"""

from __future__ import annotations

from typing import Any

from ..common import matrix
from ..common.rhs import check_out, check_rhs, check_trans, copied, type_name

CHECKS = ("now", "later")


def is_deferred(factor: Any, check: Any, out: Any, arrays: dict[str, Any]) -> bool:
    """Whether a call is queued on the device and checked later. Calls with host arrays are checked at once if the
    processor factors, or did when this factor was made.

    Raises
    ------
    ValueError
        `check` is not one of `CHECKS`, or `out` is passed without "later".
    TypeError
        Arrays on the host for a factor on a device, or the reverse.
    """
    if check not in CHECKS:
        raise ValueError(f"check must be 'now' or 'later', not {check!r}")
    if check == "now":
        if out is not None:
            raise ValueError("out= is for check='later'; with check='now' the solution is a new array")
        return False
    on_host = [name for name, array in arrays.items() if not matrix.is_cupy(array)]
    if len(on_host) == len(arrays) and factor._began_on_host:
        return False
    if factor._device_array is None:
        raise TypeError(
            f"engine={factor.engine!r} works on the processor, and copying arrays from a device to it requires a wait; "
            "pass engine= or device= to have the factor on the device, or check='now'"
        )
    for name in on_host:
        raise TypeError(
            f"check='later' takes arrays on the device, and {name} is {type_name(arrays[name])}; pass a "
            "cupy.ndarray, or check='now'"
        )
    return True


def as_it_is(factor: Any, name: str, array: Any, order: str = "Fortran") -> Any:
    """`array`, checked: the device must be able to read it without a copy, contiguous in this order."""
    if not matrix.is_cupy_array(array):
        raise TypeError(f"check='later' takes {name} as a cupy.ndarray, not as {type_name(array)}")
    if array.dtype != factor.dtype:
        raise TypeError(f"check='later' casts nothing: {name} is {array.dtype}, and the factor {factor.dtype}")
    if not (array.flags.f_contiguous if order == "Fortran" else array.flags.c_contiguous):
        raise ValueError(f"check='later' copies nothing: {name} must be contiguous, several columns in {order}'s order")
    return array


def values_as_they_are(factor: Any, values: Any) -> Any:
    """The caller's values, in the order of A.data."""
    if getattr(factor, "_given", None) is not None:
        raise ValueError("check='later' takes no values for a factor that `update` gave more entries; pass check='now'")
    size = factor._pattern.size
    if getattr(values, "shape", ()) != (size,):
        raise ValueError(f"check='later' takes values of shape ({size},), one for each entry of A.data")
    return as_it_is(factor, "values", values)


def refactor(factor: Any, values: Any, check: str) -> None:
    """`Factor.refactor` with `check` given."""
    if is_deferred(factor, check, None, {"values": values}):
        values = values_as_they_are(factor, values)
        try:
            factor._factor_again()
            factor._core.refactor(values, wait=False)
        finally:
            factor._end_change()
    else:
        factor.refactor(values)


def solve(factor: Any, rhs: Any, trans: Any, check: str, out: Any, values: Any = None) -> Any:
    """`Factor.solve` with `check` or `out` given; with `values` `Factor.refactor_solve`."""
    given = {"values": values, "rhs": rhs, "out": out}
    if is_deferred(factor, check, out, {name: array for name, array in given.items() if array is not None}):
        return solve_deferred(factor, rhs, trans, out, values)
    return copied(factor.solve(rhs, trans) if values is None else factor.refactor_solve(values, rhs, trans), out)


def solve_deferred(factor: Any, rhs: Any, trans: Any, out: Any, values: Any) -> Any:
    """Solve without waiting, after a refactorization if there are values."""
    op, b = check_trans(trans), as_it_is(factor, "rhs", rhs)
    check_rhs(b, factor.shape[0])
    if out is not None:
        check_out(as_it_is(factor, "out", out), b.shape)
    if values is None:
        return factor._core.solve(b, op, out, wait=False)
    values = values_as_they_are(factor, values)
    try:
        factor._factor_again()
        if b.size != factor.shape[0]:
            factor._core.refactor(values, wait=False)
            return factor._core.solve(b, op, out, wait=False)
        return factor._core.refactor_solve(values, b, op, out, wait=False)
    finally:
        factor._end_change()
