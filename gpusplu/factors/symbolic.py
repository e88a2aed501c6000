"""Symbolic: the result of an analysis, which factors any values on its pattern."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..common import matrix
from ..common.arrays import PLAIN, takes_arrays
from ..common.options import ORDERINGS, PIVOTINGS, PRECISIONS, REFINEMENTS, SYMBOLIC_PHASES, Options, one_of
from ..dispatch.analyzed import Analyzed
from ..dispatch.pipeline import factor_values
from ..dispatch.selection import Choice
from ..engines import registry
from ..engines.interface import Analysis
from ..engines.problem import Problem, Request
from ..errors import EngineUnavailableError, require
from ..typing import BatchT, Errors, FactorT, OfUnknownShape, Rows, Sparse, Vector

if TYPE_CHECKING:
    from ..plotting import SymbolicPlots


class Classes(dict[str, Any]):
    """Classes by the kind of factorization. They register themselves; the module of one is imported when needed."""

    def __init__(self, **modules: str):
        self.modules = modules

    def __missing__(self, kind: str) -> Any:
        _core.uninterrupted(import_module, f".{self.modules[kind]}", __package__)
        return self[kind]


#: Class of a factor.
FACTORS = Classes(lu="lu", cholesky="cholesky", ldlt="ldl")
#: Class of a batch.
BATCHES = Classes(lu="batch", cholesky="batch")


class Symbolic(Analyzed, Generic[FactorT, BatchT]):
    """Ordering, structure and engine for one sparsity pattern; made by :func:`gpusplu.analyze`.

    Immutable, usable from several threads and picklable. An analysis for a GPU uses the CPU engine after it is
    unpickled without a device.

    Attributes
    ----------
    n, nnz : int
        Order and number of entries of A.
    kind : {"lu", "cholesky", "ldlt"}
        Kind of factorization.
    cholesky : bool
        For Hermitian positive definite matrices.
    method : {"column", "front"}
        Column LU, or fronts.
    ordering : {"amd", "nd", "natural", "user"}
    lnz : int
        Entries of L, the diagonal included.
    flops : float
        Operations of one factorization [flop].
    structural_rank : int
        If it is less than `n`, A is singular for all values.
    engine : str
    seconds : dict
        Seconds of the phases of the analysis [s].
    call : int
        Number of the call that made this analysis if it comes from the pattern cache (:func:`gpusplu.cache_info` counts
        calls), else 0.

    See Also
    --------
    analyze

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> symbolic = gs.analyze(A)
    >>> symbolic.n, symbolic.nnz, symbolic.structural_rank
    (100, 460, 100)
    >>> lu = symbolic.factor(A.data)
    """

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of the core's analysis
        cholesky: bool
        column_levels: int
        flops: float
        lnz: int
        method: Literal["column", "front"]
        ordering: Literal["amd", "nd", "natural", "user"]
        structural_rank: int

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(self._analysis.core) if not name.startswith("_"))]

    @overload
    def factor(self, values: OfUnknownShape, errors: Errors = "flag") -> Any: ...
    @overload
    def factor(self, values: Rows, errors: Errors = "flag") -> BatchT: ...
    @overload
    def factor(self, values: Vector | Sparse, errors: Errors = "flag") -> FactorT: ...
    @overload
    def factor(self, values: Any, errors: Errors = "flag") -> Any: ...
    @takes_arrays
    def factor(self, values: Any, errors: Errors = "flag") -> Any:
        """Factor `values` on this pattern.

        Parameters
        ----------
        values : array_like, shape (size,) or (nbatch, size), or sparse matrix
            In the order of ``A.data`` of the matrix that was analysed, or a matrix with the same pattern. With two
            dimensions: one system per row.
        errors : {"flag", "raise"}, optional
            For a batch: systems that cannot be factored are flagged (`BatchedLUFactor.status`), or raise.

        Returns
        -------
        LUFactor, CholeskyFactor or LDLFactor, BatchedLUFactor or BatchedCholeskyFactor

        Raises
        ------
        PatternMismatchError, NonFiniteError
            See :meth:`LUFactor.refactor`.
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
        BatchError
            Systems of a batch cannot be factored, with ``errors="raise"``; the message lists them.

        See Also
        --------
        LUFactor.refactor, splu_batch

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A)
        >>> lu = symbolic.factor(2 * A.data)
        >>> batch = symbolic.factor(np.stack([A.data, 2 * A.data]))
        >>> len(batch)
        2
        """
        problem = self._problem
        pattern = problem.pattern
        if not sp.issparse(values) and np.ndim(values) == 2 and np.shape(values)[1] == pattern.size:
            return self.factor_batch(values, errors)
        canonical = matrix.values_for(pattern, values, self.kind, problem.options.hermitian)
        matrix.check_finite(pattern, canonical)
        return FACTORS[problem.kind](factor_values(self, canonical))

    def factor_batch(self, values: Any, errors: Errors = "flag") -> BatchT:
        """`factor` of values of two dimensions.

        See Also
        --------
        Symbolic.factor, splu_batch

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A)
        >>> batch = symbolic.factor_batch(np.stack([A.data, 2 * A.data]))
        >>> batch.solve(np.ones(100)).shape
        (2, 100)
        """
        if self.kind not in BATCHES.modules:
            raise ValueError(f"values has two dimensions, and there are no batches of {self.kind}; pass one system")
        if self._problem.options.precision == "mixed":
            raise ValueError("batches have no mixed precision; analyze with precision='double'")
        return BATCHES[self.kind](self, values, errors)

    @property
    def plot(self) -> SymbolicPlots:
        """Pictures: ``symbolic.plot.spy()`` and `supernodes`."""
        from ..plotting import SymbolicPlots

        return SymbolicPlots(self._analysis.core)

    def __reduce__(self) -> tuple[Any, ...]:
        problem = self._problem
        known = problem.pattern, problem.dtype, problem.kind, problem.options
        return restore_symbolic, (*known, self.choice, self._analysis.core, self.seconds)

    def __repr__(self) -> str:
        kind = {"lu": "LU", "cholesky": "Cholesky", "ldlt": "LDL^T"}[self.kind]
        how = f"{self.method}s, {self.ordering}" if self.structural_rank == self.n else "structurally singular"
        return f"<Symbolic {kind} of {self.n} x {self.n}, {self.nnz} entries, {how}>"


PLAIN.add(Symbolic)


def as_symbolic(analyzed: Analyzed) -> Symbolic[Any, Any]:
    """The same analysis with the methods that users call."""
    if isinstance(analyzed, Symbolic):
        return analyzed
    problem, analysis = analyzed.parts()
    symbolic: Symbolic[Any, Any] = Symbolic(problem, analyzed.choice, analysis, analyzed.call, remembered=True)
    symbolic.seconds = analyzed.seconds
    return symbolic


def restore_symbolic(
    pattern: Any, dtype: Any, kind: Any, options: Any, choice: Any, core: Any, seconds: Any
) -> Symbolic:
    """A Symbolic from its pickled parts; uses the CPU engine if its device is unavailable.

    The core has checked the pattern and the analysis separately (core/matrix/canonical.hpp and
    core/analysis/symbolic.hpp).

    Raises
    ------
    ValueError
        The parts do not belong together.
    """
    classes = (matrix.Pattern, np.dtype, Options, Choice, _core.Symbolic, dict)
    whole = all(map(isinstance, (pattern, dtype, options, choice, core, seconds), classes))
    require(whole and isinstance(pattern.core, _core.Canonical), "a part has the wrong type")
    by_ldlt = (kind, core.kind, options.symmetric) == ("lu", "ldlt", True)
    require(dtype in matrix.FLOATS and (kind == core.kind or by_ldlt), "the analysis is not of this kind")
    _core.validate(core, pattern.core)
    one_of("ordering", options.ordering, ORDERINGS)
    one_of("pivoting", options.pivoting, PIVOTINGS)
    one_of("refine", options.refine, REFINEMENTS)
    one_of("symbolic", options.symbolic, SYMBOLIC_PHASES)
    one_of("precision", options.precision, PRECISIONS)
    flags = isinstance(options.hermitian, bool) and isinstance(options.symmetric, bool)
    require(flags, "it is not stated whether the matrix is Hermitian")
    one_of("engine", choice.engine, registry.names())
    engine, method = registry.named(choice.engine), core.method
    fits = (
        kind in engine.capabilities.kinds
        and method in engine.capabilities.methods
        and not (by_ldlt and engine.capabilities.on_device)
    )
    require(fits or core.structural_rank < core.n, "the engine does not match this analysis")
    require(isinstance(choice.request, Request), "a part has the wrong type")
    require(isinstance(choice.request.refactorizations, (int, float)), "the expected refactorizations are not a number")
    require(all(isinstance(value, float) for value in seconds.values()), "the seconds of the phases are not numbers")
    choice = available_choice(choice)
    problem = Problem(pattern, np.empty(0, dtype), kind, options, choice.request)
    problem.seconds.update(seconds)
    return Symbolic(problem, choice, Analysis(core))


def available_choice(choice: Choice) -> Choice:
    """The choice, or the CPU engine if its device is unavailable."""
    if not registry.named(choice.engine).capabilities.on_device:
        return choice
    from ..cuda import devices, several

    try:
        if choice.request.devices:
            several.open_devices(choice.request.devices)
        devices.open_device(choice.request.device)
    except EngineUnavailableError as error:
        reason = f"pickled with engine={choice.engine!r}, which cannot run here: {error}"
        request = choice.request._replace(engine=registry.DEFAULT, reason=reason, device=None, devices=())
        return Choice(registry.DEFAULT, reason, request)
    return choice
