"""Implementation of the primitives with NumPy arrays on the host: the callbacks of compiled programs.

Matrices are values, shape (size,) or (nbatch, size), and either a `Structure` or index arrays with a shape like theirs;
vectors are rows, shape (k, n) or (nbatch, k, n). These functions do not raise because of values: solutions of a
singular matrix, or of one with NaN or Inf, are NaN, as in jax.numpy.linalg.solve. They do not call JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import NonFiniteError
from ..factors.batch import BatchedFactor
from ..factors.gradients import Factored, conjugate
from .store import STORE
from .structure import INDEX_AXES, Structure, seen


def each_structure(work: Callable[..., Any]) -> Callable[..., Any]:
    """``work(structure, values, *others)`` for structures that may be arrays, one for all systems or one for each."""

    def with_arrays(*arrays: np.ndarray, structure: Structure | None, n: int, layout: str, **options: Any) -> Any:
        if structure is not None:
            return work(structure, *arrays, **options)
        axes = INDEX_AXES[layout]
        number = len(axes)
        index, others = arrays[1 : 1 + number], (arrays[0], *arrays[1 + number :])
        if index[-1].ndim == axes[-1]:
            return work(seen(n, layout, index), *others, **options)
        if all((array == array[0]).all() for array in index):
            return work(seen(n, layout, tuple(array[0] for array in index)), *others, **options)
        systems = zip(zip(*index, strict=True), zip(*others, strict=True), strict=True)
        return stacked(work(seen(n, layout, index), *others, **options) for index, others in systems)

    return with_arrays


def stacked(results: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Of one system each, with the systems as the first dimension."""
    return [np.stack(parts) for parts in zip(*results, strict=True)]


@each_structure
def solve(
    structure: Structure, values: np.ndarray, b: np.ndarray, *, transpose: bool, kept: int
) -> Sequence[np.ndarray]:
    try:
        with STORE.factor(structure, values, transpose, kept) as factored:
            return (solved(factored, b, "T" if transpose else "N"),)
    except RuntimeError:
        return (np.full((*values.shape[:-1], *b.shape[-2:]), np.nan, b.dtype),)


def solved(factored: Factored, b: Any, op: str) -> Any:
    """Solutions as rows."""
    return rows_of(factored.solve(columns_of(factored, b), op), b)


def columns_of(factored: Factored, b: Any) -> Any:
    """Right-hand sides in a factor's layout: one vector, or columns, for a system or for each system of a batch."""
    if b.shape[-2] == 1:
        return b[..., 0, :]
    if not isinstance(factored.factor, BatchedFactor):
        return b.T
    b = b if b.ndim == 3 else b[None].repeat(len(factored.factor), axis=0)
    return b.swapaxes(-1, -2).copy()


def rows_of(x: Any, b: Any) -> Any:
    """Their solutions as rows."""
    return x[..., None, :] if b.shape[-2] == 1 else x.swapaxes(-1, -2)


@each_structure
def slogdet(structure: Structure, values: np.ndarray, *, kept: int) -> Sequence[np.ndarray]:
    try:
        with STORE.factor(structure, values, kept=kept) as factored:
            sign, logarithm = factored.factor.slogdet()
    except NonFiniteError:
        sign = logarithm = np.nan
    except RuntimeError:
        sign, logarithm = 0, -np.inf
    batch = values.shape[:-1]
    return np.full(batch, sign, values.dtype), np.full(batch, logarithm, values.real.dtype)


@each_structure
def selected(structure: Structure, values: np.ndarray) -> Sequence[np.ndarray]:
    """The entry (column, row) of the inverse for every entry (row, column) of A."""
    rows, columns = structure.coordinates
    try:
        # No later call needs this factor: the store counts this as use by an adjoint.
        with STORE.factor(structure, values, transpose=True) as factored:
            entries = conjugate(factored.adjoint_inverse(rows, columns))
    except RuntimeError:
        entries = np.full((*values.shape[:-1], rows.size), np.nan, values.dtype)
    return (structure.padded(entries),)
