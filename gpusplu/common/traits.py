"""Inputs of the choice of an engine: traits of a matrix and of its analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .matrix import Pattern


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a square sparse matrix.

    Attributes
    ----------
    n, nnz : int
        Order and number of entries.
    dtype : str
    density : float
        Share of the entries that are stored; 0 of an empty matrix.
    pattern_symmetry : float
        Share of the off-diagonal entries of which the transposed entry is stored too.
    hermitian : bool
        Up to rounding.
    definite_likely : bool
        Hermitian with a positive diagonal. Not verified by a Cholesky factorization.
    diagonally_dominant : bool
        By columns.
    diagonal : int
        Diagonal entries that are not zero.
    """

    n: int
    nnz: int
    dtype: str
    density: float
    pattern_symmetry: float
    hermitian: bool
    definite_likely: bool
    diagonally_dominant: bool
    diagonal: int


@dataclass(frozen=True, slots=True)
class Structure:
    """Structure of the factors that an analysis predicts.

    Attributes
    ----------
    n, nnz : int
        Order and number of entries of the matrix.
    itemsize : int
        Bytes of an entry.
    cholesky : bool
        One triangle is factored.
    method : {"column", "front", "ldlt"}
        Of the CPU engine; "ldlt" is by fronts too.
    ordering : str
    fill : int
        Entries of L, the diagonal included.
    flops : float
        Of one factorization [flop].
    column_levels, super_levels : int
        Heights of the elimination tree and of the tree of supernodes.
    widest : int
        Columns of the widest supernode, 0 where there are none.
    """

    n: int
    nnz: int
    itemsize: int
    cholesky: bool
    method: str
    ordering: str
    fill: int
    flops: float
    column_levels: int
    super_levels: int
    widest: int


def matrix_traits(pattern: Pattern, canonical: np.ndarray) -> Traits:
    """Traits of the matrix with these canonical values. Cost: two passes over its entries."""
    n, nnz = pattern.n, pattern.nnz
    found = _core.symmetry_traits(pattern.ptr, pattern.ind, canonical)
    columns = np.repeat(np.arange(n), np.diff(pattern.ptr))
    hermitian = bool(found["hermitian_error"] <= 100 * np.finfo(canonical.dtype).eps)
    return Traits(
        n=n,
        nnz=nnz,
        dtype=canonical.dtype.name,
        density=nnz / (float(n) * n) if n else 0.0,
        pattern_symmetry=float(found["pattern_symmetry"]),
        hermitian=hermitian,
        definite_likely=hermitian and bool(found["positive_diagonal"]),
        diagonally_dominant=bool(found["diagonally_dominant"]),
        diagonal=int(np.count_nonzero((pattern.ind == columns) & (canonical != 0))),
    )


def structure_of(symbolic: Any, nnz: int, itemsize: int) -> Structure:
    """Structure of the factors of a matrix with `nnz` entries, from a `_core.Symbolic`. Cost: O(supernodes)."""
    super_ptr = np.asarray(symbolic.super_ptr)
    return Structure(
        n=int(symbolic.n),
        nnz=int(nnz),
        itemsize=int(itemsize),
        cholesky=symbolic.kind != "lu",
        method="ldlt" if symbolic.kind == "ldlt" else str(symbolic.method),
        ordering=str(symbolic.ordering),
        fill=int(symbolic.lnz),
        flops=float(symbolic.flops),
        column_levels=int(symbolic.column_levels),
        super_levels=int(symbolic.super_levels),
        widest=int(np.diff(super_ptr).max()) if super_ptr.size > 1 else 0,
    )
