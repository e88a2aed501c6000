"""What pictures of the matrix plane show: patterns of L + U by columns and by fronts, and levels of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..common import matrix
from ..common.options import Options, read_ordering
from ..cost.calibration import for_core
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
    return structure_of(cpu_factor(analysis, known, values, options), known)


def structure_of(core: Any, known: matrix.Pattern) -> ColumnStructure:
    """Structure of L and U of an engine's factor of a matrix with this pattern; with one triangle U is L^T."""
    n = known.n
    lower = in_columns(core.lower(), n)
    upper = in_columns(core.upper(), n) if core.symbolic.kind == "lu" else lower.T
    rows, columns = (np.argsort(perm) for perm in (core.row_perm, core.col_perm))  # they gather
    rows = np.concatenate((rows[known.ind], np.arange(n)))
    columns = np.concatenate((columns[np.repeat(np.arange(n), np.diff(known.ptr))], np.arange(n)))
    B = sp.csc_array((np.ones(rows.size, bool), (rows, columns)), shape=(n, n))
    B.sum_duplicates()
    return ColumnStructure(B, pattern_of(sp.tril(lower, -1)), pattern_of(sp.triu(upper, 1)))


def in_columns(arrays: tuple[np.ndarray, np.ndarray, np.ndarray], n: int) -> sp.csc_array:
    """The matrix of pointers, rows and values of columns."""
    pointers, rows, values = arrays
    return sp.csc_array((values, rows, pointers), shape=(n, n))


def pattern_of(A: Any) -> sp.csc_array:
    """Boolean CSC matrix of the stored entries, zeros included."""
    A = sp.coo_array(A)
    out = sp.csc_array((np.ones(A.nnz, bool), A.coords), shape=A.shape)
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


def column_levels(structure: ColumnStructure, right_looking: bool = True) -> np.ndarray:
    """Level of every column.

    Parameters
    ----------
    structure : ColumnStructure
    right_looking : bool, optional
        True: column k waits for j < k with U(j, k) or L(k, j). The second half is GLU 2.0's correction, which Lee,
        Achar and Nakhla (TVLSI 2018, section II-C) explain: where several columns update the rest of the matrix at
        once, one must not read row k's L while another still changes it. False: left-looking, U(j, k) alone.

    Returns
    -------
    level : ndarray, shape (n,), int32
        From 0.

    See Also
    --------
    draw_levels

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> level = gs.plotting.column_levels(structure)
    >>> bool(level.min() == 0 and level.size == structure.n)
    True
    """
    n = structure.n
    level = np.zeros(n, np.int32)
    U = structure.U
    rows = structure.L.tocsr() if right_looking else None
    for k in range(n):
        before = level[U.indices[U.indptr[k] : U.indptr[k + 1]]]
        level[k] = before.max(initial=-1) + 1
        if rows is not None:
            before = level[rows.indices[rows.indptr[k] : rows.indptr[k + 1]]]
            level[k] = max(level[k], before.max(initial=-1) + 1)
    return level


@dataclass(frozen=True)
class Fronts:
    """Supernodes of a multifrontal factorization, in postorder.

    Attributes
    ----------
    first, width, below : ndarray, shape (s,), int64
        First column, columns, and rows below them.
    rows : list of ndarray
        The rows below, ascending.
    level : ndarray, shape (s,), int64
        0 for leaves of the supernode tree, else one more than the highest child.
    flops : ndarray, shape (s,), float64
        Of the elimination of its columns [flop].

    See Also
    --------
    fronts, draw_supernodes, draw_spy

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> fronts.n, int(fronts.width.sum())
    (400, 400)
    """

    first: np.ndarray
    width: np.ndarray
    below: np.ndarray
    rows: list[np.ndarray]
    level: np.ndarray
    flops: np.ndarray

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return int(self.width.sum())


