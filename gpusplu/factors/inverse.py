"""Parts of the inverse of a factored matrix: selected entries, the diagonal, traces of products with it.

A factor gives entry (j, i) of the inverse where A, L or U has an entry (i, j) (core/numeric/factor_inverse.cpp). Other
entries come from solves or, where that is predicted to take longer, from a factor of A with explicit zeros in their
places; a few entries always come from solves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.options import Options
from ..common.rhs import UNITS_PER_SOLVE
from ..common.traits import structure_of
from ..cost.calibration import costs_of, for_core
from ..cost.features import predict
from ..cost.model import Estimate
from ..engines.processor import cpu_factor
from ..typing import InversePattern

PATTERNS: tuple[str, ...] = get_args(InversePattern)
#: Approximate cost of an analysis, of entries of the inverse, and of a factorization with these, in factorizations.
ANALYSIS, ENTRIES, INVERSE = 10, 2, 3


class PartsOfInverse:
    """Parts of the inverse, computed without forming it."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of factors
        shape: Any
        dtype: Any
        solve: Any
        _core: Any
        _pattern: Any

    def selected_inverse(self, pattern: InversePattern = "A.T") -> sp.csc_array:
        """Entries of the inverse on a sparse pattern.

        The factors give entry (j, i) of the inverse wherever A has an entry (i, j), at about twice the arithmetic of a
        factorization (the recurrence of Takahashi, Fagan and Chen, 1973). The entries are checked for each row and
        column of A by the diagonals of ``inv(A) @ A`` and ``A @ inv(A)``; where these are not ones to about two thirds
        of the digits, the entries are computed with other pivots, or by solves.

        Parameters
        ----------
        pattern : {"A.T", "A", "LU"}, optional
            Pattern of the result. "A.T" is the pattern of the gradient of ``slogdet().logabsdet``: the derivative with
            respect to A[i, j] is entry (j, i) of the inverse. "A" is the same if the pattern of A is symmetric, and
            needs more work otherwise. "LU" is the transposed pattern of the factors, in the order of A, with all
            entries of A's.

        Returns
        -------
        Z : csc_array, shape (n, n)
            ``Z[j, i]`` is entry (j, i) of the inverse. Zeros are stored.

        Raises
        ------
        ValueError
            `pattern` is unknown.

        Warns
        -----
        RuntimeWarning
            The entries are not finite, or not accurate, whatever was tried.

        See Also
        --------
        LUFactor.inverse_diagonal, LUFactor.trace_inverse

        Notes
        -----
        The recurrence is that of [1]_, by supernodes as in [2]_, and for LU with unsymmetric blocks.

        References
        ----------
        .. [1] Takahashi, Fagan, Chen, Formation of a sparse bus impedance matrix and its application to short circuit
           study, 8th PICA Conference, 1973
        .. [2] Lin, Yang, Meza, Lu, Ying, E, SelInv: an algorithm for selected inversion of a sparse symmetric matrix,
           ACM TOMS 37, 2011

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> Z = lu.selected_inverse()
        >>> np.allclose(Z.diagonal(), np.linalg.inv(A.toarray()).diagonal())
        True
        """
        if pattern not in PATTERNS:
            raise ValueError(f"pattern must be one of {PATTERNS}, got {pattern!r}")
        known = self._pattern
        if pattern == "A":
            entries = inverse_entries(self, known.ind, columns(known))
            return sp.csc_array((entries, known.ind.copy(), narrow(known.ptr)), shape=self.shape)
        if pattern == "A.T":
            ptr, ind, entries = known.ptr, known.ind.copy(), self._core.host_factor().inverse_on_pattern()
        else:
            ptr, ind, entries = self._core.host_factor().inverse_on_factors()
        return sp.csr_array((entries, ind, narrow(ptr)), shape=self.shape).tocsc()

    def inverse_diagonal(self) -> NDArray[Any]:
        """Diagonal of the inverse, shape (n,).

        See Also
        --------
        LUFactor.selected_inverse

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> np.allclose(lu.inverse_diagonal(), np.linalg.inv(A.toarray()).diagonal())
        True
        """
        everyone = np.arange(self.shape[0])
        return inverse_entries(self, everyone, everyone)

    def trace_inverse(self, B: Any) -> Any:
        """Trace of ``inv(A) @ B`` for a sparse matrix B; cheap where B has entries only where A has.

        Parameters
        ----------
        B : sparse matrix or array_like, shape (n, n)

        Returns
        -------
        trace : scalar

        Raises
        ------
        ValueError
            B has another shape than A.

        See Also
        --------
        LUFactor.selected_inverse

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> bool(np.isclose(lu.trace_inverse(A), 100))
        True
        """
        B = sp.coo_array(matrix.to_host(B))
        if B.shape != self.shape:
            raise ValueError(f"trace_inverse: B has shape {B.shape}, but A has shape {self.shape}")
        B.sum_duplicates()
        return inverse_entries(self, B.col, B.row) @ B.data


