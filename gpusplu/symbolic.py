"""Symbolic: what analysis found, as an object that factors any values on its pattern."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, matrix
from .dispatch.costs import COLUMN_ENGINES
from .dispatch.resolve import Choice, device_is_likely
from .options import Options

if TYPE_CHECKING:
    from .factor import CholeskyFactor, LUFactor


class Symbolic:
    """Ordering, structure and engine for one sparsity pattern; made by :func:`gpusplu.analyze`.

    Immutable, usable from several threads and picklable.

    Attributes
    ----------
    n, nnz : int
        Order and number of entries of A.
    cholesky : bool
        For Hermitian positive definite matrices.
    method : {"column", "front"}
        Column LU, or fronts.
    ordering : {"amd", "nd", "natural", "user"}
    lnz : int
        Entries of L, the diagonal included.
    flops : float
        Of one factorization [flop].
    structural_rank : int
        Fewer than `n` means that A is singular whatever its values are.
    engine : str
    seconds : dict
        Of the phases that led here [s].
    """

    __slots__ = ("_choice", "_core", "_options", "_pattern", "_plan", "_programs", "seconds")

    def __init__(
        self,
        pattern: matrix.Pattern,
        core: Any,
        options: Options,
        choice: Choice,
        seconds: dict[str, float],
        plan: Any = None,
    ):
        self._pattern = pattern
        self._core = core
        self._options = options
        self._choice = choice
        self._plan = plan
        self._programs: dict[np.dtype, Any] = {}
        self.seconds = seconds

    n = property(lambda self: self._pattern.n)
    nnz = property(lambda self: self._pattern.nnz)
    shape = property(lambda self: (self._pattern.n, self._pattern.n))
    engine = property(lambda self: self._choice.engine)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._core, name)

    def factor(self, values: Any) -> LUFactor | CholeskyFactor:
        """Factor `values` on this pattern.

        Parameters
        ----------
        values : array_like, shape (size,), or sparse matrix
            In the order of ``A.data`` of the matrix that was analysed, or a matrix with the same pattern.

        Returns
        -------
        LUFactor or CholeskyFactor

        Raises
        ------
        PatternMismatchError, NonFiniteError
            See :meth:`LUFactor.refactor`.
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
        """
        from .factor import CholeskyFactor, LUFactor

        kind = CholeskyFactor if self.cholesky else LUFactor
        canonical = matrix.values_for(self._pattern, values, self.cholesky)
        matrix.check_finite(self._pattern, canonical)
        return kind(self, canonical)

    def program(self, dtype: np.dtype) -> Any:
        """The plan for values of `dtype` on the device that was chosen; made and uploaded once."""
        if dtype not in self._programs:
            from .engines.front_memory import plan_within
            from .engines.supernodal import FrontProgram
            from .kernels import launch

            device, allowed = launch.open_device(self._choice.device), self._choice.device_memory
            if self._plan is None or np.dtype(self._plan.scalar) != dtype:
                core = self._core.with_scales_of(dtype.char)
                _, self._plan = plan_within([core], self._pattern, dtype, device, allowed)
            self._programs[dtype] = FrontProgram(device, self._plan, self._pattern)
            self._programs[dtype].prepare()
        return self._programs[dtype]

    def __reduce__(self) -> tuple[Any, ...]:
        return Symbolic, (self._pattern, self._core, self._options, self._choice, self.seconds)

    def __repr__(self) -> str:
        kind = "Cholesky" if self.cholesky else "LU"
        return f"<Symbolic {kind} of {self.n} x {self.n}, {self.nnz} entries, {self.method}s, {self.ordering}>"


def analyze_pattern(
    pattern: matrix.Pattern,
    canonical: np.ndarray,
    options: Options,
    choice: Choice,
    cholesky: bool,
    seconds: dict[str, float],
) -> Symbolic:
    """Analyse for the engine of `choice`; "auto" is decided here, by what is predicted for each."""
    if choice.engine == "supernodal":
        from .engines import choose
        from .kernels import launch

        device = launch.open_device(choice.device)
        planned = choose.plan_fronts(pattern, canonical, options, cholesky, device, choice.device_memory)
        return Symbolic(pattern, planned.core, options, choice, {**seconds, **planned.seconds}, planned.plan)
    if choice.engine in COLUMN_ENGINES:
        return analyze_columns(pattern, canonical, options, choice, cholesky, seconds)
    if choice.engine == "auto" and (choice.device is not None or device_is_likely(choice, options, pattern.nnz)):
        from .engines import choose

        way = choose.choose_first if choice.device is None else choose.choose_on_device
        choice, chosen = way(pattern, canonical, options, cholesky, choice)
        if chosen:
            return Symbolic(pattern, chosen.core, options, choice, {**seconds, **chosen.seconds}, chosen.plan)
        if choice.engine in COLUMN_ENGINES:
            return analyze_columns(pattern, canonical, options, choice, cholesky, seconds)
    start = perf_counter()
    core = _core.analyze(
        pattern.ptr,
        pattern.ind,
        canonical,
        cholesky=cholesky,
        ordering=options.ordering,
        perm=options.perm,
        method="column" if options.pivoting == "partial" else "auto",
        matching=options.matching,
        refactorizations=choice.refactorizations,
    )
    seconds = {**seconds, "analyze": perf_counter() - start}
    if choice.engine == "auto":
        from .engines import choose

        choice, chosen = choose.choose(pattern, canonical, options, cholesky, choice, core)
        if chosen:
            seconds = {**seconds, **chosen.seconds, "analyze": seconds["analyze"] + chosen.seconds["analyze"]}
            return Symbolic(pattern, chosen.core, options, choice, seconds, chosen.plan)
        if choice.engine in COLUMN_ENGINES:
            return analyze_columns(pattern, canonical, options, choice, cholesky, seconds)
    return Symbolic(pattern, core, options, choice, seconds)


def analyze_columns(
    pattern: matrix.Pattern,
    canonical: np.ndarray,
    options: Options,
    choice: Choice,
    cholesky: bool,
    seconds: dict[str, float],
) -> Symbolic:
    """Analyse for a column engine of a GPU; `seconds` is what was spent before."""
    from .engines import columns

    start = perf_counter()
    core = columns.analyze_columns(pattern, canonical, options, cholesky, choice.engine)
    spent = seconds.get("analyze", 0.0) + perf_counter() - start
    return Symbolic(pattern, core, options, choice, {**seconds, "analyze": spent})
