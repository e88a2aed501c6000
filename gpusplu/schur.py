"""Schur complements: the factor of all unknowns but some, and what it leaves of the matrix on those.

With the unknowns of the interface, S, last,

    A = [A_II  A_IS]      S = A_SS - A_SI A_II^-1 A_IS,
        [A_SI  A_SS],

and ``A x = b`` falls apart into a solve with the interior, one with S that is left to the caller, and one with the
interior again (B. F. Smith, P. Bjorstad and W. Gropp, "Domain Decomposition", 1996).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from . import matrix
from .rhs import cast, check_array, check_rhs, complex_dtype
from .symbolic import Symbolic

AT_ONCE = 64  # columns of the interface that are solved for together


class Block(NamedTuple):
    """A part of the matrix: its pattern, and which canonical values of the whole are in it."""

    pattern: sp.csc_array
    entries: np.ndarray

    def of(self, canonical: np.ndarray) -> sp.csc_array:
        pattern = self.pattern
        return sp.csc_array((canonical[self.entries], pattern.indices, pattern.indptr), shape=pattern.shape)


class SchurSymbolic:
    """The analysis of the interior of a matrix; made by ``gpusplu.analyze(A, schur=indices)``.

    Attributes
    ----------
    shape : tuple of int
        Of the whole matrix.
    indices : ndarray of int, shape (m,)
        The interface, in the caller's order.
    interior : Symbolic
        Of the other unknowns, in ascending order.
    """

    def __init__(self, pattern: matrix.Pattern, canonical: np.ndarray, indices: Any, make: Callable[[Any], Symbolic]):
        self.indices, self._pattern = read_indices(indices, pattern.n), pattern
        self.shape = (pattern.n, pattern.n)
        inside = np.ones(pattern.n, bool)
        inside[self.indices] = False
        self.inner = np.flatnonzero(inside)
        numbered = sp.csc_array((np.arange(pattern.nnz), pattern.ind, pattern.ptr), shape=self.shape)
        rows = numbered.tocsr()
        sets = (self.inner, self.indices)
        parts = [[rows[one].tocsc()[:, other] for other in sets] for one in sets]
        for part in (*parts[0], *parts[1]):
            part.sort_indices()
        self.blocks = [[Block(part, part.data) for part in row] for row in parts]
        self.interior = make(self.blocks[0][0].of(canonical))

    def factor(self, values: Any) -> SchurFactor:
        """Factor the interior, and compute the Schur complement, of `values` in the order of ``A.data``, or a matrix.

        Raises
        ------
        PatternMismatchError, NonFiniteError, RuntimeError, NotPositiveDefiniteError
            As :meth:`Symbolic.factor`; singular and not definite is the interior.
        """
        return SchurFactor(self, values)

    def canonical(self, values: Any) -> np.ndarray:
        """Canonical values of the whole matrix."""
        problem = self.interior.parts()[0]
        canonical = matrix.values_for(self._pattern, values, problem.kind, problem.options.hermitian)
        matrix.check_finite(self._pattern, canonical)
        return canonical


class SchurFactor:
    """A factor of the interior and the Schur complement of the interface; made by `SchurSymbolic.factor`.

    Attributes
    ----------
    schur : ndarray, shape (m, m), Fortran-contiguous
        ``A_SS - A_SI A_II^-1 A_IS``, in the order of the indices.
    interior : LUFactor or CholeskyFactor
    """

    def __init__(self, symbolic: SchurSymbolic, values: Any):
        self.symbolic, self.shape, self._last = symbolic, symbolic.shape, local()
        canonical = symbolic.canonical(values)
        self.dtype = canonical.dtype
        self.interior = symbolic.interior.factor(symbolic.blocks[0][0].of(canonical).data)
        self._take(canonical)

    def _take(self, canonical: np.ndarray) -> None:
        """Compute what stands beside the factor of the interior."""
        (_, right), (below, corner) = ([block.of(canonical) for block in row] for row in self.symbolic.blocks)
        self._right, self._below = right, below
        self.schur = np.asfortranarray(corner.toarray())
        filled = np.flatnonzero(np.diff(right.indptr))
        for first in range(0, filled.size, AT_ONCE):
            columns = filled[first : first + AT_ONCE]
            self.schur[:, columns] -= below @ self.interior.solve(right[:, columns].toarray(order="F"))

    def refactor(self, values: Any) -> None:
        """New values on the same pattern, as ``refactor`` of any factor; if this raises, all is as before."""
        canonical = self.symbolic.canonical(values).astype(self.dtype, casting="safe", copy=False)
        self.interior.refactor(self.symbolic.blocks[0][0].of(canonical).data)
        self._take(canonical)

    def condense(self, rhs: Any) -> Any:
        """The right-hand side of the interface, ``b_S - A_SI A_II^-1 b_I``.

        Parameters
        ----------
        rhs : ndarray, shape (n,) or (n, k)

        Returns
        -------
        ndarray, shape (m,) or (m, k)
            `expand` then takes the solution of ``schur @ y = condense(rhs)``.
        """
        if matrix.is_cupy(rhs):
            return matrix.to_device(self.condense(rhs.get()))
        check_array(rhs)
        b = cast(rhs, complex_dtype(self.dtype) if rhs.dtype.kind == "c" else self.dtype)
        check_rhs(b, self.shape[0])
        inner = self.interior.solve(np.asfortranarray(b[self.symbolic.inner]))
        self._last.inner = inner
        return b[self.symbolic.indices] - self._below @ inner

    def expand(self, y: Any, rhs: Any = None) -> Any:
        """The solution of the whole system, of that of the interface.

        Parameters
        ----------
        y : ndarray, shape (m,) or (m, k)
        rhs : ndarray, shape (n,) or (n, k), optional
            The one that this thread condensed last unless given.

        Returns
        -------
        x : ndarray, shape (n,) or (n, k)

        Raises
        ------
        RuntimeError
            This thread has not condensed a right-hand side.
        ValueError
            Another shape.
        """
        if matrix.is_cupy(y):
            return matrix.to_device(self.expand(y.get(), rhs))
        if rhs is not None:
            self.condense(rhs)
        inner, y = getattr(self._last, "inner", None), np.asarray(y)
        if inner is None:
            raise RuntimeError("expand: condense a right-hand side first, or pass it")
        if y.shape != (self.symbolic.indices.size, *inner.shape[1:]):
            wanted = (self.symbolic.indices.size, *inner.shape[1:])
            raise ValueError(f"expand: y must have shape {wanted}, got {y.shape}")
        x = np.empty((self.shape[0], *y.shape[1:]), np.result_type(y, inner), order="F")
        x[self.symbolic.indices] = y
        x[self.symbolic.inner] = inner - self.interior.solve(np.asfortranarray(self._right @ y))
        return x


def read_indices(indices: Any, n: int) -> np.ndarray:
    """Numbers of unknowns, or a mask of them, as an array of intp.

    Raises
    ------
    ValueError
        They repeat, lie outside of ``range(n)``, or are all of it.
    TypeError
        They are no integers.
    """
    given = np.asarray(matrix.to_host(indices))
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        given = given.astype(np.intp)
    if given.dtype.kind not in "iu":
        raise TypeError(f"schur: indices must be integers or a mask, got {given.dtype.name}")
    if given.ndim != 1 or ((given < 0) | (given >= n)).any():
        raise ValueError(f"schur: indices must be a list of numbers in range({n})")
    if np.unique(given).size != given.size:
        values, counts = np.unique(given, return_counts=True)
        raise ValueError(f"schur: index {int(values[counts > 1][0])} occurs more than once")
    if given.size == n:
        raise ValueError("schur: indices are all unknowns, so that nothing is left to factor")
    return given.astype(np.intp)