def narrow(pointers: ndarray) -> ndarray:
    """Pointers of compressed columns in SciPy's dtype."""
    return pointers.astype(np.int32 if pointers[-1] <= np.iinfo(np.int32).max else np.int64)


def columns(pattern: matrix.Pattern) -> ndarray:
    """Column of each canonical entry."""
    return np.repeat(np.arange(pattern.n), np.diff(pattern.ptr))


def places(pattern: matrix.Pattern, rows: ndarray, cols: ndarray) -> ndarray:
    """Canonical places of entries (rows[k], cols[k]), -1 where the pattern has none."""
    keys = columns(pattern) * pattern.n + pattern.ind  # ascending
    wanted = cols.astype(np.int64) * pattern.n + rows
    place: ndarray = np.searchsorted(keys, wanted)
    place[place == keys.size] = -1
    if keys.size:
        place[keys[place] != wanted] = -1
    return place


def inverse_entries(factor: PartsOfInverse, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse."""
    pattern = factor._pattern
    if np.array_equal(pattern.ind, cols) and np.array_equal(columns(pattern), rows):
        return factor._core.host_factor().inverse_on_pattern()
    taken = seconds(factor)
    if solves_for(rows, cols) * taken.solve < ENTRIES * taken.factor:
        return solved_entries(factor, rows, cols)
    entries: ndarray
    entries, missing = factor._core.host_factor().inverse_at(rows.astype(np.int32), cols.astype(np.int32))
    if missing.size:
        rows, cols = rows[missing], cols[missing]
        wider = wider_factor(factor, rows, cols)
        entries[missing] = wider_entries(*wider, rows, cols) if wider else solved_entries(factor, rows, cols)
    return entries


def seconds(factor: PartsOfInverse) -> Estimate:
    """Predicted seconds of the processor's factor."""
    structure = structure_of(factor._core.symbolic, factor._pattern.nnz, factor.dtype.itemsize)
    return predict(structure, costs_of())


def solves_for(rows: ndarray, cols: ndarray) -> int:
    """Number of solves that give entries (rows[k], cols[k]) of the inverse."""
    return int(min(np.count_nonzero(np.bincount(rows)), np.count_nonzero(np.bincount(cols))))


def wider_entries(pattern: matrix.Pattern, core: Any, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse from a factor with this pattern, which has their transposed places."""
    return core.inverse_on_pattern()[places(pattern, cols, rows)]


def wider_factor(factor: PartsOfInverse, rows: ndarray, cols: ndarray) -> tuple[matrix.Pattern, Any] | None:
    """Pattern and factor of A with zeros where it gives entries (rows[k], cols[k]), if that beats solves."""
    pattern, held = factor._pattern, seconds(factor)
    solves = solves_for(rows, cols) * held.solve
    if solves < ANALYSIS * held.factor:
        return None
    kind = factor._core.symbolic.kind
    if kind != "lu":
        rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
    values = np.concatenate([factor._core.values(), np.zeros(rows.size, factor.dtype)])
    indices = np.concatenate([pattern.ind, cols]), np.concatenate([columns(pattern), rows])
    wider, values = matrix.canonicalize(sp.coo_array((values, indices), shape=factor.shape))
    canonical = wider.gather(values)
    of_kind = {"cholesky": kind == "cholesky", "ldlt": kind == "ldlt"}
    analysis = _core.analyze(wider.ptr, wider.ind, canonical, for_core(), **of_kind)
    if solves < INVERSE * predict(structure_of(analysis, wider.nnz, factor.dtype.itemsize), costs_of()).factor:
        return None
    try:
        hermitian = kind != "ldlt" or matrix.is_symmetric(wider, canonical, True)
        return wider, cpu_factor(analysis, wider, canonical, Options(hermitian=hermitian))
    except RuntimeError:  # singular with other pivots
        return None


def solved_entries(factor: PartsOfInverse, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse by solves, with A for whole columns or its transpose for rows."""
    sides = [("N", *np.unique(cols, return_inverse=True), rows), ("T", *np.unique(rows, return_inverse=True), cols)]
    trans, units, unit_of, taken = min(sides, key=lambda side: side[1].size)
    order = np.argsort(unit_of, kind="stable")
    begin = np.searchsorted(unit_of[order], np.arange(0, units.size + UNITS_PER_SOLVE, UNITS_PER_SOLVE))
    entries = np.empty(rows.size, factor.dtype)
    for block, first in enumerate(range(0, units.size, UNITS_PER_SOLVE)):
        some = units[first : first + UNITS_PER_SOLVE]
        identity = np.zeros((factor.shape[0], some.size), factor.dtype, order="F")
        identity[some, np.arange(some.size)] = 1
        requested = order[begin[block] : begin[block + 1]]
        entries[requested] = factor.solve(identity, trans)[taken[requested], unit_of[requested] - first]
    return entries
