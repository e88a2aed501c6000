"""product and pairs in JAX's own functions, for GPUs: gathers and scatters that XLA fuses.

Padding has row and column n, which JAX's functions leave out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import mlir

from .structure import COLUMN, ROW, Structure


def lower(function: Callable[..., Any]) -> Any:
    """The lowering rule of a primitive that a function of JAX's stands for."""
    return mlir.lower_fun(function, multiple_results=True)


def product(
    values: Any, *others: Any, structure: Structure | None, n: int, layout: str, transpose: bool
) -> tuple[Any, ...]:
    """``op(A) x``, of vectors that are rows."""
    *index, x = others

    def one(values: Any, x: Any, *index: Any) -> Any:
        to, source = coordinates(structure, n, layout, index, values.shape[0])
        if transpose:
            to, source = source, to
        return jnp.zeros_like(x).at[:, to].add(values * taken(x, source), mode="drop")

    return (each_system(one, (1, 2), (values, x), index, layout),)


def pairs(left: Any, *others: Any, structure: Structure | None, n: int, layout: str) -> tuple[Any, ...]:
    """Values ``sum_k left[k, row] * right[k, column]``."""
    *index, right = others
    size = index[0].shape[-1 if layout == "bcsr" else -2] if structure is None else structure.size

    def one(left: Any, right: Any, *index: Any) -> Any:
        rows, columns = coordinates(structure, n, layout, index, size)
        return (taken(left, rows) * taken(right, columns)).sum(0)

    return (each_system(one, (2, 2), (left, right), index, layout),)


def taken(vectors: Any, where: Any) -> Any:
    """Elements of rows; 0 where there are none."""
    return vectors.at[:, where].get(mode="fill", fill_value=0)


def coordinates(structure: Structure | None, n: int, layout: str, index: tuple[Any, ...], size: int) -> tuple[Any, Any]:
    """Rows and columns of the stored values of one system."""
    if structure is not None:
        rows, columns = structure.coordinates
        return structure.padded(rows, n), structure.padded(columns, n)
    if layout == "bcoo":
        rows, columns = index[0][:, ROW], index[0][:, COLUMN]
    else:
        columns, pointers = index
        rows = jnp.searchsorted(pointers, jnp.arange(size), side="right") - 1
    inside = (rows < n) & (columns < n)
    return jnp.where(inside, rows, n), jnp.where(inside, columns, n)


def each_system(
    one: Callable[..., Any], axes: tuple[int, int], arrays: tuple[Any, Any], index: Any, layout: str
) -> Any:
    """``one(*arrays, *index)``, for every system of those that have a batch."""
    own_axes = (*axes, *((1, 1) if layout == "bcsr" else (2,)))[: 2 + len(index)]
    mapped = tuple(0 if a.ndim > axis else None for a, axis in zip((*arrays, *index), own_axes, strict=True))
    function = one if all(axis is None for axis in mapped) else jax.vmap(one, in_axes=mapped)
    return function(*arrays, *index)
