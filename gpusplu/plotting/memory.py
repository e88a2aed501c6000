"""Memory requests of a column factorization on the matrix plane, and their strides.

Chen, Wang, Yang et al. (crisscross blocked LU for circuit matrices on GPUs, section 5) draw the distributions of memory
requests (MemReqDist) and of memory strides (MemStrdDist) over the matrix plane. They trace LU by rows through a dense
work vector (algorithm 2); ours traces LU by columns in place, so the definitions differ:

- A *request* is the access to one stored entry, drawn at the entry's place. Left-looking column LU updates column k by
  column j for every U(j, k): that asks once for U(j, k), for every L(i, j), and for every (i, k) that it changes. In
  the paper (section 5.1) a multiply-add is four requests: value and index of the factor, reading and writing the
  target.
- A *stride* is the distance, in stored entries of column k, between the places of two consecutive (i, k) of one update;
  1 means that neighbouring threads meet neighbouring memory. It is drawn at the second one's place. In the paper (eqs.
  11 and 12) it is counted in the work vector and one less, so that neighbours have 0.
- *Blocked* at division point p, rows and columns from p on are one dense array. In it the Schur complement holds an
  entry while all columns before p are summed into it (one request), and LU runs on tiles of 32 x 32: an entry is asked
  for once as target and, as a factor, once for every tile to its right (L) or below (U). All strides there are 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engines.columns.plan import entries_of
from .structure import ColumnStructure, grid

TILE = 32


@dataclass(frozen=True)
class MemoryMaps:
    """Sums over cells of the matrix plane, cell (r, c) being rows ``edges[r]`` to ``edges[r + 1]``, columns alike.

    Attributes
    ----------
    edges : ndarray, shape (cells + 1,), int64
    requests : ndarray, shape (cells, cells), int64
    strides, hops : ndarray, shape (cells, cells), int64
        Sum and number of strides.
    division : int
        n if unblocked.

    See Also
    --------
    memory_maps

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> maps = gs.plotting.memory_maps(structure, cells=8)
    >>> maps.requests.shape
    (8, 8)
    """

    edges: np.ndarray
    requests: np.ndarray
    strides: np.ndarray
    hops: np.ndarray
    division: int

    @property
    def mean_stride(self) -> np.ndarray:
        """Mean stride of every cell [entries]; NaN where there is none."""
        mean: np.ndarray = np.divide(self.strides, self.hops, out=np.full(self.hops.shape, np.nan), where=self.hops > 0)
        return mean


def memory_maps(
    structure: ColumnStructure, division: int | None = None, first: int = 0, cells: int = 128
) -> MemoryMaps:
    """Trace the accesses of a factorization.

    Parameters
    ----------
    structure : ColumnStructure
    division : int, optional
        First row and column of the dense trailing block; unblocked unless given.
    first : int, optional
        First row and column of the part of the plane that is looked at.
    cells : int, optional
        Of the picture, per side.

    Raises
    ------
    ValueError
        `division` or `first` is not a column.

    See Also
    --------
    draw_requests, draw_strides

    Notes
    -----
    Cost: one pass over all multiply-adds.

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> whole, blocked = gs.plotting.memory_maps(structure), gs.plotting.memory_maps(structure, division=90)
    >>> whole.division, blocked.division
    (114, 90)
    """
    n = structure.n
    p = n if division is None else division
    if not 0 <= p <= n:
        raise ValueError(f"memory_maps: division is {division}, the matrix has {n} columns")
    edges, cell = grid(n, first, cells)
    cells = edges.size  # and one more for positions outside, which is dropped
    requests, strides, hops = (np.zeros((cells, cells), np.int64) for _ in range(3))
    L, U = structure.L, structure.U
    place = np.empty(n, np.int64)
    for k in range(n):
        upper = U.indices[U.indptr[k] : U.indptr[k + 1]]
        lower = L.indices[L.indptr[k] : L.indptr[k + 1]]
        column = np.concatenate((upper, [k], lower))
        place[column] = np.arange(column.size)
        pivots = upper[upper < p]  # tiles handle those in the trailing block
        places = entries_of(L.indptr, pivots)
        rows = L.indices[places]
        source = np.repeat(pivots, L.indptr[pivots + 1] - L.indptr[pivots])
        c = cell[k]
        requests[:, c] += np.bincount(cell[pivots], minlength=cells)  # U(j, k)
        sparse = rows < p if k >= p else np.ones(rows.size, bool)
        requests[:, c] += np.bincount(cell[rows[sparse]], minlength=cells)  # (i, k)
        follows = np.flatnonzero((source[1:] == source[:-1]) & sparse[1:] & sparse[:-1]) + 1
        hop = place[rows[follows]] - place[rows[follows - 1]]
        strides[:, c] += np.bincount(cell[rows[follows]], hop, cells).astype(np.int64)
        hops[:, c] += np.bincount(cell[rows[follows]], minlength=cells)
    requests += _factor_reads(structure, cell, p, cells)
    _add_trailing_block(requests, strides, hops, cell, p)
    return MemoryMaps(edges, requests[:-1, :-1], strides[:-1, :-1], hops[:-1, :-1], p)


def _factor_reads(structure: ColumnStructure, cell: np.ndarray, p: int, cells: int) -> np.ndarray:
    """Requests for L(i, j), j < p: one for every entry of row j of U."""
    L, n = structure.L, structure.n
    columns = np.repeat(np.arange(n), np.diff(L.indptr))
    uses = np.bincount(structure.U.indices, minlength=n)
    uses[p:] = 0
    counts = np.bincount(cell[L.indices] * cells + cell[columns], uses[columns], cells * cells)
    return counts.astype(np.int64).reshape(cells, cells)


def _add_trailing_block(requests: np.ndarray, strides: np.ndarray, hops: np.ndarray, cell: np.ndarray, p: int) -> None:
    """Accesses of a dense trailing block that is factored by tiles."""
    n, cells = cell.size, requests.shape[0]
    tiles = -(-(n - p) // TILE)
    tail = cell[p:]
    own = np.arange(n - p) // TILE
    for i in range(n - p):
        # as target of the Schur complement and of its tile, then as L for tiles to the right or U for those below
        counts = 2 + tiles - 1 - np.minimum(own[i], own)
        requests[tail[i]] += np.bincount(tail, counts, cells).astype(np.int64)
        whole = np.bincount(tail, minlength=cells)
        strides[tail[i]] += whole
        hops[tail[i]] += whole
