"""Factor: what LU, Cholesky and LDL^T factors have in common: solves, refactorizations, triangles, facts.

A factor holds an engine's factor (`Numeric`) and binds its calls once: to the engine's methods, or to wrappers
that count the use of a factor which may migrate to a device (dispatch/migration.py) and that log (dispatch/phases.py).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, get_args, overload

import numpy as np
import scipy.sparse as sp
from numpy import int32, ndarray, zeros
from numpy.typing import NDArray

from .. import _core
from ..common import matrix, notebook
from ..common.arrays import call_with_foreign, library_of
from ..common.counting import FACTORIZATIONS
from ..common.results import SlogDet
from ..common.rhs import TRANS, cast, check_rhs, solve_as_given
from ..common.scipy_names import warn
from ..common.stats import Explanation, Stats, durations, show, stats_of
from ..cost.scale import size
from ..dispatch import phases
from ..dispatch.analyzed import Analyzed
from ..dispatch.migration import Migration, tracked
from ..dispatch.pipeline import Made, factor_values
from ..dispatch.report import analysis_text, explain_factor, stored_text
from ..errors import require
from ..typing import ArrayT, Check, InversePattern, Later, Now, Trans
from . import deferred as later
from .inverse import columns, inverse_entries, narrow
from .symbolic import FACTORS, Symbolic, as_symbolic
from .updated import UpdatedFactor, version_of

if TYPE_CHECKING:
    from ..plotting import FactorPlots

KeptT = TypeVar("KeptT")
# Shape of the values that refactor takes, before the first refactor.
UNKNOWN = (-2,)
PATTERNS: tuple[str, ...] = get_args(InversePattern)
# Versions of the values that factors hold: unique in the process.
VERSIONS = count(1)

# nanobind imports NumPy when the core returns its first array: in a __del__ at interpreter shutdown that is too late.
_core.canonical("csc", 0, zeros(1, int32), zeros(0, int32)).ptr  # noqa: B018


class Kept(NamedTuple):
    """An object made from an engine's factor of these values."""

    made: Any
    version: tuple[int, int]
    core: Any


