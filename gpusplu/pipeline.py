"""From a matrix as callers have it to its analysis or its factor."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import matrix
from ._scipy import warn
from .engines import registry
from .factor import LUFactor
from .options import Options, lu_options
from .problem import Problem, Request
from .selection.request import AUTO, automatic, without_small
from .selection.select import Choice
from .symbolic import Symbolic, analyze_problem

# What lu_options takes after the order of the matrix, where the caller says nothing.
DEFAULTS = (None, None, None, None, None, "auto", "auto", "auto")
DEFAULT_OPTIONS = Options()
registry.named(registry.DEFAULT)  # now: a child forked while another thread imports would wait for that for ever


def prepare(A: Any, request: Request, cholesky: bool, options: Callable[[int], Options]) -> tuple[Symbolic, np.ndarray]:
    """Canonicalize, check and analyse: the part that splu, cholesky, analyze and explain share."""
    start = perf_counter()
    if matrix.is_cupy(A):
        request = request._replace(on_device=True)
    pattern, data = matrix.canonicalize(matrix.read_matrix(matrix.to_host(A)))
    matrix.check_finite(pattern, pattern.gather(data))
    if cholesky:
        pattern = matrix.hermitian(pattern, data)
    canonical = pattern.gather(data)
    if request.engine == AUTO:
        request = without_small(request, pattern.nnz)
    problem = Problem(pattern, canonical, "cholesky" if cholesky else "lu", options(pattern.n), request)
    problem.seconds["canonicalize"] = perf_counter() - start
    return analyze_problem(problem), canonical


def factor_lu(
    A: Any, arguments: tuple[Any, ...] = DEFAULTS, request: Request | None = None, kind: type[LUFactor] = LUFactor
) -> LUFactor:
    """What splu does; `arguments` are those of `lu_options` after the first."""
    if not (sp.issparse(A) and A.format == "csc"):
        if not sp.issparse(A) or A.ndim != 2:
            A = sp.csc_array(A)
        warn("splu converted its input to CSC format", sp.SparseEfficiencyWarning)
    request = request or automatic()
    if request.engine == AUTO:
        request = without_small(request, A.nnz)
    if request.engine != AUTO and all(map(is_, arguments, DEFAULTS)) and (lu := factor_at_once(A, request, kind)):
        return lu
    symbolic, canonical = prepare(A, request, False, lambda n: lu_options(n, *arguments))
    return kind(symbolic, canonical)


def factor_at_once(A: Any, request: Request, kind: type[LUFactor]) -> LUFactor | None:
    """With default options by one call of the engine, where it has such. None where it cannot."""
    made = registry.named(request.engine).factor_at_once(A, request)
    if made is None:
        return None
    pattern, analysis, factor, seconds = made
    problem = Problem(pattern, A.data[:0], "lu", DEFAULT_OPTIONS, request)
    problem.seconds = seconds
    return kind(Symbolic(problem, Choice(request.engine, request.reason, request), analysis), A.data, factor)
