"""From a matrix as callers have it to its analysis or its factor."""

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
registry.named(registry.DEFAULT)  # now: a child forked while another thread imports would wait for that for ever

Made = TypeVar("Made", bound=Factor)
Batch = TypeVar("Batch", bound=BatchedFactor)


def prepare(A: Any, request: Request, kind: str, options: Callable[[int], Options]) -> tuple[Symbolic, np.ndarray]:
    """Canonicalize, check and analyse, whatever is remembered: what analyze and explain share."""
    start = perf_counter()
    A, request = read(A, request)
    return analyzed(A, request, kind, options(A.shape[0]), start)


def analyze_lu(A: Any, request: Request) -> Symbolic:
    """Of any values for LU, with default options: where it can be, by one call of the engine."""
    if type(A) in COLUMNS:
        request = without_small(request, A.nnz) if request.engine == AUTO else request
        made = registry.named(request.engine).analyze_fused(A, request) if request.engine != AUTO else None
        if made is not None:
            return symbolic_of_fused(*made)
    return prepare(A, request, "lu", lambda n: OF_ANY_VALUES)[0]


def symbolic_of_fused(problem: Problem, analysis: Any, call: int = 0) -> Symbolic:
    """What an engine has analysed by one call, told to those who listen."""
    request = problem.request
    choice = Choice(request.engine, request.reason, request)
    symbolic: Symbolic = Symbolic(problem, choice, analysis, call, remembered=True)
    if log_enabled():
        phases.log_fused(symbolic)
    return symbolic


def prepare_schur(
    A: Any, request: Request, kind: str, options: Callable[[int], Options], indices: Any
) -> SchurSymbolic:
    """Canonicalize and check, and analyse what is left without the unknowns of `indices`."""
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
    """A new analysis of a matrix from `read`, and its canonical values; `to_factor`: they are factored at once."""
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
    """A factor by the analysis that is remembered of the pattern or by a new one, and what was remembered or None.

    With `borrow` nobody is going to see the factor: it may be one that was left to the pattern.
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
    """A factor of values on a device by one that was left there; None where there is none that takes them.

    Nobody waits for it: what is wrong with the values shows when it is used.
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
    """A factor by what a remembered analysis led to; None where that does not suit the values of `A`, or fails.

    What is left by calls whose factor nobody sees has the threshold of all such calls: they cannot say another.
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
    """The analysis that is remembered of a pattern, where its matching suits the values of `A`, or a new one."""
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
    """Whether an analysis was made by the sizes of values, too."""
    return bool(core.row_scale.size > 0 or (core.ordering == "natural" and options.ordering != "natural"))


def is_compatible(symbolic: Symbolic, A: Any) -> bool:
    """Whether a remembered analysis is one for the values of `A` too."""
    problem, analysis = symbolic.parts()
    if analysis.core.structural_rank < problem.n:  # as a batch may leave it, whose first matrix had zeros
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
    """What splu_batch and cholesky_batch do."""

    def work() -> Batch:
        return made(
            analysis_of(A, request, "cholesky" if made is BatchedCholeskyFactor else "lu", options), values, errors
        )

    batch: Batch = within_memory(work)
    return batch


def factor_lu(
    A: Any, arguments: tuple[Any, ...] = DEFAULTS, request: Request | None = None, kind: type[LUFactor] = LUFactor
) -> LUFactor:
    """What splu does; `arguments` are those of `lu_options` after the first."""
    factor: LUFactor = within_memory(factored_lu, in_columns(A), arguments, request or automatic(), kind)[0]
    return factor


def factor_cholesky(A: Any, request: Request, options: Callable[[int], Options]) -> CholeskyFactor:
    """What cholesky does."""
    factor: CholeskyFactor = within_memory(factored, A, request, options, CholeskyFactor, "cholesky")[0]
    return factor


def solve_single_use(A: Any, arguments: tuple[Any, ...], request: Request, solve: Callable[[LUFactor], Any]) -> Any:
    """``solve(splu(A))``, whose factor nobody else sees: its memory is left to the next matrix of the pattern."""
    return within_memory(solve_borrowed, in_columns(A), arguments, request, solve)


def within_memory(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `work`; where memory is short, remembered patterns are dropped and it is tried again."""
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
            patterns.give(known, lu)  # of the values before
        patterns.STORE.retract_hit()
        return solve_borrowed(A.on_host(), arguments, request, solve)  # which says what is wrong, or mends it
    if known is not None:
        patterns.give(known, lu)
    return x


def factor_to_borrow(A: Any, request: Request) -> tuple[LUFactor, Callable[[LUFactor], None] | None]:
    """``splu(A)`` for one who hides the factor, and what it is left to when he is done, if that is of use."""
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
    """`factored` for LU: where it can be, by one call of the engine."""
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
