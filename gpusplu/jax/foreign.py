"""Python functions that compiled programs call, with arrays where they lie: JAX's buffer_callback.

A `Place` calls ``work(*arrays)`` with the memory of a call's operands, and copies the results to their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jax.experimental.buffer_callback import buffer_callback
from jax.interpreters import mlir

from ..common.arrays import in_stream

Place = Callable[..., None]


def on_host(work: Callable[..., Sequence[Any]], context: Any, results: Sequence[Any], *operands: Any) -> None:
    """Call `work` with NumPy's arrays of the operands, which are read-only."""
    arrays = [np.asarray(operand) for operand in operands]
    for array in arrays:
        array.flags.writeable = False
    made = work(*arrays)
    for result, array in zip(results, made, strict=True):
        np.copyto(np.asarray(result), array, casting="no")


def on_device(work: Callable[..., Sequence[Any]], context: Any, results: Sequence[Any], *operands: Any) -> None:
    """Call `work` with CuPy's arrays of the operands, in XLA's stream."""
    if not any(map(has_memory, results)):
        return
    _, device = results[0].__dlpack_device__()
    with in_stream(device, context.stream or 0):
        made = work(*map(array_of, operands))
        for result, array in zip(results, made, strict=True):
            array_of(result)[...] = array


def has_memory(buffer: Any) -> bool:
    return 0 not in buffer.shape


def array_of(buffer: Any) -> Any:
    """CuPy's array of memory that XLA owns."""
    import cupy

    return cupy.asarray(buffer) if has_memory(buffer) else cupy.empty(buffer.shape, buffer.dtype)


def lower(
    place: Place, work: Callable[..., Sequence[Any]], context: Any, *operands: Any, **parameters: Any
) -> Sequence[Any]:
    """The lowering rule of a primitive that calls ``work(*arrays, **parameters)``."""
    call = buffer_callback(partial(place, partial(work, **parameters)), context.avals_out)
    return mlir.lower_fun(call, multiple_results=True)(context, *operands)
