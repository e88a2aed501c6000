"""From a caller's matrix to its analysis or its factor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import is_
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..common import matrix
from ..common.arrays import FOREIGN
from ..common.listeners import log_enabled
from ..common.options import DEFAULTS, OF_ANY_VALUES, Options, lu_options, without_usual
from ..common.scipy_names import warn
from ..dispatch import patterns, phases
from ..dispatch.background import start_background_analysis
from ..dispatch.device_patterns import DeviceColumns
from ..dispatch.migration import LEAST, resolved
from ..dispatch.request import AUTO, automatic, without_small
from ..dispatch.selection import Choice
from ..engines import registry
from ..engines.problem import Problem, Request
from ..typing import Errors
from .batch import BatchedCholeskyFactor, BatchedFactor
from .factor import CholeskyFactor, Factor, LUFactor
from .schur import SchurSymbolic
from .symbolic import Symbolic, analyze_problem

COLUMNS = frozenset((sp.csc_array, sp.csc_matrix))  # on the host
INCOMPATIBLE = "its matching does not suit these values"
registry.named(registry.DEFAULT)  # imported now: a child forked during an import in another thread would wait for ever

Made = TypeVar("Made", bound=Factor)
Batch = TypeVar("Batch", bound=BatchedFactor)


def prepare(A: Any, request: Request, kind: str, options: Callable[[int], Options]) -> tuple[Symbolic, np.ndarray]:
    """Canonicalize, check and analyse without the pattern cache; for analyze and explain."""
    start = perf_counter()
    A, request = read(A, request)
    return analyzed(A, request, kind, options(A.shape[0]), start)


def analyze_lu(A: Any, request: Request) -> Symbolic:
    """Analysis for LU of any values, with default options; by one call of the engine where possible."""
    if type(A) in COLUMNS:
        request = without_small(request, A.nnz) if request.engine == AUTO else request
        made = registry.named(request.engine).analyze_fused(A, request) if request.engine != AUTO else None
        if made is not None:
            return symbolic_of_fused(*made)
    return prepare(A, request, "lu", lambda n: OF_ANY_VALUES)[0]


def symbolic_of_fused(problem: Problem, analysis: Any, call: int = 0) -> Symbolic:
    """Wrap a fused analysis of an engine, and log it."""
    request = problem.request
    choice = Choice(request.engine, request.reason, request)
    symbolic: Symbolic = Symbolic(problem, choice, analysis, call, remembered=True)
    if log_enabled():
        phases.log_fused(symbolic)
    return symbolic


def prepare_schur(
    A: Any, request: Request, kind: str, options: Callable[[int], Options], indices: Any
) -> SchurSymbolic:
    """Canonicalize, check, and analyse the matrix without the unknowns of `indices`."""
    A, request = read(A, request)
    pattern, data = matrix.canonicalize(A)
    matrix.check_finite(pattern, pattern.gather(data))
    if kind != "lu":
        pattern = matrix.both_triangles(pattern, data, kind, options(pattern.n).hermitian)
    return SchurSymbolic(
        pattern, pattern.gather(data), indices, lambda inside: prepare(inside, request, kind, options)[0]
    )


def read(A: Any, request: Request) -> tuple[Any, Request]:
    """The matrix on the host, in a format with indices."""
    if matrix.is_on_device(A):
        request = request._replace(on_device=True)
    return matrix.read_matrix(matrix.to_host(A)), request


def analyzed(
    A: Any, request: Request, kind: str, options: Options, start: float, indices: Any = None, to_factor: bool = False
) -> tuple[Symbolic, np.ndarray]:
    """A new analysis of a matrix from `read`, and its canonical values; `to_factor`: the caller factors them next."""
    pattern, data = matrix.canonicalize(A, indices)
    matrix.check_finite(pattern, pattern.gather(data))
    if kind != "lu":
        pattern = matrix.both_triangles(pattern, data, kind, options.hermitian)
    canonical = pattern.gather(data)
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


def factored(
    A: Any,
    request: Request,
    options: Callable[[int], Options],
    made: type[Made],
    kind: str = "lu",
    borrow: bool = False,
) -> tuple[Made, Any]:
    """A factor by a cached or a new analysis of the pattern, and the entry of the pattern cache or None.

    With `borrow` the caller never sees the factor, so it may be one that the pattern cache holds.
    """
    start = perf_counter()
    A, request = read(A, request)
    chosen = options(A.shape[0])
    key = patterns.pattern_key_of(A, kind, chosen, request)
    known: Any = patterns.STORE.find(*key) if key else None
    if key and known is not None:
        symbolic = resolved(known.value)
        if symbolic is not known.value:
            patterns.keep(key, symbolic)
        factor = refactored_on_device(A, chosen, symbolic, known, made, start) if borrow else None
        factor = factor or factored_again(A, chosen, symbolic, known, made, borrow, start)
        if factor is not None:
            return factor, known
        patterns.STORE.miss()
    indices = (key.first, key.second) if key else None
    factor = made(*analyzed(A, request, kind, chosen, start, indices, to_factor=True))
    if key:
        patterns.keep(key, factor.symbolic)
    return factor, None


def refactored_on_device(
    A: Any, options: Options, symbolic: Symbolic, known: Any, kind: type[Made], start: float
) -> Made | None:
    """A factor of values on a device, refactored from a borrowed one; None if no compatible one is cached.

    The host does not wait for it: errors of the values are reported when it is used.
    """
    if type(A) is not DeviceColumns or symbolic is not known.value:
        return None
    on_same_device = registry.named(symbolic.engine).on_device and symbolic.choice.request.device == A.device
    left = known.take() if on_same_device else None
    if left is None:
        return None
    left.refactor(A.on_device)
    again = symbolic.again(known.call, perf_counter() - start, options)
    phases.reused(again)
    return kind(again, np.empty(0, A.dtype), left)


def factored_again(
    A: Any, options: Options, symbolic: Symbolic, known: Any, kind: type[Made], borrow: bool, start: float
) -> Made | None:
    """A factor by a cached analysis; None if the analysis is not compatible with the values of `A`, or fails.

    A borrowed factor has the right threshold: calls that borrow cannot set one, so all have the same.
    """
    problem, analysis = symbolic.parts()
    pattern = problem.pattern
    canonical = pattern.gather(matrix.values_on(pattern, A))
    matrix.check_finite(pattern, canonical)
    if problem.kind != "lu":
        matrix.check_symmetry(pattern, canonical, problem.kind, options.hermitian)
    matched = is_by_values(analysis.core, problem.options)
    left = known.take() if borrow and symbolic is known.value else None
    try:
        if left is not None:
            left.refactor(canonical)
        elif matched and not _core.analysis_is_compatible(analysis.core, pattern.core, canonical, options.symmetric):
            phases.dropped(known.call, INCOMPATIBLE)
            return None
        again = symbolic.again(known.call, perf_counter() - start, options)
        phases.reused(again)
        return kind(again, canonical, left)
    except RuntimeError as error:
        phases.dropped(known.call, str(error))
        return None


def analysis_of(A: Any, request: Request, kind: str, options: Callable[[int], Options]) -> Symbolic:
    """The cached analysis of a pattern if its matching is compatible with the values of `A`, else a new one."""
    start = perf_counter()
    A, request = read(A, request)
    chosen = options(A.shape[0])
    key = patterns.pattern_key_of(A, kind, chosen, request)
    known: Any = patterns.STORE.find(*key) if key else None
    if known is not None and is_compatible(known.value, A):
        found: Symbolic = known.value.again(known.call, perf_counter() - start, chosen)
        phases.reused(found)
        return found
    if known is not None:
        phases.dropped(known.call, INCOMPATIBLE)
    symbolic, _ = analyzed(A, request, kind, chosen, start, (key.first, key.second) if key else None)
    if key:
        patterns.keep(key, symbolic)
    return symbolic


def is_by_values(core: Any, options: Options) -> bool:
    """Whether an analysis depends on the sizes of values."""
    return bool(core.row_scale.size > 0 or (core.ordering == "natural" and options.ordering != "natural"))


def is_compatible(symbolic: Symbolic, A: Any) -> bool:
    """Whether a cached analysis is valid for the values of `A`."""
    problem, analysis = symbolic.parts()
    if analysis.core.structural_rank < problem.n:  # possible after a batch with zeros in its first matrix
        return False
    canonical = problem.pattern.gather(matrix.values_on(problem.pattern, A))
    matrix.check_finite(problem.pattern, canonical)
    if problem.kind != "lu":
        matrix.check_symmetry(problem.pattern, canonical, problem.kind, problem.options.hermitian)
    matched, any_values = is_by_values(analysis.core, problem.options), problem.options.symmetric
    return not matched or bool(_core.analysis_is_compatible(analysis.core, problem.pattern.core, canonical, any_values))


def factor_batch(
    A: Any, values: Any, request: Request, made: type[Batch], options: Callable[[int], Options], errors: Errors
) -> Batch:
    """Implementation of splu_batch and cholesky_batch."""

    def work() -> Batch:
        return made(
            analysis_of(A, request, "cholesky" if made is BatchedCholeskyFactor else "lu", options), values, errors
        )

    batch: Batch = within_memory(work)
    return batch


def factor_lu(
    A: Any, arguments: tuple[Any, ...] = DEFAULTS, request: Request | None = None, kind: type[LUFactor] = LUFactor
) -> LUFactor:
    """Implementation of splu; `arguments` are those of `lu_options` after the first."""
    factor: LUFactor = within_memory(factored_lu, in_columns(A), arguments, request or automatic(), kind)[0]
    return factor


def factor_cholesky(A: Any, request: Request, options: Callable[[int], Options]) -> CholeskyFactor:
    """Implementation of cholesky."""
    factor: CholeskyFactor = within_memory(factored, A, request, options, CholeskyFactor, "cholesky")[0]
    return factor


def solve_single_use(A: Any, arguments: tuple[Any, ...], request: Request, solve: Callable[[LUFactor], Any]) -> Any:
    """``solve(splu(A))`` with a hidden factor, which the next matrix of the pattern may borrow."""
    return within_memory(solve_borrowed, in_columns(A), arguments, request, solve)


def within_memory(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `work`; if memory is short, the pattern cache is cleared and `work` called again."""
    try:
        return work(*arguments)
    except MemoryError:
        if not patterns.drop():
            raise
    phases.short_of_memory()
    return work(*arguments)


