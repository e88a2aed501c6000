"""CholeskyFactor, the result of cholesky, and its changes: A + C C^H and A - C C^H for C of a few columns.

If A has entries in all places of C C^H, the core changes the columns of the factor that depend on C
(core/numeric/front_factor.cpp). Otherwise the matrix is factored again with more entries, which the factor keeps: the
next change of the same pattern finds them, and `refactor` fills them with zeros.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.arrays import library_of
from ..common.counting import FACTORIZATIONS
from ..common.matrix import Pattern
from ..dispatch import pipeline
from ..dispatch.analyzed import analyze_problem
from ..dispatch.pipeline import Made
from ..engines.problem import Problem, Request
from ..errors import NonFiniteError, require
from .factor import Factor, SymmetricFactor, restore_factor
from .inverse import columns as columns_of
from .inverse import places
from .symbolic import FACTORS

NEVER = (-1,)  # shape of no values
MOST_ENTRIES = 2**27  # of C C^H, in addition to those of A; with more, callers should use `updated`


class Columns(NamedTuple):
    """Compressed columns of C: int64, int32 and the dtype of the factor."""

    ptr: np.ndarray
    ind: np.ndarray
    values: np.ndarray


class CholeskyFactor(SymmetricFactor):
    """Cholesky factor of a Hermitian positive definite matrix: ``A[perm][:, perm] = L L^H``.

    Made by :func:`gpusplu.cholesky`. Calling it solves.

    See Also
    --------
    cholesky, LDLFactor

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> factor = gs.cholesky(A)
    >>> abs(factor.L @ factor.L.T - A[factor.perm][:, factor.perm]).max() < 1e-14
    np.True_
    >>> x = factor(np.ones(100))
    """

    __slots__ = ("_given",)

    _given: matrix.Pattern | None  # pattern of the values that `refactor` takes, if changes have added entries to A

    def __init__(self, made: Made):
        super().__init__(made)
        self._given = None

    def _refactor_any(self, values: Any) -> None:
        if self._given is not None and not library_of(values):
            return self._refactor_widened(values, self._given)
        return super()._refactor_any(values)

    def _is_step(self, values: Any, rhs: Any, trans: Any) -> bool:
        return self._given is None and super()._is_step(values, rhs, trans)

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_cholesky, (self.symbolic, self._core.values(), self._given)

    def logdet(self) -> float:
        """Logarithm of the determinant of A.

        See Also
        --------
        LUFactor.slogdet

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> bool(np.isclose(factor.logdet(), np.linalg.slogdet(A.toarray())[1]))
        True
        """
        return self.slogdet().logabsdet

    @property
    def perm(self) -> NDArray[np.int32]:
        """Gather permutation, int32: ``A[perm][:, perm] = L L^H``."""
        return self._core.host_factor().col_perm

    def sample(self, z: Any) -> Any:
        """A Gaussian vector with covariance ``A^-1`` from one with independent entries of variance 1.

        Parameters
        ----------
        z : ndarray, shape (n,) or (n, k)
            For example from ``numpy.random.Generator.standard_normal``.

        Returns
        -------
        x : ndarray, shape of `z`
            ``apply_Pt(solve_Lt(z))`` (H. Rue, JRSS B 63 (2001), section 3.1.1).

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> x = factor.sample(np.random.default_rng(0).standard_normal((100, 5)))
        >>> x.shape
        (100, 5)
        """
        return self.apply_Pt(self.solve_Lt(z))

    def update(self, C: Any) -> None:
        """Change the factor of A to the factor of ``A + C C^H``, for solves, determinants and all other methods.

        Changes the columns on the paths of C's columns in the elimination tree (T. A. Davis and W. W. Hager, SIAM J.
        Matrix Anal. Appl. 22, 2001), or factors again where that is faster. If this raises, the factor is unchanged.

        Parameters
        ----------
        C : array_like or sparse, shape (n,) or (n, k)
            If ``C C^H`` has entries that A does not have, A is analysed and factored again with these entries; pass A
            with explicit zeros in their places to avoid that.

        Raises
        ------
        ValueError
            Another shape, or C is not finite (`NonFiniteError`).
        TypeError
            Casting C to the dtype of the factor would lose precision.
        NotPositiveDefiniteError
            A is singular up to rounding errors.
        MemoryError
            ``C C^H`` is nearly dense and large: solve with :meth:`updated` instead.

        See Also
        --------
        CholeskyFactor.downdate : the inverse change.
        LUFactor.updated : does not change the factor.

        Notes
        -----
        Cost: for each column of C, about twice the entries of the factor's columns on its path. Rounding errors of many
        changes accumulate, so solves after a change are checked, and if they are not accurate the values are factored
        again.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> c = np.zeros(100)
        >>> c[[3, 4]] = 1, -1
        >>> factor.update(c)
        >>> np.allclose((A + np.outer(c, c)) @ factor(np.ones(100)), 1)
        True
        """
        self._change(C, False)

    def downdate(self, C: Any) -> None:
        """Change the factor of A to the factor of ``A - C C^H``; as :meth:`update`.

        Raises
        ------
        NotPositiveDefiniteError
            ``A - C C^H`` is not positive definite; the factor is still that of A.

        See Also
        --------
        CholeskyFactor.update

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> c = np.zeros(100)
        >>> c[3] = 1
        >>> factor.downdate(c)
        >>> np.allclose((A - np.outer(c, c)) @ factor(np.ones(100)), 1)
        True
        """
        self._change(C, True)

    def _change(self, C: Any, subtract: bool) -> None:
        columns = read_columns(C, self.shape[0], self.dtype, "downdate" if subtract else "update")
        update = getattr(self._migration or self._core, "update", None)
        try:
            self._factor_again(0)
            if update is None or not update(*columns, subtract):
                self._factor_changed(columns, subtract)
        except OverflowError as error:
            raise NonFiniteError(f"{'downdate' if subtract else 'update'}: {error}") from None
        finally:
            self._end_change()

    def _factor_changed(self, columns: Columns, subtract: bool) -> None:
        """Factor the changed values, with additional entries where needed."""
        most = int((np.diff(columns.ptr) ** 2).sum())
        if most > MOST_ENTRIES:
            raise MemoryError(f"C C^H has {most} entries; solve with updated(C) instead")
        pattern = self._pattern
        shape = (self.shape[0], columns.ptr.size - 1)
        C = sp.csc_array((columns.values, columns.ind, columns.ptr), shape=shape)
        change = sp.csc_array(C @ C.conj().T).tocoo()
        place = places(pattern, change.row, change.col)
        if (place < 0).any():
            pattern, values = self._with_entries(change)
            place = places(pattern, change.row, change.col)
        else:
            values = self._core.values()
        values[place] += -change.data if subtract else change.data
        matrix.check_finite(pattern, values)
        if pattern is self._pattern:
            FACTORIZATIONS.add()
            self._refactor(values, None, True)
            return
        known = self._symbolic.parts()[0]
        request = known.request._replace(may_migrate=False)
        symbolic = analyze_problem(Problem(pattern, values, known.kind, known.options, request))
        core = symbolic.make(values)
        FACTORIZATIONS.add()
        self._given = self._given or self._pattern
        self._size, self._map = NEVER, None
        self.replace_core(core, symbolic)

    def _with_entries(self, more: sp.coo_array) -> tuple[Pattern, np.ndarray]:
        """The pattern with more entries, and the values held on it."""
        old = self._pattern
        columns = columns_of(old)
        rows, cols = np.concatenate((old.ind, more.row)), np.concatenate((columns, more.col))
        both = sp.coo_array((np.zeros(rows.size, self.dtype), (rows, cols)), shape=self.shape)
        union = sp.csc_array(both)
        union.sum_duplicates()
        pattern, values = matrix.canonicalize(union)
        values = np.zeros(pattern.nnz, self.dtype)
        values[places(pattern, old.ind, columns)] = self._core.values()
        return pattern, values

    def _refactor_widened(self, values: Any, given: Pattern) -> None:
        """`refactor` after changes have added entries to A."""
        canonical = matrix.values_for(given, values, "cholesky").astype(self.dtype, casting="safe", copy=False)
        matrix.check_finite(given, canonical)
        wide = np.zeros(self._pattern.nnz, self.dtype)
        wide[places(self._pattern, given.ind, columns_of(given))] = canonical
        self._refactor_core(wide, None, True)


def factor_cholesky(A: Any, options: pipeline.ReadOptions, request: Request) -> CholeskyFactor:
    """Implementation of cholesky."""
    return CholeskyFactor(pipeline.factor(A, "cholesky", options, request))


def restore_cholesky(symbolic: Any, canonical: Any, given: Any) -> Factor:
    """A Cholesky factor, factored again. Its `refactor` takes values of the pattern `given`, if there is one."""
    factor = restore_factor(CholeskyFactor, symbolic, canonical)
    if given is not None:
        whole = isinstance(given, matrix.Pattern) and isinstance(given.core, _core.Canonical)
        require(whole and given.n == symbolic.n, "a pattern belongs to another matrix")
        factor._given = given  # type: ignore[attr-defined]
    return factor


def read_columns(C: Any, n: int, dtype: np.dtype, name: str) -> Columns:
    """`C` as compressed columns of `dtype`, rows ascending and without zeros.

    Raises
    ------
    ValueError
        Another shape, or not finite.
    TypeError
        Casting it would lose precision.
    """
    C = matrix.to_host(C)
    if not sp.issparse(C):
        C = np.asarray(C)
    if C.ndim not in (1, 2) or C.shape[0] != n:
        raise ValueError(f"{name}: C must have shape ({n},) or ({n}, k), got {C.shape}")
    if not np.can_cast(matrix.float_dtype(C.dtype), dtype, "safe"):
        raise TypeError(f"{name}: C is {C.dtype.name}, and the factor {dtype.name}")
    columns = sparse_columns(C) if sp.issparse(C) else dense_columns(C.reshape((n, prod(C.shape[1:]))))
    values = columns.values.astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise NonFiniteError(f"{name}: all values of C must be finite")
    return Columns(columns.ptr, columns.ind, values)


def dense_columns(C: np.ndarray) -> Columns:
    column, row = np.nonzero(C.T)
    ptr = np.searchsorted(column, np.arange(C.shape[1] + 1))
    return Columns(ptr.astype(np.int64, copy=False), row.astype(np.int32), C[row, column])


def sparse_columns(C: Any) -> Columns:
    stored = C.tocsc() if C.ndim == 2 else sp.csc_array(C.reshape((-1, 1)))
    if not stored.has_canonical_format or not stored.data.all():
        stored = stored.copy()
        stored.sum_duplicates()
        stored.eliminate_zeros()
    ptr, ind = stored.indptr.astype(np.int64, copy=False), stored.indices.astype(np.int32, copy=False)
    return Columns(ptr, ind, stored.data)


FACTORS.update(cholesky=CholeskyFactor)
