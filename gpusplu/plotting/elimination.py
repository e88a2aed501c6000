"""How column LU proceeds: density of the remaining submatrix, and memory requests and strides.

# Density

Density of the submatrix that remains after k steps of elimination: real, and predicted from probabilities.

Chen, Wang, Yang et al. (crisscross blocked LU for circuit matrices on GPUs, section 4.2) predict this density of a
symmetric pattern from average degrees: a pivot's degree is alpha times the average of the remaining submatrix (eq. 8),
its neighbours are neighbours as often as any two rows (eqs. 4-6), which gives a recursion for the number of entries
(eq. 9) and the density (eq. 10). Both predictions below rest on the same independence, of any pattern and without a
constant to choose.

**Uniform.** Let an off-diagonal entry of the remaining submatrix be nonzero with probability d. Step k makes (i, j)
nonzero if (i, k) and (k, j) both are, so ``1 - d' = (1 - d)(1 - d^2)``. That is eq. 9 with alpha = 1, but for terms
that vanish as the submatrix grows.

**By degrees.** Pivots of a fill-reducing order are anything but uniform: they come by rising degree. Row i expects a_i
and column j expects b_j further entries, N in all, and (i, j) is nonzero with probability ``min(1, a_i b_j / N)``
(the random graph with given degrees of Chung and Lu, Annals of Combinatorics 6, 2002). With m rows left, row i is hit
by pivot k with probability ``h = min(1, a_i b_k / N)``, then loses its entry in column k and gains those of the pivot
row that it has not: ``a_i' = a_i - h + h a_k (1 - a_i / m)``; columns alike. It needs only the degrees of the
permuted A.

Both ignore locality: neighbours of a pivot are often neighbours already, and a fill-reducing order seeks such
pivots. They therefore predict a dense rest much too early for circuits, and show how much locality saves. Where the
pattern of L + U is known, :func:`factor_density` bounds the real density from above.

# Memory

Memory requests of a column factorization on the matrix plane, and their strides.

Chen, Wang, Yang et al. (crisscross blocked LU for circuit matrices on GPUs, section 5) draw the distributions of memory
requests (MemReqDist) and of memory strides (MemStrdDist) over the matrix plane. They trace LU by rows through a dense
work vector (algorithm 2); gpusplu traces LU by columns in place, so the definitions differ:

- A *request* is the access to one stored entry, drawn at the entry's place. Left-looking column LU updates column k by
  column j for every U(j, k): one request for U(j, k), for every L(i, j), and for every (i, k) that changes. In
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
from .structures import ColumnStructure, grid

# Pivots taken together by the prediction: one in this many of those that are left.
STEPS = 512


def remaining_density(structure: ColumnStructure) -> np.ndarray:
    """Density of the remaining submatrix before every step, as it is.

    Returns
    -------
    density : ndarray, shape (n,), float64
        Entry k: nonzeros of rows and columns k.. after the first k steps, by ``(n - k)^2``.

    See Also
    --------
    factor_density, predicted_density, uniform_density, draw_density

    Notes
    -----
    Entry (i, j) of L + U that B has not is made by the smallest k with ``L[i, k]`` and ``U[k, j]``; it counts from step
    k + 1 until row or column ``min(i, j)`` is eliminated.

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> density = gs.plotting.remaining_density(structure)
    >>> bool(density[0] < density[-1] == 1)
    True
    """
    n = structure.n
    change = np.zeros(n + 2, np.int64)
    born = np.empty(n, np.int64)
    L, U, B = structure.L, structure.U, structure.B
    for j in range(n):
        pivots = U.indices[U.indptr[j] : U.indptr[j + 1]][::-1]  # the last one written, the smallest, stays
        places = entries_of(L.indptr, pivots)
        rows = L.indices[places]
        born[rows] = np.repeat(pivots, L.indptr[pivots + 1] - L.indptr[pivots]) + 1
        own = B.indices[B.indptr[j] : B.indptr[j + 1]]
        born[own] = 0
        rows = np.unique(np.concatenate((rows, own)))
        np.add.at(change, born[rows], 1)
        np.add.at(change, np.minimum(rows, j) + 1, -1)
    left = np.arange(n, 0, -1, dtype=np.float64)
    return np.cumsum(change)[:n] / left**2


def factor_density(structure: ColumnStructure) -> np.ndarray:
    """Density of the rows and columns k.. of L + U for every k: that of the submatrix with all fill yet to come.

    Returns
    -------
    density : ndarray, shape (n,), float64

    See Also
    --------
    remaining_density

    Examples
    --------
    >>> structure = gs.plotting.column_structure(gs.gallery.rlc_mesh(8, 8))
    >>> bool((gs.plotting.factor_density(structure) >= gs.plotting.remaining_density(structure)).all())
    True
    """
    n = structure.n
    counts = 1 + np.bincount(structure.U.indices, minlength=n) + np.diff(structure.L.indptr)
    return np.cumsum(counts[::-1])[::-1] / np.arange(n, 0, -1, dtype=np.float64) ** 2


def uniform_density(n: int, nnz: int) -> np.ndarray:
    """Predicted density before every step if every place is as likely as every other.

    Parameters
    ----------
    n : int
        Order.
    nnz : int
        Entries of B, its diagonal included.

    See Also
    --------
    remaining_density, predicted_density

    Examples
    --------
    >>> gs.plotting.uniform_density(4, 8).round(2)
    array([0.5 , 0.6 , 0.75, 1.  ])
    """
    density = np.empty(n)
    d = (nnz - n) / (n * (n - 1)) if n > 1 else 0.0
    for k in range(n):
        m = n - k
        density[k] = (d * (m - 1) + 1) / m  # the diagonal is always there
        d += (1 - d) * d * d
    return density


def predicted_density(row_degrees: np.ndarray, column_degrees: np.ndarray) -> np.ndarray:
    """Predicted density before every step, from the degrees of the permuted matrix.

    Parameters
    ----------
    row_degrees, column_degrees : ndarray, shape (n,)
        Off-diagonal entries of the rows and columns of B, in the order of elimination.

    Returns
    -------
    density : ndarray, shape (n,), float64

    See Also
    --------
    remaining_density, uniform_density

    Notes
    -----
    Cost: pivots are taken 1/512 of the remaining ones at a time, the density between is interpolated.

    Examples
    --------
    >>> degrees = np.array([1, 1, 2, 2])
    >>> gs.plotting.predicted_density(degrees, degrees).shape
    (4,)
    """
    a, b = row_degrees.astype(np.float64), column_degrees.astype(np.float64)
    n = a.size
    steps, densities = [], []
    k = 0
    while k < n:
        m = n - k
        N = max((a.sum() + b.sum()) / 2, np.finfo(float).tiny)
        steps.append(k)
        densities.append(min(1.0, (N + m) / m**2))
        count = max(1, m // STEPS)
        pivot_a, pivot_b = a[:count], b[:count]
        rest_a, rest_b = a[count:], b[count:]
        a = _after(rest_a, pivot_b, pivot_a, N, m)
        b = _after(rest_b, pivot_a, pivot_b, N, m)
        k += count
    return np.interp(np.arange(n), steps, densities)


def _after(rest: np.ndarray, hitting: np.ndarray, bringing: np.ndarray, N: float, m: int) -> np.ndarray:
    """Expected degrees of the rows that are left after a group of pivots."""
    left = m - hitting.size
    for h, gained in zip(hitting, bringing, strict=True):
        hit = np.minimum(1.0, rest * (h / N))
        rest = rest + hit * (gained * (1 - np.minimum(1.0, rest / m)) - 1)
    return np.clip(rest, 0.0, max(left - 1, 0))


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
        return np.divide(self.strides, self.hops, out=np.full(self.hops.shape, np.nan), where=self.hops > 0)


def memory_maps(
    structure: ColumnStructure, division: int | None = None, first: int = 0, cells: int = 128
) -> MemoryMaps:
    """Trace the accesses of a factorization.

    Parameters
    ----------
    structure : ColumnStructure
    division : int, optional
        First row and column of the dense trailing block; default: unblocked.
    first : int, optional
        First row and column of the part of the plane that is traced.
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