def fronts(A: Any, ordering: Any = "auto", cholesky: bool = False) -> Fronts:
    """Analyse `A` for fronts.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
    ordering : {"auto", "amd", "nd", "natural"} or permutation, optional
    cholesky : bool, optional
        `A` is Hermitian positive definite.

    Raises
    ------
    NotHermitianError
        `cholesky`, and `A` is not Hermitian.
    RuntimeError
        ``Factor is exactly singular``, whatever the values are.

    See Also
    --------
    draw_supernodes, draw_spy

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> int(fronts.level.max()) > 1
    True
    """
    pattern, data = matrix.canonicalize(matrix.read_matrix(matrix.to_host(A)))
    if cholesky:
        pattern = matrix.both_triangles(pattern, data, "cholesky")
    name, perm = read_ordering(ordering, pattern.n)
    values = pattern.gather(data)
    arrays = pattern.ptr, pattern.ind, values
    candidates = _core.analyze_candidates(
        *arrays, for_core(), method="front", cholesky=cholesky, ordering=name, perm=perm
    )
    if candidates[0].structural_rank < pattern.n:
        raise RuntimeError("Factor is exactly singular")
    return fronts_of(min(candidates, key=lambda candidate: float(candidate.flops)))


def fronts_of(core: Any) -> Fronts:
    """The supernodes of an analysis."""
    first = core.super_ptr[:-1].astype(np.int64)
    width = np.diff(core.super_ptr).astype(np.int64)
    below = np.diff(core.row_ptr)
    rows = np.split(core.row_ind, core.row_ptr[1:-1]) if width.size else []
    level = np.zeros(width.size, np.int64)
    for s, parent in enumerate(core.super_parent):
        if parent >= 0:
            level[parent] = max(level[parent], level[s] + 1)
    return Fronts(first, width, below, rows, level, front_flops(width, below, core.cholesky))


def front_flops(width: np.ndarray, below: np.ndarray, cholesky: bool) -> np.ndarray:
    """Multiplications, additions and divisions that eliminate `width` columns with `below` rows under them.

    LU with r rows left under a pivot: r divisions and 2 r^2 for the update; Cholesky updates one triangle: r (r + 1).
    """
    flops = np.empty(width.size)
    for s, (w, b) in enumerate(zip(width, below, strict=True)):
        r = np.arange(b, b + w, dtype=np.float64)
        flops[s] = np.sum(r + (r * (r + 1) if cholesky else 2 * r * r))
    return flops


def entries_by_cell(
    structure: Fronts | ColumnStructure, first: int = 0, cells: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """Entries of L + U in the cells of a grid over the matrix plane, or over its rows and columns from `first` on.

    Returns
    -------
    edges : ndarray, shape (cells + 1,), int64
    counts : ndarray, shape (cells, cells), float64

    Raises
    ------
    ValueError
        `first` is not a column.

    See Also
    --------
    draw_spy

    Examples
    --------
    >>> fronts = gs.plotting.fronts(gs.gallery.poisson(20, 20), cholesky=True)
    >>> edges, counts = gs.plotting.entries_by_cell(fronts, cells=4)
    >>> edges
    array([  0, 100, 200, 300, 400])
    >>> counts.shape
    (4, 4)
    """
    edges, cell = grid(structure.n, first, cells)
    counts = np.zeros((edges.size, edges.size))  # the last row and column: outside
    if isinstance(structure, ColumnStructure):
        for triangle in (structure.L, structure.U):
            columns = np.repeat(np.arange(structure.n), np.diff(triangle.indptr))
            places = cell[triangle.indices] * edges.size + cell[columns]
            counts += np.bincount(places, minlength=counts.size).reshape(counts.shape)
        counts += np.diag(np.bincount(cell, minlength=edges.size))
        return edges, counts[:-1, :-1]
    for begin, width, rows in zip(structure.first, structure.width, structure.rows, strict=True):
        own, columns = np.unique(cell[begin : begin + width], return_counts=True)
        counts[np.ix_(own, own)] += np.outer(columns, columns)
        if rows.size:
            below, under = np.unique(cell[rows], return_counts=True)
            block = np.outer(under, columns)
            counts[np.ix_(below, own)] += block
            counts[np.ix_(own, below)] += block.T
    return edges, counts[:-1, :-1]