def solve_borrowed(A: Any, arguments: tuple[Any, ...], request: Request, solve: Callable[[LUFactor], Any]) -> Any:
    lu, known = None, None
    try:
        lu, known = factored_lu(A, arguments, request, LUFactor, borrow=True)
        x = solve(lu)
    except RuntimeError:
        if type(A) is not DeviceColumns or A.was_fetched:
            raise
        if known is not None:
            patterns.give(known, lu)  # it holds the previous values
        patterns.STORE.retract_hit()
        return solve_borrowed(A.on_host(), arguments, request, solve)  # repairs the factor or reports the error
    if known is not None:
        patterns.give(known, lu)
    return x


def factor_to_borrow(A: Any, request: Request) -> tuple[LUFactor, Callable[[LUFactor], None] | None]:
    """``splu(A)`` for callers that hide the factor, and a function that returns it to the pattern cache, or None."""
    lu, known = within_memory(factored_lu, A, DEFAULTS, request, LUFactor, True)
    return lu, None if known is None else partial(patterns.give, known)


def in_columns(A: Any) -> Any:
    """`A` as a sparse matrix, with SciPy's warning where it is not CSC."""
    if type(A) in COLUMNS:
        return A
    if not (matrix.is_sparse(A) and A.format == "csc") and not isinstance(A, FOREIGN):
        if not sp.issparse(A) or A.ndim != 2:
            A = sp.csc_array(A)
        warn("splu converted its input to CSC format", sp.SparseEfficiencyWarning)
    return A


def factored_lu(
    A: Any, arguments: tuple[Any, ...], request: Request, kind: type[LUFactor], borrow: bool = False
) -> tuple[LUFactor, Any]:
    """`factored` for LU; by one call of the engine where possible."""
    if request.engine == AUTO:
        request = without_small(request, A.nnz)
    arguments = without_usual(arguments)
    may_move = request.may_migrate and A.nnz >= LEAST
    in_order = type(A) in COLUMNS or A.format == "csc"
    if request.engine != AUTO and in_order and not may_move and all(map(is_, arguments, DEFAULTS)):
        made = registry.named(request.engine).factor_fused(A, request, patterns.STORE, borrow)
        if made is not None:
            problem, analysis, factor, known = made
            return kind(symbolic_of_fused(problem, analysis, known.call if known else 0), A.data, factor), known
    return factored(A, request, lambda n: lu_options(n, *arguments), kind, borrow=borrow)
