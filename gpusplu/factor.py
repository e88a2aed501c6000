"""LUFactor and CholeskyFactor: what users hold, and what LDLFactor shares with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from . import _core, later, matrix
from .arrays import lent, library_of
from .changes import Changes
from .counting import FACTORIZATIONS
from .engines import registry
from .errors import NotPositiveDefiniteError, require
from .inverse import PartsOfInverse
from .moving import Moving, followed, watched
from .report import analysis_text, explain_factor
from .results import SlogDet
from .rhs import TRANS, cast, solve_as_given
from .stats import Stats, stats_of
from .symbolic import FACTORS, Symbolic
from .triangles import CholeskyTriangle, LUTriangles, Triangles
from .updated import UpdatedFactor

# Shape of the values that refactor takes, before the first refactor.
UNKNOWN = (-2,)


class Factor(Triangles, PartsOfInverse):
    """What LU, Cholesky and LDL^T factors share.

    A factor may be used from several threads at once: solves run side by side, refactor waits for them.
    """

    __slots__ = (
        "__weakref__",
        "_began_on_host",
        "_device_array",
        "_map",
        "_size",
        "_solve",
        "_symbolic",
        "_vector",
        "version",
    )

    def __init__(self, symbolic: Symbolic, canonical: np.ndarray, core: Any = None):
        """Factor `canonical`, or take over an engine's factor of it."""
        self._began_on_host = not registry.named(symbolic.choice.engine).on_device
        symbolic = symbolic if core else followed(symbolic)
        core = core or symbolic.make(canonical)
        choice = symbolic.choice
        if choice.request.movable and not registry.named(choice.engine).on_device:
            core = watched(self, core, symbolic)
        self._dtype = canonical.dtype
        self._vector = (core.n,)
        self.version = 0  # counts what was factored
        self.moved(core, symbolic)
        # What the fast path of refactor needs: the shape of values it takes, and the map the core gathers them through.
        self._size: tuple[int, ...] = UNKNOWN
        self._map: ndarray | None = None
        FACTORIZATIONS.add()

    def moved(self, core: Any, symbolic: Symbolic) -> None:
        """Take over an engine's factor of the values held, made by this analysis."""
        self._core, self._symbolic = core, symbolic
        self._solve = core.solve
        self._device_array = getattr(core, "device_array", None)  # class of arrays that need no detour
        self._lower = self._upper = None

    shape = property(lambda self: self._symbolic.shape, doc="Shape of A.")
    dtype = property(lambda self: self._dtype, doc="Of the factor and of the solutions.")
    engine = property(lambda self: self._symbolic.engine, doc="Name of the engine that runs.")
    symbolic = property(lambda self: self._symbolic, doc="The analysis that this factor was made with.")
    nnz = property(lambda self: int(self._core.nnz), doc="Stored entries of the factors.")

    def parts(self) -> tuple[Any, Any]:
        """The engine's factor, and the analysis that it began with."""
        core = self._core.held if isinstance(self._core, Moving) else self._core
        return core, self._symbolic.parts()[1]

    @property
    def _pattern(self) -> matrix.Pattern:
        return self._symbolic.parts()[0].pattern

    @property
    def backward_error(self) -> float | None:
        """Normwise backward error of the last solve or certification that measured it, None if none did."""
        error = self._core.backward_error
        return None if error < 0 else error

    def solve(self, rhs: ndarray, trans: str = "N", *, check: str = "now", out: Any = None) -> ndarray:
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
            On the device if `rhs` is there.

        Raises
        ------
        TypeError
            `rhs` is not an array, or casting it would lose precision.
        ValueError
            `rhs` has another number of rows than A, or `trans` is unknown.
        """
        if check != "now" or out is not None:
            return later.solve(self, rhs, trans, check, out)  # type: ignore[no-any-return]
        if (
            trans == "N"
            and type(rhs) is ndarray
            and rhs.dtype is self._dtype
            and rhs.shape == self._vector
            and rhs.flags.c_contiguous
        ):
            x: ndarray = self._solve(rhs, 0)
            return x
        if (
            type(rhs) is self._device_array
            and trans in TRANS
            and rhs.dtype == self._dtype
            and rhs.shape == self._vector
            and rhs.flags.c_contiguous
        ):
            x = self._solve(rhs, TRANS[trans])
            return x
        x = self._solve_any(rhs, trans)
        return x

    def _solve_any(self, rhs: Any, trans: Any) -> Any:
        if library_of(rhs):
            return lent(self.solve, rhs, trans)
        if matrix.is_cupy(rhs) and (self._device_array is None or not matrix.is_cupy_array(rhs)):
            self._came_from_device()
            return matrix.to_device(self._solve_any(rhs.get(), trans))
        return solve_as_given(self._solve, rhs, trans, self._vector[0], self._dtype)

    def _came_from_device(self) -> None:
        if isinstance(self._core, Moving):
            self._core.came_from_device()

    def refactor(self, values: Any, *, check: str = "now") -> None:
        """Factor new values on the same pattern, reusing the analysis.

        If this raises, the factor still holds the values before; with ``check="later"`` these are gone when
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
        ValueError
            Another number of values than ``A.data`` had.
        TypeError
            Casting the values to the dtype of the factor would lose precision.
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
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
        self._factor_anew()
        try:
            bad = self._core.refactor(values, self._map)
        except _core.NotPositiveDefinite as error:
            raise NotPositiveDefiniteError(error.column, error.pivot) from None
        if bad >= 0:
            pattern = self._pattern
            raise matrix.non_finite(pattern, bad, pattern.gather(values))

    def _factor_anew(self) -> None:
        """What was made of the factorization before is none of the one that comes."""
        FACTORIZATIONS.add()
        self.version += 1
        self._lower = self._upper = None

    def _refactor_any(self, values: Any) -> None:
        pattern = self._pattern
        if self._size is UNKNOWN:
            direct, self._map = pattern.direct_map(self._dtype)
            self._size = (pattern.size if direct else -1,)
            return self.refactor(values)
        if library_of(values):
            lent(self.refactor, values)
            return None
        if self._device_array is not None and matrix.is_cupy_array(values):
            self._factor_anew()
            self._core.refactor(self._device_values(values))
            return None
        if matrix.is_cupy(values):
            self._came_from_device()
        problem = self._symbolic.parts()[0]
        canonical = matrix.values_for(pattern, values, problem.kind, problem.options.hermitian)
        canonical = canonical.astype(self._dtype, casting="safe", copy=False)
        self._factor_anew()
        try:
            bad = self._core.refactor(canonical, None)
        except _core.NotPositiveDefinite as error:
            raise NotPositiveDefiniteError(error.column, error.pivot) from None
        if bad >= 0:
            raise matrix.non_finite(pattern, bad, canonical)

    def _device_values(self, values: Any) -> Any:
        """Values for a GPU engine, in one piece and in the dtype of the factor."""
        pattern = self._pattern
        if values.size != pattern.size:
            raise matrix.wrong_size(pattern, values.size)
        return cast(values if values.ndim == 1 else values.reshape(-1), self._dtype)

    def refactor_solve(self, values: Any, rhs: Any, trans: str = "N", *, check: str = "now", out: Any = None) -> Any:
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
        """
        if check != "now" or out is not None:
            return later.solve(self, rhs, trans, check, out, values)
        if (
            self._device_array is not None
            and matrix.is_cupy_array(values)
            and matrix.is_cupy_array(rhs)
            and rhs.dtype == self._dtype
            and rhs.shape == self._vector
            and trans in TRANS
        ):
            self._factor_anew()
            return self._core.refactor_solve(self._device_values(values), cast(rhs, self._dtype), TRANS[trans])
        if (
            self._device_array is not None
            and type(values) is type(rhs) is ndarray
            and values.dtype is rhs.dtype is self._dtype
            and values.shape == self._size
            and rhs.shape == self._vector
            and values.flags.c_contiguous
            and trans in TRANS
            and self._core.takes_both
        ):
            self._factor_anew()
            return self._core.refactor_solve(values, rhs, TRANS[trans])
        if library_of(values) or library_of(rhs):
            return lent(self.refactor_solve, values, rhs, trans)
        self.refactor(values)
        return self.solve(rhs, trans)

    def check(self) -> float | None:
        """Wait for all calls with ``check="later"``, and look after them; so does any other call that waits.

        Returns
        -------
        float or None
            The largest backward error of their solutions since the last check; None if none was measured.

        Raises
        ------
        AccuracyError
            Solutions since the last check cannot be trusted: of any of them, not only the last.
        NonFiniteError, RuntimeError, NotPositiveDefiniteError
            As :meth:`refactor`, about the values that were factored last. The factor then holds none until it is
            refactored.
        """
        error = self._core.check() if self._device_array is not None else self._core.backward_error
        return None if error < 0 else error

    def updated(self, U: Any, V: Any = None) -> UpdatedFactor:
        """Solves with ``A + U V^H``, a change of low rank, by this factor.

        Parameters
        ----------
        U, V : array_like or sparse, shape (n,) or (n, k)
            `V` is `U` unless given.

        Returns
        -------
        UpdatedFactor
            Of the values held now: it refuses to solve once this factor has been refactored.

        Raises
        ------
        IllConditionedUpdateError
            The updated matrix is singular, or nearly so.
        ValueError
            Other shapes.
        """
        return UpdatedFactor(self, U, U if V is None else V)

    def slogdet(self) -> SlogDet:
        """Sign (or phase) and logarithm of the modulus of the determinant of A."""
        sign, logabsdet = self._core.slogdet()
        return SlogDet(self._dtype.type(sign), float(logabsdet))

    def rcond(self) -> float:
        """Reciprocal of an estimate of the 1-norm condition number (Higham and Tisseur, SIMAX 2000)."""
        return float(self._core.rcond())

    @property
    def stats(self) -> Stats:
        """Seconds per phase, sizes, and what pivoting and refinement had to do."""
        return stats_of(self, self._core, analysis_text(self._symbolic.call))

    def explain(self) -> str:
        """What was chosen and why, and what it cost, as a few lines of text."""
        return explain_factor(self._symbolic, self.stats, getattr(self._core, "story", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_factor, (type(self), self._symbolic, self._core.values())

    def __repr__(self) -> str:
        n = self._vector[0]
        return f"<{type(self).__name__} of {n} x {n}, {self._dtype.name}, nnz {self.nnz:,}, engine {self.engine}>"


class LUFactor(LUTriangles, Factor):
    """LU factors of a square matrix: ``Pr A Pc = L U``; made by :func:`gpusplu.splu`.

    `perm_r` and `perm_c` are SciPy's: ``(L @ U)[perm_r][:, perm_c]`` is A. No scaling is left in L and U.
    """

    __slots__ = ()


class CholeskyFactor(CholeskyTriangle, Changes, Factor):
    """Cholesky factor of a Hermitian positive definite matrix: ``A[perm][:, perm] = L L^H``.

    Made by :func:`gpusplu.cholesky`. Calling it solves.
    """

    __slots__ = ("_given",)

    def __init__(self, symbolic: Symbolic, canonical: np.ndarray, core: Any = None):
        super().__init__(symbolic, canonical, core)
        self._given = None

    def _refactor_any(self, values: Any) -> None:
        if self._given is not None and not library_of(values):
            return self._refactor_widened(values, self._given)
        return super()._refactor_any(values)

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_cholesky, (self._symbolic, self._core.values(), self._given)

    def __call__(self, rhs: ndarray) -> ndarray:
        """Solve ``A x = rhs``."""
        return self.solve(rhs)

    def logdet(self) -> float:
        """Logarithm of the determinant of A."""
        return self.slogdet().logabsdet


def restore_factor(kind: Any, symbolic: Any, canonical: Any) -> Factor:
    """A factor of the class `kind`, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    NonFiniteError
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    """
    whole = isinstance(kind, type) and issubclass(kind, Factor) and isinstance(symbolic, Symbolic)
    require(whole and issubclass(kind, FACTORS[symbolic.kind]), "a part is something else")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS
    require(values and canonical.shape == (symbolic.nnz,), "the values are not those of the analysis")
    canonical = np.ascontiguousarray(canonical)
    matrix.check_finite(symbolic.parts()[0].pattern, canonical)
    factor: Factor = kind(symbolic, canonical)
    return factor


def restore_cholesky(symbolic: Any, canonical: Any, given: Any) -> Factor:
    """A Cholesky factor, factored again, whose `refactor` takes values of the pattern `given` if there is one."""
    factor = restore_factor(CholeskyFactor, symbolic, canonical)
    if given is not None:
        whole = isinstance(given, matrix.Pattern) and isinstance(given.core, _core.Canonical)
        require(whole and given.n == symbolic.n, "a pattern is of another matrix")
        factor._given = given  # type: ignore[attr-defined]
    return factor


FACTORS.update(lu=LUFactor, cholesky=CholeskyFactor)
