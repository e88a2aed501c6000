"""The route from a caller's matrix to an engine's factor: pattern cache, selection, analysis, factorization.

`factor` is the route of splu, cholesky, ldlt and spsolve. Where a CPU engine is certain, it takes the whole matrix in
one call (`Engine.factor_matrix`); else, and where the values are not valid, `factor_by_steps` takes the steps one by
one. `analyze` and `analysis_for_batch` stop before the factorization, `factor_values` begins after the analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..common import matrix
from ..common.listeners import log_enabled
from ..common.options import Options
from ..engines import registry
from ..engines.problem import Problem, Request
from . import patterns, phases
from .analyzed import Analyzed, analyze_problem
from .device_patterns import DeviceColumns
from .migration import LEAST_TO_MIGRATE, resolved, start_background_analysis
from .selection import AUTO, Choice, without_small

#: Compressed columns on the host: SciPy's own classes, not subclasses of them, and `matrix.Columns`.
COLUMNS = frozenset((sp.csc_array, sp.csc_matrix, matrix.Columns))
INCOMPATIBLE = "its matching is unsuitable for these values"
registry.named(registry.DEFAULT)  # imported now: a child forked during an import in another thread would wait for ever

#: The options, or a function of the order of the matrix that reads them: its errors come after those of the matrix, as
#: in SciPy.
ReadOptions = Options | Callable[[int], Options]


class Made(NamedTuple):
    """An engine's factor and its inputs.

    Attributes
    ----------
    symbolic : Analyzed
    numeric : Numeric
    dtype : dtype
        Of the caller's values in floating point, and of the solutions.
    on_host : bool
        The analysis that the factor began with was for the processor; a cached migration may have changed the engine.
    known : _core.Known or None
        Entry of the pattern cache that was used.
    """

    symbolic: Analyzed
    numeric: Any
    dtype: np.dtype
    on_host: bool
    known: Any = None


def factor(A: Any, kind: str, options: ReadOptions, request: Request, borrow: bool = False) -> Made:
    """Factor a matrix. With `borrow` the caller never shows the factor to anybody, so it may be one that the pattern
    cache holds.

    Raises
    ------
    TypeError, ValueError
        As SciPy; `NonFiniteError`, `NotHermitianError`.
    RuntimeError
        ``Factor is exactly singular``.
    NotPositiveDefiniteError
    EngineUnavailableError
    """
    start = perf_counter()
    A, request = read(A, request)
    chosen = options if isinstance(options, Options) else options(A.shape[0])
    if request.engine == AUTO:
        request = without_small(request, A.nnz)
    made: Made = within_memory(route, A, kind, chosen, request, borrow, start)
    return made


def options_for(options: ReadOptions, A: Any) -> Options:
    return options if isinstance(options, Options) else options(A.shape[0])


def route(A: Any, kind: str, options: Options, request: Request, borrow: bool, start: float) -> Made:
    """`factor` of a matrix from `read`."""
    if request.engine != AUTO and not (request.may_migrate and A.nnz >= LEAST_TO_MIGRATE):
        made = registry.named(request.engine).factor_matrix(A, kind, options, request, patterns.STORE, borrow)
        if made is not None:
            problem, analysis, numeric, known, dropped = made
            choice = Choice(request.engine, request.reason, request)
            symbolic = Analyzed(problem, choice, analysis, known.call if known else 0, remembered=True)
            if log_enabled():
                phases.made_at_once(symbolic, dropped)
            return Made(symbolic, numeric, A.data.dtype, True, known)
    return factor_by_steps(A, kind, options, request, borrow, start)


def factor_by_steps(A: Any, kind: str, options: Options, request: Request, borrow: bool, start: float) -> Made:
    """`factor` of a matrix from `read`, by a cached or a new analysis of its pattern."""
    key = patterns.pattern_key_of(A, kind, options, request)
    known: Any = patterns.STORE.find(*key) if key else None
    if key and known is not None:
        symbolic = resolved(known.value)
        if symbolic is not known.value:
            patterns.keep(key, symbolic)
        made = refactored_on_device(A, options, symbolic, known, start) if borrow else None
        made = made or factored_again(A, options, symbolic, known, borrow, start)
        if made is not None:
            return made
        patterns.STORE.miss()
    indices = (key.first, key.second) if key else None
    symbolic, canonical = analyzed(A, request, kind, options, start, indices, to_factor=True)
    made = factor_values(symbolic, canonical)
    if key:
        patterns.keep(key, made.symbolic)
    return made


def factor_values(symbolic: Analyzed, canonical: np.ndarray) -> Made:
    """Factor canonical values, shape (nnz,), on an analysed pattern."""
    on_host = not registry.named(symbolic.engine).capabilities.on_device
    symbolic = resolved(symbolic).compatible_with(canonical)
    return Made(symbolic, symbolic.make(canonical), canonical.dtype, on_host)


def refactored_on_device(A: Any, options: Options, symbolic: Analyzed, known: Any, start: float) -> Made | None:
    """A factor of values on a device, refactored from a borrowed one; None if no compatible one is cached.

    The host does not wait for it: errors of the values are reported when it is used.
    """
    if type(A) is not DeviceColumns or symbolic is not known.value:
        return None
    on_same_device = (
        registry.named(symbolic.engine).capabilities.on_device and symbolic.choice.request.device == A.device
    )
    left = known.take() if on_same_device else None
    if left is None:
        return None
    left.refactor(A.on_device)
    again = symbolic.again(known.call, perf_counter() - start, options)
    phases.reused(again)
    return Made(again, left, A.dtype, False, known)


def factored_again(A: Any, options: Options, symbolic: Analyzed, known: Any, borrow: bool, start: float) -> Made | None:
    """A factor by a cached analysis; None if the analysis is not compatible with the values of `A`, or fails.

    A borrowed factor has the right threshold: calls that borrow cannot set one, so all have the same.
    """
    canonical = canonical_values(symbolic.parts()[0], A)
    left = known.take() if borrow and symbolic is known.value else None
    try:
        if left is not None:
            left.refactor(canonical)
        elif not is_compatible(symbolic, canonical):
            phases.dropped(known.call, INCOMPATIBLE)
            return None
        again = symbolic.again(known.call, perf_counter() - start, options)
        phases.reused(again)
        made = factor_values(again, canonical) if left is None else Made(again, left, canonical.dtype, True)
        on_host = not registry.named(again.engine).capabilities.on_device
        return made._replace(on_host=on_host, known=known)
    except RuntimeError as error:
        phases.dropped(known.call, str(error))
        return None


def canonical_values(problem: Problem, A: Any) -> np.ndarray:
    """The values of `A` on the problem's pattern, checked."""
    canonical = problem.pattern.gather(matrix.values_on(problem.pattern, A))
    matrix.check_finite(problem.pattern, canonical)
    if problem.kind != "lu":
        matrix.check_symmetry(problem.pattern, canonical, problem.kind, problem.options.hermitian)
    return canonical


