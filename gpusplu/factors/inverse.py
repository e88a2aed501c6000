"""Parts of the inverse of a factored matrix: selected entries, the diagonal, traces of products with it.

A factor gives entry (j, i) of the inverse where A, L or U has an entry (i, j) (core/numeric/factor_inverse.cpp). Other
entries come from solves or, where that is predicted to take longer, from a factor of A with explicit zeros in their
places; a few entries always come from solves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from .. import _core
from ..common import matrix
from ..common.options import Options
from ..common.rhs import UNITS_PER_SOLVE
from ..cost.calibration import costs_of, for_core
from ..cost.features import predict
from ..cost.model import Estimate
from ..engines.processor import cpu_factor

#: Approximate cost of an analysis, of entries of the inverse, and of a factorization with these, in factorizations.
ANALYSIS, ENTRIES, INVERSE = 10, 2, 3


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


def inverse_entries(factor: Any, rows: ndarray, cols: ndarray) -> ndarray:
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


def seconds(factor: Any) -> Estimate:
    """Predicted seconds of the processor's factor."""
    return predict(factor._core.symbolic, factor.dtype.itemsize, costs_of())


def solves_for(rows: ndarray, cols: ndarray) -> int:
    """Number of solves that give entries (rows[k], cols[k]) of the inverse."""
    return int(min(np.count_nonzero(np.bincount(rows)), np.count_nonzero(np.bincount(cols))))


def wider_entries(pattern: matrix.Pattern, core: Any, rows: ndarray, cols: ndarray) -> ndarray:
    """Entries (rows[k], cols[k]) of the inverse from a factor with this pattern, which has their transposed places."""
    return core.inverse_on_pattern()[places(pattern, cols, rows)]


def wider_factor(factor: Any, rows: ndarray, cols: ndarray) -> tuple[matrix.Pattern, Any] | None:
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
    if solves < INVERSE * predict(analysis, factor.dtype.itemsize, costs_of()).factor:
        return None
    try:
        hermitian = kind != "ldlt" or matrix.is_symmetric(wider, canonical, True)
        return wider, cpu_factor(analysis, wider, canonical, Options(hermitian=hermitian))
    except RuntimeError:  # singular with other pivots
        return None


def solved_entries(factor: Any, rows: ndarray, cols: ndarray) -> ndarray:
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
