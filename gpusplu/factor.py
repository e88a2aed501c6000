"""LUFactor and CholeskyFactor: what users hold, and what LDLFactor shares with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from . import _core, matrix
from .arrays import library_of
from .changes import Changes
from .counting import FACTORIZATIONS
from .engines import registry
from .errors import require
from .factor_calls import UNKNOWN, Calls
from .inverse import PartsOfInverse
from .moving import Moving, followed, watched
from .report import analysis_text, explain_factor
from .results import SlogDet
from .stats import Stats, stats_of
from .symbolic import FACTORS, Symbolic
from .triangles import CholeskyTriangle, LUTriangles
from .updated import UpdatedFactor


class Factor(Calls, PartsOfInverse):
    """What LU, Cholesky and LDL^T factors share.

    A factor may be used from several threads at once: solves run side by side, refactor waits for them.
    """

    __slots__ = ("__weakref__",)

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
        self._size, self._map = UNKNOWN, None
        FACTORIZATIONS.add()

    def moved(self, core: Any, symbolic: Symbolic) -> None:
        """Take over an engine's factor of the values held, made by this analysis."""
        self._core, self._symbolic = core, symbolic
        self._solve = core.solve
        self._device_array = getattr(core, "device_array", None)
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
    def backward_error(self) -> float | None:
        """Normwise backward error of the last solve or certification that measured it, None if none did."""
        error = self._core.backward_error
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
