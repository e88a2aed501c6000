"""Traits of a matrix that explain() shows."""

from __future__ import annotations

from dataclasses import dataclass

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
