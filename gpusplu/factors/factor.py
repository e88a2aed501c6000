"""LUFactor and CholeskyFactor, and their common base with LDLFactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..common import matrix, notebook
from ..common.arrays import library_of
from ..common.counting import FACTORIZATIONS
from ..common.results import SlogDet
from ..common.stats import Explanation, Stats, durations, show, stats_of
from ..cost.scale import size
from ..dispatch.migration import Migration, resolved, tracked
from ..dispatch.phases import LoggedFactor, logged
from ..dispatch.report import analysis_text, explain_factor, stored_text
from ..engines import registry
from ..errors import require
from ..typing import ArrayT
from .changes import Changes
from .factor_calls import UNKNOWN, VERSIONS, Calls
from .inverse import PartsOfInverse
from .symbolic import FACTORS, Symbolic
from .triangles import CholeskyTriangle, LUTriangles
from .updated import UpdatedFactor

if TYPE_CHECKING:
    from ..plotting import FactorPlots


class Factor(Calls, PartsOfInverse):
    """Common base of LU, Cholesky and LDL^T factors.

    A factor may be used from several threads at once: solves run concurrently, refactor waits for them.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, symbolic: Symbolic, canonical: np.ndarray, core: Any = None):
        """Factor `canonical`, or take over an engine's factor of it."""
        choice = symbolic.choice
        on_device = registry.named(choice.engine).on_device
        self._began_on_host = not on_device
        if not core:
            symbolic = resolved(symbolic).compatible_with(canonical)
            if symbolic.choice is not choice:
                choice, on_device = symbolic.choice, registry.named(symbolic.choice.engine).on_device
            core = symbolic.make(canonical)
        core = logged(core, symbolic)
        if choice.request.may_migrate and not on_device:
            core = tracked(self, core, symbolic)
        self._dtype = canonical.dtype
        self._vector = (core.n,)
        self.version, self._in_progress = next(VERSIONS), []
        self.replace_core(core, symbolic)
        self._size, self._map = UNKNOWN, None
        FACTORIZATIONS.add()

    def replace_core(self, core: Any, symbolic: Symbolic) -> None:
        """Take over an engine's factor of the values held, made by this analysis."""
        self._core, self._symbolic = core, symbolic
        self._solve = core.solve
        self._device_array = getattr(core, "device_array", None)
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
        return self._symbolic

    @property
    def nnz(self) -> int:
        """Stored entries of the factors."""
        return int(self._core.nnz)

    def parts(self) -> tuple[Any, Any]:
        """The engine's factor, and its first analysis."""
        core = self._core
        while isinstance(core, (Migration, LoggedFactor)):
            core = core.held
        return core, self._symbolic.parts()[1]

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
            `V` is `U` unless given.

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
        return explain_factor(self._symbolic, self.stats, getattr(self._core, "reason", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_factor, (type(self), self._symbolic, self._core.values())

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


class Solver(Factor):
    """A factor that solves when it is called, as in scikit-sparse."""

    __slots__ = ()

    @overload
    def __call__(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def __call__(self, rhs: ArrayT) -> ArrayT: ...
    def __call__(self, rhs: Any) -> Any:
        """Solve ``A x = rhs``."""
        return self.solve(rhs)


class LUFactor(LUTriangles, Factor):
    """LU factors of a square matrix: ``Pr A Pc = L U``; made by :func:`gpusplu.splu`.

    `perm_r` and `perm_c` are SciPy's: ``(L @ U)[perm_r][:, perm_c]`` is A. L and U include no scaling. If the entries
    of A differ so much in size that the product would not be A then, the first access to L, U or their permutations
    makes other factors by partial pivoting of the unscaled A; if their product is not A either, it gives a
    `RuntimeWarning`.

    See Also
    --------
    splu, BatchedLUFactor, UpdatedFactor

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> lu = gs.splu(A)
    >>> lu.shape, lu.dtype.name, lu.engine
    ((100, 100), 'float64', 'cpu')
    >>> abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max() < 1e-14
    np.True_
    >>> x = lu.solve(np.ones(100))
    """

    __slots__ = ()


class CholeskyFactor(CholeskyTriangle, Changes, Solver):
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

    def __init__(self, symbolic: Symbolic, canonical: np.ndarray, core: Any = None):
        super().__init__(symbolic, canonical, core)
        self._given = None

    def _refactor_any(self, values: Any) -> None:
        if self._given is not None and not library_of(values):
            return self._refactor_widened(values, self._given)
        return super()._refactor_any(values)

    def _is_step(self, values: Any, rhs: Any, trans: Any) -> bool:
        return self._given is None and super()._is_step(values, rhs, trans)

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_cholesky, (self._symbolic, self._core.values(), self._given)

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
    require(whole and issubclass(kind, FACTORS[symbolic.kind]), "a part is something else")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS
    require(values and canonical.shape == (symbolic.nnz,), "the values are not those of the analysis")
    canonical = np.ascontiguousarray(canonical)
    problem = symbolic.parts()[0]
    matrix.check_finite(problem.pattern, canonical)
    if problem.kind != "lu":
        matrix.check_new_values(problem.pattern, canonical, problem.kind, problem.options.hermitian)
    factor: Factor = kind(symbolic, canonical)
    return factor


def restore_cholesky(symbolic: Any, canonical: Any, given: Any) -> Factor:
    """A Cholesky factor, factored again. Its `refactor` takes values of the pattern `given`, if there is one."""
    factor = restore_factor(CholeskyFactor, symbolic, canonical)
    if given is not None:
        whole = isinstance(given, matrix.Pattern) and isinstance(given.core, _core.Canonical)
        require(whole and given.n == symbolic.n, "a pattern is of another matrix")
        factor._given = given  # type: ignore[attr-defined]
    return factor


FACTORS.update(lu=LUFactor, cholesky=CholeskyFactor)
