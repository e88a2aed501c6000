"""From a matrix as callers have it to its analysis or its factor."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import _core, matrix
from ._scipy import warn
from .dispatch.resolve import Choice, choose_engine, without_small
from .factor import LUFactor
from .options import Options, lu_options
from .symbolic import Symbolic, analyze_pattern

# What lu_options takes after the order of the matrix, where the caller says nothing.
DEFAULTS = (None, None, None, None, None, "auto", "auto", "auto")
DEFAULT_OPTIONS = Options()
# Of the machine's own byte order.
INDICES = (np.dtype(np.int32), np.dtype(np.int64))


def prepare(A: Any, choice: Choice, cholesky: bool, options: Callable[[int], Options]) -> tuple[Symbolic, np.ndarray]:
    """Canonicalize, check and analyse: the part that splu, cholesky, analyze and explain share."""
    start = perf_counter()
    if matrix.is_cupy(A):
        choice = choice._replace(on_device=True)
    pattern, data = matrix.canonicalize(matrix.read_matrix(matrix.to_host(A)))
    matrix.check_finite(pattern, pattern.gather(data))
    if cholesky:
        pattern = matrix.hermitian(pattern, data)
    canonical = pattern.gather(data)
    chosen = options(pattern.n)
    seconds = {"canonicalize": perf_counter() - start}
    choice = without_small(choice, pattern.nnz)
    return analyze_pattern(pattern, canonical, chosen, choice, cholesky, seconds), canonical


def factor_lu(
    A: Any, arguments: tuple[Any, ...] = DEFAULTS, choice: Choice | None = None, kind: type[LUFactor] = LUFactor
) -> LUFactor:
    """What splu does; `arguments` are those of `lu_options` after the first."""
    if not (sp.issparse(A) and A.format == "csc"):
        if not sp.issparse(A) or A.ndim != 2:
            A = sp.csc_array(A)
        warn("splu converted its input to CSC format", sp.SparseEfficiencyWarning)
    choice = choice or choose_engine("auto")
    if choice.engine == "auto":
        choice = without_small(choice, A.nnz)
    if choice.engine == "cpu" and all(map(is_, arguments, DEFAULTS)) and (lu := factor_at_once(A, choice, kind)):
        return lu
    symbolic, canonical = prepare(A, choice, False, lambda n: lu_options(n, *arguments))
    return kind(symbolic, canonical)


def factor_at_once(A: Any, choice: Choice, kind: type[LUFactor]) -> LUFactor | None:
    """By one call of the core: default options, and arrays that it takes as they are. None where that is not so."""
    n = A.shape[0]
    if A.format != "csc" or n != A.shape[1] or n >= 2**31:
        return None
    data, indices, indptr = A.data, A.indices, A.indptr
    if (
        data.dtype not in matrix.FLOATS
        or indices.dtype not in INDICES
        or indices.dtype != indptr.dtype
        or not data.ndim == indices.ndim == indptr.ndim == 1
        or not (data.flags.c_contiguous and indices.flags.c_contiguous and indptr.flags.c_contiguous)
    ):
        return None
    made = _core.splu(n, indptr, indices, data)
    if made is None:
        return None
    canonical, symbolic, core, *seconds = made
    pattern = matrix.Pattern(canonical)
    times = {"canonicalize": seconds[0], "analyze": seconds[1]}
    return kind(Symbolic(pattern, symbolic, DEFAULT_OPTIONS, choice, times), data, core)
