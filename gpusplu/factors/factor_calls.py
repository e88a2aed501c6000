"""Calls of a factor: solve, refactor, both, and check, for arrays on the host or a device."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, overload

from numpy import int32, ndarray, zeros
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.arrays import call_with_foreign, library_of
from ..common.counting import FACTORIZATIONS
from ..common.rhs import TRANS, cast, solve_as_given
from ..dispatch.migration import Migration
from ..errors import NotPositiveDefiniteError
from ..typing import ArrayT, Check, Later, Now, Trans
from . import deferred as later
from .symbolic import Symbolic
from .triangles import Triangles

# Shape of the values that refactor takes, before the first refactor.
UNKNOWN = (-2,)
# Versions of the values that factors hold: unique in the process.
VERSIONS = count(1)

# nanobind imports NumPy when the core returns its first array: in a __del__ at interpreter shutdown that is too late.
_core.canonical_from_columns(0, zeros(1, int32), zeros(0, int32)).ptr  # noqa: B018


class Calls(Triangles):
    """Solves and refactorizations, for `Factor` to inherit."""

    __slots__ = (
        "_began_on_host",
        "_device_array",
        "_in_progress",
        "_map",
        "_size",
        "_solve",
        "_symbolic",
        "_vector",
        "version",
    )

    if TYPE_CHECKING:
        version: int
        _began_on_host: bool
        _device_array: Any  # class of arrays that need no copy through the host
        _map: ndarray | None  # map by which the core gathers the caller's values
        _size: tuple[int, ...]  # shape of the values that the fast path of refactor takes
        _solve: Any
        _symbolic: Symbolic
        _in_progress: list[None]  # one for each change of the values that threads wait for
        _vector: tuple[int]

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
            "later", of a factor on a device: does not wait, may be captured into a CUDA graph, and leaves it to
            :meth:`check` whether the solution can be trusted. Takes contiguous CuPy arrays of the factor's dtype only.
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
        if isinstance(self._core, Migration):
            self._core.came_from_device()

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
            A value is NaN or Inf; says where.
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
        """`EngineFactor.refactor` with gpusplu's errors for matrices that are not positive definite or not symmetric.

        `checked`: the caller has checked that the values are symmetric.
        """
        try:
            self._factor_again()
            bad: int = self._core.refactor(values, source, True) if checked else self._core.refactor(values, source)
            return bad
        except _core.NotPositiveDefinite as error:
            raise NotPositiveDefiniteError(error.column, error.pivot) from None
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
                self._core.refactor(self._device_values(values))
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
            As those methods take them.

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
                return self._core.refactor_solve(values, rhs, TRANS[trans])
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