def read(A: Any, request: Request) -> tuple[Any, Request]:
    """The matrix on the host, square and in a format with indices."""
    if type(A) in COLUMNS and A.dtype in matrix.FLOATS:
        n_rows, n_columns = A.shape
        if n_rows == n_columns:
            return A, request
    if matrix.is_on_device(A):
        request = request._replace(on_device=True)
    return matrix.read_matrix(matrix.to_host(A)), request


def analyze(A: Any, request: Request, kind: str, options: ReadOptions) -> tuple[Analyzed, np.ndarray]:
    """Canonicalize, check and analyse without the pattern cache; the analysis and the canonical values."""
    start = perf_counter()
    A, request = read(A, request)
    return analyzed(A, request, kind, options_for(options, A), start)


def analyzed(
    A: Any, request: Request, kind: str, options: Options, start: float, indices: Any = None, to_factor: bool = False
) -> tuple[Analyzed, np.ndarray]:
    """A new analysis of a matrix from `read`, and its canonical values; `to_factor`: the caller factors them next."""
    pattern, canonical = checked_pattern(A, kind, options, indices)
    if request.engine == AUTO:
        request = without_small(request, pattern.nnz)
    problem = Problem(pattern, canonical, kind, options, request)
    problem.seconds["canonicalize"] = perf_counter() - start
    phases.canonicalized(problem)
    if to_factor:
        start_background_analysis(problem)
    symbolic = analyze_problem(problem)
    phases.analyzed(symbolic)
    return symbolic, canonical


def checked_pattern(A: Any, kind: str, options: Options, indices: Any = None) -> tuple[matrix.Pattern, np.ndarray]:
    """Canonical pattern and values of a matrix from `read`, with both triangles for kinds that need them."""
    pattern, data = matrix.canonicalize(A, indices)
    canonical = pattern.gather(data)
    matrix.check_finite(pattern, canonical)
    if kind == "lu":
        return pattern, canonical
    both = matrix.both_triangles(pattern, data, kind, options.hermitian)
    return both, canonical if both is pattern else both.gather(data)


def analysis_for_batch(A: Any, request: Request, kind: str, options: ReadOptions) -> Analyzed:
    """The cached analysis of a pattern if its matching is compatible with the values of `A`, else a new one."""
    start = perf_counter()
    A, request = read(A, request)
    chosen = options_for(options, A)
    key = patterns.pattern_key_of(A, kind, chosen, request)
    known: Any = patterns.STORE.find(*key) if key else None
    if known is not None and is_compatible(known.value, canonical_values(known.value.parts()[0], A)):
        found: Analyzed = known.value.again(known.call, perf_counter() - start, chosen)
        phases.reused(found)
        return found
    if known is not None:
        phases.dropped(known.call, INCOMPATIBLE)
    symbolic, _ = analyzed(A, request, kind, chosen, start, (key.first, key.second) if key else None)
    if key:
        patterns.keep(key, symbolic)
    return symbolic


def is_compatible(symbolic: Analyzed, canonical: np.ndarray) -> bool:
    """Whether a cached analysis is valid for these canonical values."""
    problem, analysis = symbolic.parts()
    core, options = analysis.core, problem.options
    if core.structural_rank < problem.n:  # possible after a batch with zeros in its first matrix
        return False
    by_sizes = core.row_scale.size > 0 or (core.ordering == "natural" and options.ordering != "natural")
    return not by_sizes or _core.analysis_is_compatible(core, problem.pattern.core, canonical, options.symmetric)


def within_memory(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `work`; if memory is short, the pattern cache is cleared and `work` called again."""
    try:
        return work(*arguments)
    except MemoryError:
        if not patterns.drop():
            raise
    phases.short_of_memory()
    return work(*arguments)
