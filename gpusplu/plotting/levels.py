"""Levels: sets of columns, or of supernodes, that can be factored at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from ..common import matrix
from ..common.options import read_ordering
from ..cost.calibration import for_core
from .structure import ColumnStructure, grid


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
    candidates = _core.analyze_fronts(*arrays, for_core(), cholesky=cholesky, ordering=name, perm=perm)
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