class Factor:
    """Common base of LU, Cholesky and LDL^T factors.

    A factor may be used from several threads at once: solves run concurrently, refactor waits for them.

    Parameters
    ----------
    made : Made
        The engine's factor, its analysis and its dtype, from dispatch/pipeline.py.
    """

    _names = "L and U"  # the factors, for warnings

    version: int
    _began_on_host: bool
    _core: Any  # the engine's factor
    _device_array: Any  # class of arrays that need no copy through the host
    _dtype: np.dtype
    _in_progress: list[None]  # one for each change of the values that threads wait for
    _lower: Kept | None
    _map: ndarray | None  # map by which the core gathers the caller's values
    _migration: Migration | None
    _order: tuple[ndarray, ndarray] | None  # permutations of the pivots of the kept triangles
    _pair: Kept | None  # L and U made from LDL^T
    _refactor: Any
    _refactor_solve: Any
    _size: tuple[int, ...]  # shape of the values that the fast path of refactor takes
    _solve: Any
    _symbolic: Analyzed
    _upper: Kept | None
    _vector: tuple[int]
    __slots__ = ("__weakref__", *__annotations__)

    def __init__(self, made: Made):
        symbolic, numeric, self._dtype, self._began_on_host, _ = made
        self._vector = (numeric.n,)
        self.version, self._in_progress = next(VERSIONS), []
        self._size, self._map = UNKNOWN, None
        self._migration = tracked(self, numeric, symbolic) if symbolic.choice.request.may_migrate else None
        self.replace_core(numeric, symbolic, self._migration)
        FACTORIZATIONS.add()

    def replace_core(self, core: Any, symbolic: Analyzed, migration: Migration | None = None) -> None:
        """Take over an engine's factor of the values held, made by this analysis."""
        self._core, self._symbolic, self._migration = core, symbolic, migration
        calls = migration or core
        self._solve, self._refactor = calls.solve, calls.refactor
        self._device_array = getattr(core, "device_array", None)
        self._refactor_solve = core.refactor_solve if self._device_array is not None else None
        if phases.follows_calls():
            phases.factored(symbolic, core)
            self._solve, self._refactor, self._refactor_solve = phases.logged_calls(
                symbolic, core, self._solve, self._refactor, self._refactor_solve
            )
        self._lower = self._upper = self._pair = self._order = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of A."""
        return self._symbolic.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the factor and of the solutions."""
        return self._dtype

    @property
    def engine(self) -> str:
        """Name of the engine that runs."""
        return self._symbolic.engine

    @property
    def symbolic(self) -> Symbolic[Self, Any]:
        """The analysis that this factor was made with."""
        self._symbolic = as_symbolic(self._symbolic)
        return self._symbolic

    @property
    def nnz(self) -> int:
        """Stored entries of the factors."""
        return int(self._core.nnz)

    def parts(self) -> tuple[Any, Any]:
        """The engine's factor, and its first analysis."""
        return self._core, self._symbolic.parts()[1]

    @property
    def backward_error(self) -> float | None:
        """Normwise backward error of the last solve or certification that measured it, None if none did."""
        error = self._core.backward_error
        return None if error < 0 else error

    @property
    def plot(self) -> FactorPlots:
        """Pictures: ``lu.plot.spy()``, density, levels, supernodes, timeline, roofline, requests and strides."""
        from ..plotting import FactorPlots

        return FactorPlots(self)

    def updated(self, U: Any, V: Any = None) -> UpdatedFactor:
        """Solves with ``A + U V^H``, a change of low rank, by this factor.

        Parameters
        ----------
        U, V : array_like or sparse, shape (n,) or (n, k)
            `V` defaults to `U`.

        Returns
        -------
        UpdatedFactor
            Of the values held now: it refuses to solve once this factor has been refactored.

        Raises
        ------
        IllConditionedUpdateError
            The updated matrix is singular, or nearly so.
        TypeError
            Casting `U` or `V` to the precision of the factor would lose some.
        ValueError
            Other shapes, or not finite (`NonFiniteError`).

        See Also
        --------
        CholeskyFactor.update : changes the factor itself.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> U, V = np.eye(100)[:, :2], np.ones((100, 2))
        >>> x = lu.updated(U, V).solve(np.ones(100))
        >>> np.allclose((A + U @ V.T) @ x, 1)
        True
        """
        return UpdatedFactor(self, U, U if V is None else V)

    def slogdet(self) -> SlogDet[float]:
        """Sign (or phase) and logarithm of the modulus of the determinant of A.

        See Also
        --------
        LUFactor.inverse_diagonal, LUFactor.selected_inverse : its derivatives.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> sign, logabsdet = lu.slogdet()
        >>> bool(np.isclose(sign * np.exp(logabsdet), np.linalg.det(A.toarray())))
        True
        """
        sign, logabsdet = self._core.slogdet()
        return SlogDet(self._dtype.type(sign), float(logabsdet))

    def rcond(self) -> float:
        """Reciprocal of an estimate of the 1-norm condition number (Higham and Tisseur, SIMAX 2000).

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> bool(np.isclose(lu.rcond(), 1 / np.linalg.cond(A.toarray(), 1)))
        True
        """
        return float(self._core.rcond())

    @property
    def stats(self) -> Stats:
        """Seconds per phase, sizes, and counts of pivoting and refinement."""
        return stats_of(self, self._core, analysis_text(self._symbolic.call))

    def explain(self) -> Explanation:
        """The choices, their reasons and their costs as a few lines of text.

        See Also
        --------
        LUFactor.stats : the same as numbers.
        explain : before anything is factored.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> print(lu.explain())  # doctest: +ELLIPSIS
        matrix    100 x 100, 460 entries
        engine    cpu: engine='auto' and ...
        """
        return explain_factor(self._symbolic, self.stats, self._migration.reason if self._migration else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_factor, (type(self), self.symbolic, self._core.values())

    def _repr_html_(self) -> str:
        n, stats = self._vector[0], self.stats
        rows = [
            ("matrix", f"{n:,} x {n:,}, {show(stats.nnz)} entries, {self._dtype.name}"),
            ("factor", f"{stored_text(self.nnz, stats.method)}, {stats.fill:.2f} times A, {size(stats.bytes)}"),
            ("engine", f"{self.engine}, by {stats.method}s, ordering {stats.ordering}"),
            ("backward error", "not measured" if self.backward_error is None else f"{self.backward_error:.1e}"),
            ("seconds", durations(stats.seconds)),
        ]
        return notebook.named_values(type(self).__name__, rows)

    def __repr__(self) -> str:
        n = self._vector[0]
        return f"<{type(self).__name__} of {n} x {n}, {self._dtype.name}, nnz {self.nnz:,}, engine {self.engine}>"

    @property
    def _pattern(self) -> matrix.Pattern:
        return self._symbolic.parts()[0].pattern

    @overload
    def solve(self, rhs: NDArray[Any], trans: Trans = "N", *, check: Now = "now") -> NDArray[Any]: ...
    @overload
    def solve(
        self, rhs: NDArray[Any], trans: Trans = "N", *, check: Later, out: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def solve(self, rhs: ArrayT, trans: Trans = "N", *, check: Now = "now") -> ArrayT: ...
    @overload
    def solve(self, rhs: ArrayT, trans: Trans = "N", *, check: Later, out: ArrayT | None = None) -> ArrayT: ...
    def solve(self, rhs: Any, trans: Trans = "N", *, check: Check = "now", out: Any = None) -> Any:
        """Solve ``op(A) x = rhs``.

        Parameters
        ----------
        rhs : ndarray, shape (n,) or (n, k)
            Must cast safely to the dtype of the factor; complex right-hand sides of a real factor are fine as long as
            their parts do.
        trans : {"N", "T", "H"}, optional
            A, its transpose, or its conjugate transpose.
        check : {"now", "later"}, optional
            "later", of a factor on a device: does not wait, may be captured into a CUDA graph;
            :meth:`check` raises if the solution cannot be trusted. Takes contiguous CuPy arrays of the factor's dtype
            only.
        out : ndarray, shape of `rhs`, optional
            With "later": where the solution goes; may be `rhs` itself.

        Returns
        -------
        x : ndarray, shape of `rhs`, Fortran-contiguous
            On the device if `rhs` is.

        Raises
        ------
        TypeError
            `rhs` is not an array, or casting it would lose precision.
        ValueError
            `rhs` has another number of rows than A, or `trans` is unknown.

        See Also
        --------
        LUFactor.refactor, LUFactor.refactor_solve, LUFactor.check

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> x = lu.solve(np.ones((100, 3)))
        >>> np.allclose(A @ x, 1)
        True
        >>> y = lu.solve(np.ones(100), "T")
        >>> np.allclose(A.T @ y, 1)
        True
        """
        if check != "now" or out is not None:
            return later.solve(self, rhs, trans, check, out)
        if (
            trans == "N"
            and type(rhs) is ndarray
            and rhs.dtype is self._dtype
            and rhs.shape == self._vector
            and rhs.flags.c_contiguous
        ):
            return self._solve(rhs, 0)
        if (
            type(rhs) is self._device_array
            and trans in TRANS
            and rhs.dtype == self._dtype
            and rhs.shape == self._vector
            and rhs.flags.c_contiguous
        ):
            return self._solve(rhs, TRANS[trans])
        return self._solve_any(rhs, trans)

    def _solve_any(self, rhs: Any, trans: Any) -> Any:
        if type(rhs) is ndarray:
            return solve_as_given(self._solve, rhs, trans, self._vector[0], self._dtype)
        if library_of(rhs):
            return call_with_foreign(self.solve, rhs, trans)
        if matrix.is_cupy(rhs) and (self._device_array is None or not matrix.is_cupy_array(rhs)):
            self._came_from_device()
            return matrix.to_device(self._solve_any(rhs.get(), trans))
        return solve_as_given(self._solve, rhs, trans, self._vector[0], self._dtype)

    def _came_from_device(self) -> None:
        if self._migration:
            self._migration.came_from_device()

    def refactor(self, values: Any, *, check: Check = "now") -> None:
        """Factor new values on the same pattern, reusing the analysis.

        If this raises, the factor still holds the previous values; with ``check="later"`` they are lost when
        :meth:`check` raises.

        Parameters
        ----------
        values : array_like, shape (A.data.size,), or sparse matrix
            In the order of ``A.data`` as it was given (for DIA, LIL, DOK and dense `A`: of ``csc_array(A).data``),
            or a matrix with the same pattern.
        check : {"now", "later"}, optional
            As for `solve`.

        Raises
        ------
        PatternMismatchError
            A matrix with another pattern.
        NonFiniteError
            A value is NaN or Inf; the message gives its position.
        NotHermitianError
            Values of both triangles differ by more than rounding, where A was factored as a Hermitian or symmetric
            matrix.
        ValueError
            Another number of values than ``A.data`` had.
        TypeError
            Casting the values to the dtype of the factor would lose precision.
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError

        See Also
        --------
        LUFactor.refactor_solve, LUFactor.check

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> lu.refactor(2 * A.data)
        >>> np.allclose(2 * A @ lu.solve(np.ones(100)), 1)
        True
        """
        if check != "now":
            return later.refactor(self, values, check)
        if (
            type(values) is not ndarray
            or values.dtype is not self._dtype
            or values.shape != self._size
            or not values.flags.c_contiguous
        ):
            return self._refactor_any(values)
        bad = self._refactor_core(values, self._map)
        if bad >= 0:
            pattern = self._pattern
            raise matrix.non_finite(pattern, bad, pattern.gather(values))

    def _refactor_core(self, values: ndarray, source: ndarray | None, checked: bool = False) -> int:
        """`Numeric.refactor` with gpusplu's error for matrices that are not symmetric.

        `checked`: the caller has checked that the values are symmetric.
        """
        try:
            self._factor_again()
            return self._refactor(values, source, True) if checked else self._refactor(values, source)
        except _core.NotSymmetric:
            problem = self._symbolic.parts()[0]
            canonical = values if source is None else values[source]
            raise matrix.not_hermitian(self._pattern, canonical, problem.kind, problem.options.hermitian) from None
        finally:
            self._end_change()

    def _factor_again(self, factorizations: int = 1) -> None:
        """Start a change of the values: kept results become invalid with `_end_change`; until then other threads may
        still use them."""
        FACTORIZATIONS.add(factorizations)
        self._in_progress.append(None)
        self.version = next(VERSIONS)
        self._lower = self._upper = self._pair = None

    def _end_change(self) -> None:
        self.version = next(VERSIONS)
        if self._in_progress:
            self._in_progress.pop()

    def _refactor_any(self, values: Any) -> None:
        pattern = self._pattern
        if self._size is UNKNOWN:
            direct, self._map = pattern.direct_map(self._dtype)
            self._size = (pattern.size if direct else -1,)
            return self.refactor(values)
        if library_of(values):
            call_with_foreign(self.refactor, values)
            return None
        if self._device_array is not None and matrix.is_cupy_array(values):
            try:
                self._factor_again()
                self._refactor(self._device_values(values))
            finally:
                self._end_change()
            return None
        if matrix.is_cupy(values):
            self._came_from_device()
        problem = self._symbolic.parts()[0]
        canonical = matrix.values_for(pattern, values, problem.kind, problem.options.hermitian)
        canonical = canonical.astype(self._dtype, casting="safe", copy=False)
        bad = self._refactor_core(canonical, None, problem.kind != "lu")
        if bad >= 0:
            raise matrix.non_finite(pattern, bad, canonical)

    def _device_values(self, values: Any) -> Any:
        """Values for a GPU engine, contiguous and in the dtype of the factor."""
        pattern = self._pattern
        if values.size != pattern.size:
            raise matrix.wrong_size(pattern, values.size)
        return cast(values if values.ndim == 1 else values.reshape(-1), self._dtype)

    @overload
    def refactor_solve(
        self, values: Any, rhs: NDArray[Any], trans: Trans = "N", *, check: Now = "now"
    ) -> NDArray[Any]: ...
    @overload
    def refactor_solve(
        self, values: Any, rhs: NDArray[Any], trans: Trans = "N", *, check: Later, out: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def refactor_solve(self, values: Any, rhs: ArrayT, trans: Trans = "N", *, check: Now = "now") -> ArrayT: ...
    @overload
    def refactor_solve(
        self, values: Any, rhs: ArrayT, trans: Trans = "N", *, check: Later, out: ArrayT | None = None
    ) -> ArrayT: ...
    def refactor_solve(
        self, values: Any, rhs: Any, trans: Trans = "N", *, check: Check = "now", out: Any = None
    ) -> Any:
        """``refactor(values)``, then ``solve(rhs, trans)``; on a GPU at the cost of one launch.

        That takes values and one right-hand side on the same side, the host or the device, and in the dtype of the
        factor.

        Parameters
        ----------
        values, rhs, trans, check, out
            As for those methods.

        Returns
        -------
        x : ndarray, shape of `rhs`

        See Also
        --------
        LUFactor.refactor, LUFactor.solve

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> x = lu.refactor_solve(2 * A.data, np.ones(100))
        >>> np.allclose(2 * A @ x, 1)
        True
        """
        if check != "now" or out is not None:
            return later.solve(self, rhs, trans, check, out, values)
        if self._is_step(values, rhs, trans):
            on_host = type(values) is ndarray
            values, rhs = (values, rhs) if on_host else (self._device_values(values), cast(rhs, self._dtype))
            try:
                self._factor_again()
                return self._refactor_solve(values, rhs, TRANS[trans])
            finally:
                self._end_change()
        if library_of(values) or library_of(rhs):
            return call_with_foreign(self.refactor_solve, values, rhs, trans)
        self.refactor(values)
        return self.solve(rhs, trans)

    def _is_step(self, values: Any, rhs: Any, trans: Any) -> bool:
        """Whether the engine takes these arrays without conversion in a single call."""
        if self._device_array is None or trans not in TRANS:
            return False
        if type(values) is type(rhs) is ndarray:
            return (
                values.dtype is rhs.dtype is self._dtype
                and values.shape == self._size
                and rhs.shape == self._vector
                and values.flags.c_contiguous
                and bool(self._core.takes_both)
            )
        both = matrix.is_cupy_array(values) and matrix.is_cupy_array(rhs)
        return both and rhs.dtype == self._dtype and rhs.shape == self._vector

    def check(self) -> float | None:
        """Wait for all calls with ``check="later"`` and check them; any other call that waits does so too.

        Returns
        -------
        float or None
            The largest backward error of their solutions since the last check; None if none was measured.

        Raises
        ------
        AccuracyError
            Solutions since the last check cannot be trusted: of any of them, not only the last.
        NonFiniteError, NotHermitianError, RuntimeError, NotPositiveDefiniteError
            As :meth:`refactor`, about the values that were factored last. The factor then holds none until it is
            refactored.

        See Also
        --------
        LUFactor.solve, LUFactor.refactor : calls with ``check="later"``.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> lu = gs.splu(A)
        >>> x = lu.refactor_solve(2 * A.data, np.ones(100), check="later")
        >>> error = lu.check()
        >>> error is None or error < 1e-14
        True
        """
        error = self._core.check() if self._device_array is not None else self._core.backward_error
        return None if error < 0 else error

    # ---- parts of the inverse, computed without forming it

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

    # ---- triangles

    @property
    def L(self) -> sp.csc_array:
        """Lower triangular factor; the same object until refactor."""
        return self._keep("_lower", lambda: self._triangle(self._core.host_factor().lower()))

    def _keep(self, name: str, make: Callable[[], KeptT]) -> KeptT:
        """The object kept for the current values, else a new one. Nothing is kept while another thread may change the
        values."""
        version, core, kept = version_of(self), self._core, getattr(self, name)
        if kept is None or kept.version != version or kept.core is not core:
            kept = Kept(make(), version, core)
            setattr(self, name, kept)
        return kept.made

    def _triangle(self, arrays: tuple[ndarray, ndarray, ndarray]) -> sp.csc_array:
        self._check_product()
        pointers, rows, values = arrays
        if values.size <= np.iinfo(np.int32).max:
            pointers = pointers.astype(np.int32)
        return sp.csc_array((values, rows, pointers), shape=self.shape)

    def _check_product(self) -> None:
        if not getattr(self._core.host_factor(), "has_accurate_triangles", True):
            what = f"overflow encountered in {self._names}: they are not finite, or their product is not A"
            warn(what, RuntimeWarning)

    def _solve_with(self, triangle: sp.csc_array, lower: bool, rhs: Any, trans: str) -> Any:
        """Solve with the extracted lower or upper factor."""
        if matrix.is_cupy(rhs):
            return matrix.to_device(self._solve_with(triangle, lower, rhs.get(), trans))
        ptr, ind = triangle.indptr.astype(np.int64), triangle.indices.astype(np.int32)

        def solve(b: ndarray, op: int) -> ndarray:
            x = b.reshape(-1, order="F").copy()
            _core.solve_triangle(lower, ptr, ind, triangle.data, "NTH"[op], x)
            return x.reshape(b.shape, order="F")

        return solve_as_given(solve, rhs, trans, self.shape[0], self._dtype)


def restore_factor(kind: Any, symbolic: Any, canonical: Any) -> Factor:
    """A factor of the class `kind`, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    NonFiniteError, NotHermitianError
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    whole = isinstance(kind, type) and issubclass(kind, Factor) and isinstance(symbolic, Symbolic)
    require(whole and issubclass(kind, FACTORS[symbolic.kind]), "a part has the wrong type")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS
    require(values and canonical.shape == (symbolic.nnz,), "the values are not those of the analysis")
    canonical = np.ascontiguousarray(canonical)
    problem = symbolic.parts()[0]
    matrix.check_finite(problem.pattern, canonical)
    if problem.kind != "lu":
        matrix.check_new_values(problem.pattern, canonical, problem.kind, problem.options.hermitian)
    return kind(factor_values(symbolic, canonical))


def permuted(array: ArrayT, perm: ndarray) -> ArrayT:
    """``array[perm]``; SciPy's errors about other shapes."""
    on_device = matrix.is_cupy(array)
    given: Any = array if on_device else np.asarray(array)
    check_rhs(given, perm.size)
    return given[matrix.to_device(perm) if on_device else perm]


def inverse(gather: ndarray) -> ndarray:
    scatter = np.empty_like(gather)
    scatter[gather] = np.arange(gather.size, dtype=gather.dtype)
    return scatter


class SymmetricFactor(Factor):
    """Factor of one triangle; parts of solves have scikit-sparse's names."""

    __slots__ = ()
    hermitian = True

    if TYPE_CHECKING:  # attributes of factors

        @property
        def perm(self) -> NDArray[np.int32]: ...

    @overload
    def __call__(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def __call__(self, rhs: ArrayT) -> ArrayT: ...
    def __call__(self, rhs: Any) -> Any:
        """Solve ``A x = rhs``."""
        return self.solve(rhs)

    @overload
    def solve_L(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_L(self, rhs: ArrayT) -> ArrayT: ...
    def solve_L(self, rhs: Any) -> Any:
        """Solve ``L x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        CholeskyFactor.solve_Lt, CholeskyFactor.apply_P

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> y = factor.solve_L(np.ones(100))
        >>> np.allclose(factor.L @ y, 1)
        True
        """
        return self._solve_with(self.L, True, rhs, "N")

    @overload
    def solve_Lt(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_Lt(self, rhs: ArrayT) -> ArrayT: ...
    def solve_Lt(self, rhs: Any) -> Any:
        """Solve ``L^H x = rhs``, shape (n,) or (n, k), on the processor; with ``L^T`` where A is complex symmetric.

        See Also
        --------
        CholeskyFactor.solve_L, CholeskyFactor.apply_Pt

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> y = factor.solve_Lt(np.ones(100))
        >>> np.allclose(factor.L.T @ y, 1)
        True
        """
        return self._solve_with(self.L, True, rhs, "H" if self.hermitian else "T")

    def apply_P(self, rhs: ArrayT) -> ArrayT:
        """``rhs[perm]``.

        See Also
        --------
        CholeskyFactor.apply_Pt

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> np.array_equal(factor.apply_P(np.arange(100)), factor.perm)
        True
        """
        return permuted(rhs, self.perm)

    def apply_Pt(self, x: ArrayT) -> ArrayT:
        """The inverse of `apply_P`.

        See Also
        --------
        CholeskyFactor.apply_P

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> factor = gs.cholesky(A)
        >>> b = np.arange(100.0)
        >>> np.array_equal(factor.apply_Pt(factor.apply_P(b)), b)
        True
        """
        return permuted(x, inverse(self.perm))
