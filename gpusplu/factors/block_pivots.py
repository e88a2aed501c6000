"""L and U of factors by LDL^T, from D with its blocks of order 2."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy import ndarray


class BlockPivots:
    """D of L D L^H by its LU factors: those of each block of order 2, by partial pivoting.

    Parameters
    ----------
    d, e : ndarray, shape (n,)
        Diagonal and subdiagonal; the latter is zero except in the first column of a block of order 2.
    hermitian : bool
        Else D is symmetric.

    Attributes
    ----------
    rows : ndarray, shape (n,)
        ``D[rows]`` is ``lower @ upper``.
    lower, upper : csc_array
        Unit triangular, and triangular.
    """

    def __init__(self, d: ndarray, e: ndarray, hermitian: bool):
        n, first = d.size, np.flatnonzero(e)
        second, above = first + 1, e[first].conj() if hermitian else e[first]
        exchanged = abs(d[first]) < abs(e[first])
        self.rows = np.arange(n)
        self.rows[first[exchanged]], self.rows[second[exchanged]] = second[exchanged], first[exchanged]
        pivot, coupling = np.where(exchanged, [e[first], d[second]], [d[first], above])
        below, corner = np.where(exchanged, [d[first], above], [e[first], d[second]])
        diagonal, upper, lower = d.copy(), np.zeros(n, d.dtype), np.zeros(n, d.dtype)
        lower[first], upper[second] = below / pivot, coupling
        diagonal[first], diagonal[second] = pivot, corner - lower[first] * coupling
        ones = np.ones(n, d.dtype)
        self.lower = sp.csc_array(sp.diags_array([ones, lower[:-1]], offsets=[0, -1], shape=(n, n)))
        self.upper = sp.csc_array(sp.diags_array([diagonal, upper[1:]], offsets=[0, 1], shape=(n, n)))
        self.hermitian = hermitian


def triangles_of(L: sp.csc_array, D: BlockPivots) -> tuple[sp.csc_array, sp.csc_array]:
    """L' and U' with ``(L D L^H)[rows] = L' U'``, or L D L^T: L has no entry inside a block, so ``L[rows][:, rows]`` is
    a unit triangle too."""
    lower = sp.csc_array(L[D.rows][:, D.rows] @ D.lower)
    upper = sp.csc_array(D.upper @ (L.conj() if D.hermitian else L).T)
    for triangle in (lower, upper):
        triangle.eliminate_zeros()
        triangle.sort_indices()
    return lower, upper
