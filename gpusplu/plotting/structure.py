"""Data of the pictures of column LU: the permuted pattern and the pattern of L + U."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..common import matrix
from ..common.options import Options, read_ordering
from ..cost.model import REFACTORIZATIONS
from ..engines import registry
from ..engines.problem import Problem, Request
from ..engines.processor import cpu_factor


@dataclass(frozen=True)
class ColumnStructure:
    """Patterns of a column LU ``B = A[row_perm][:, col_perm] = L U``, all n x n, CSC, rows ascending.

    Attributes
    ----------
    B : csc_array of bool
        Pattern that is factored, its whole diagonal included.
    L : csc_array of bool
        Strictly lower triangle of the pattern of L + U.
    U : csc_array of bool
        Strictly upper triangle.

    See Also
    --------
    column_structure

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> structure.B.nnz <= structure.L.nnz + structure.n + structure.U.nnz
    True
    """

    B: sp.csc_array
    L: sp.csc_array
    U: sp.csc_array

    @property
    def n(self) -> int:
        """Order."""
        return int(self.B.shape[0])


def column_structure(A: Any, ordering: Any = "auto", expected_refactors: float = REFACTORIZATIONS) -> ColumnStructure:
    """Factor `A` by column LU on the processor and keep the patterns.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
    ordering : {"auto", "amd", "nd", "natural"} or permutation, optional
    expected_refactors : float, optional
        By which "auto" chooses.

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.

    See Also
    --------
    draw_density, draw_requests, draw_strides, draw_levels

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> structure.n
    114
    """
    known, data = matrix.canonicalize(matrix.read_matrix(matrix.to_host(A)))
    values = known.gather(data)
    matrix.check_finite(known, values)
    name, perm = read_ordering(ordering, known.n)
    options = Options(name, perm, pivoting="partial")
    request = Request(registry.DEFAULT, "by columns", refactorizations=expected_refactors)
    analysis = Problem(known, values, "lu", options, request).for_processor()
    if analysis.structural_rank < known.n:
        raise RuntimeError("Factor is exactly singular")
    return structure_of(cpu_factor(analysis, known, values, options), known)


def structure_of(core: Any, known: matrix.Pattern) -> ColumnStructure:
    """Structure of L and U of an engine's factor of a matrix with this pattern; with one triangle U is L^T."""
    lower = compressed(core.lower(), known.n)
    upper = compressed(core.upper(), known.n) if core.symbolic.kind == "lu" else lower.T
    rows, columns = (np.argsort(perm) for perm in (core.row_perm, core.col_perm))  # they gather
    B = pattern(rows[known.ind], columns[np.repeat(np.arange(known.n), np.diff(known.ptr))], known.n)
    return ColumnStructure(B, strict(lower, lower=True), strict(upper, lower=False))


def compressed(arrays: tuple[np.ndarray, np.ndarray, np.ndarray], n: int) -> sp.csc_array:
    """The matrix of pointers, rows and values of columns."""
    pointers, rows, values = arrays
    return sp.csc_array((values, rows, pointers), shape=(n, n))


def pattern(rows: np.ndarray, columns: np.ndarray, n: int) -> sp.csc_array:
    """Boolean CSC matrix with these entries and the diagonal."""
    every = np.arange(n)
    rows, columns = np.concatenate((rows, every)), np.concatenate((columns, every))
    out = sp.csc_array((np.ones(rows.size, bool), (rows, columns)), shape=(n, n))
    out.sum_duplicates()
    return out


def strict(factor: Any, lower: bool) -> sp.csc_array:
    """Strict triangle as a boolean CSC matrix; stored zeros are entries."""
    entries = sp.coo_array(factor)
    keep = entries.row > entries.col if lower else entries.row < entries.col
    out = sp.csc_array((np.ones(keep.sum(), bool), (entries.row[keep], entries.col[keep])), shape=factor.shape)
    out.sort_indices()
    return out


def grid(n: int, first: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut rows ``first`` to n into at most `cells` cells with sizes that differ by at most one.

    Returns
    -------
    edges : ndarray, shape (cells + 1,), int64
    cell : ndarray, shape (n,), int64
        Of every row; rows before `first` have the number of cells.

    Raises
    ------
    ValueError
        `first` is not a row.
    """
    if not 0 <= first < n:
        raise ValueError(f"first is {first}, the matrix has {n} columns")
    cells = min(cells, n - first)
    edges = first + np.arange(cells + 1, dtype=np.int64) * (n - first) // cells
    cell = np.searchsorted(edges, np.arange(n), side="right") - 1
    cell[:first] = cells
    return edges, cell
