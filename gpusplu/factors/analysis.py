"""analyze and explain: analysis of a matrix before it is factored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never, TypeAlias, Unpack, overload

import numpy as np

from ..common.arrays import takes_arrays
from ..common.options import Options, cholesky_options, kind_of, own_lu_options
from ..common.progress import seen
from ..common.stats import Explanation
from ..cost.model import REFACTORIZATIONS
from ..dispatch import pipeline
from ..dispatch.pipeline import read
from ..dispatch.report import explain_matrix
from ..dispatch.selection import read_request
from ..engines.problem import Request
from ..typing import Engine, No, Ordering, Pivoting, Precision, Progress, Refine, Unknowns, Verbose, Visible, Yes
from .ldl import options_of_ldlt
from .schur import SchurSymbolic
from .symbolic import Symbolic, as_symbolic

if TYPE_CHECKING:
    from .batch import BatchedCholeskyFactor, BatchedLUFactor
    from .cholesky import CholeskyFactor
    from .ldl import LDLFactor
    from .lu import LUFactor


class HowToAnalyze(Visible, total=False):
    """Keywords of `analyze` that do not affect the type of its result."""

    engine: Engine
    device: Any
    device_memory: int | None
    expected_refactors: float
    ordering: Ordering
    pivoting: Pivoting
    refine: Refine
    precision: Precision
    hermitian: bool | None


LUSymbolic: TypeAlias = "Symbolic[LUFactor, BatchedLUFactor]"
CholeskySymbolic: TypeAlias = "Symbolic[CholeskyFactor, BatchedCholeskyFactor]"
LDLSymbolic: TypeAlias = "Symbolic[LDLFactor, Never]"  # has no batches


@overload
def analyze(
    A: Any, *, cholesky: No = False, ldlt: No = False, schur: None = None, **how: Unpack[HowToAnalyze]
) -> LUSymbolic: ...
@overload
def analyze(
    A: Any, *, cholesky: Yes, ldlt: No = False, schur: None = None, **how: Unpack[HowToAnalyze]
) -> CholeskySymbolic: ...
@overload
def analyze(
    A: Any, *, cholesky: No = False, ldlt: Yes, schur: None = None, **how: Unpack[HowToAnalyze]
) -> LDLSymbolic: ...
@overload
def analyze(
    A: Any, *, cholesky: No = False, ldlt: No = False, schur: Unknowns, **how: Unpack[HowToAnalyze]
) -> SchurSymbolic[LUFactor]: ...
@overload
def analyze(
    A: Any, *, cholesky: Yes, ldlt: No = False, schur: Unknowns, **how: Unpack[HowToAnalyze]
) -> SchurSymbolic[CholeskyFactor]: ...
@overload
def analyze(
    A: Any, *, cholesky: No = False, ldlt: Yes, schur: Unknowns, **how: Unpack[HowToAnalyze]
) -> SchurSymbolic[LDLFactor]: ...
@overload
def analyze(
    A: Any, *, cholesky: bool = False, ldlt: bool = False, schur: Any = None, **how: Unpack[HowToAnalyze]
) -> Any: ...
@takes_arrays
def analyze(
    A: Any,
    *,
    cholesky: bool = False,
    ldlt: bool = False,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Ordering = "auto",
    pivoting: Pivoting = "auto",
    refine: Refine = "auto",
    precision: Precision = "double",
    hermitian: bool | None = None,
    schur: Unknowns | None = None,
    verbose: Verbose = 0,
    progress: Progress = None,
) -> Any:
    """Analyse the pattern of `A` once; :meth:`Symbolic.factor` then factors any values on it.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Its values guide matching and scaling.
    cholesky : bool, optional
        A is Hermitian positive definite.
    ldlt : bool, optional
        A is Hermitian or symmetric, for factors like those of :func:`ldlt`.
    engine, device, device_memory, expected_refactors, ordering, pivoting, refine, precision : optional
        As in :func:`splu`.
    hermitian : bool, optional
        As in :func:`ldlt`.
    schur : array_like of int, or of bool with shape (n,), optional
        Unknowns of the interface, for which factors have the Schur complement.
    verbose, progress : optional
        As in :func:`splu`, for the analysis.

    Returns
    -------
    Symbolic, or SchurSymbolic with `schur`

    See Also
    --------
    explain : the findings as text.
    Symbolic, SchurSymbolic : the results.

    Notes
    -----
    Approximate minimum degree [1]_ and nested dissection [2]_ are both computed where either may be faster; gpusplu
    takes the one with less predicted time.

    References
    ----------
    .. [1] Amestoy, Davis, Duff, An approximate minimum degree ordering algorithm, SIAM J. Matrix Anal. Appl. 17, 1996
    .. [2] Karypis, Kumar, A fast and high quality multilevel scheme for partitioning irregular graphs, SIAM J. Sci.
       Comput. 20, 1998

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> symbolic = gs.analyze(A, cholesky=True)
    >>> symbolic  # doctest: +ELLIPSIS
    <Symbolic Cholesky of 100 x 100, 460 entries, ...>
    >>> factors = [symbolic.factor(scale * A.data) for scale in (1, 2)]
    >>> factors[0].logdet() < factors[1].logdet()
    True
    """
    request = read_request(engine, device, device_memory, expected_refactors)
    kind = kind_of(cholesky, ldlt)
    if ldlt:
        A, request = read(A, request._replace(may_migrate=False))

    def options(n: int) -> Options:
        if cholesky:
            return cholesky_options(n, ordering, refine, precision)
        own = own_lu_options(n, ordering, pivoting, refine, precision)
        return replace(own, symmetric=False)  # for any values and batches

    chosen = options_of_ldlt(A, ordering, refine, hermitian, precision) if ldlt else options
    if schur is None:
        return as_symbolic(seen(pipeline.analyze, verbose, progress)(A, request, kind, chosen)[0])
    return seen(prepare_schur, verbose, progress)(A, request, kind, chosen, schur)


@takes_arrays
def explain(
    A: Any,
    *,
    cholesky: bool = False,
    ldlt: bool = False,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Ordering = "auto",
) -> Explanation:
    """Properties of `A` and gpusplu's choices for it, as a few lines of text; `A` is analysed, not factored.

    Parameters
    ----------
    A, cholesky, ldlt, engine, device, device_memory, expected_refactors, ordering
        As in :func:`analyze`; for neither of both kinds as in :func:`splu`.

    Returns
    -------
    Explanation
        A str: traits of the matrix, the choice and its reason, and a table of the seconds predicted for each engine.

    See Also
    --------
    analyze : the analysis itself.
    LUFactor.explain : of a factor that was made.

    Examples
    --------
    >>> print(gs.explain(gs.gallery.poisson(10, 10), engine="cpu"))  # doctest: +ELLIPSIS
    matrix    100 x 100, 460 entries, float64
    density   0.046, 4.6 entries per column
    symmetry  100% of the off-diagonal entries have a partner across the diagonal; Hermitian, ...
    """
    request = read_request(engine, device, device_memory, expected_refactors)
    return explain_matrix(*analyzed_as(kind_of(cholesky, ldlt), A, request, ordering))


def analyzed_as(kind: str, A: Any, request: Request, ordering: Any) -> tuple[Symbolic[Any, Any], np.ndarray]:
    """The first analysis of a factorization of this kind, and canonical values."""
    if kind == "ldlt":
        A, request = read(A, request._replace(may_migrate=False))

    def options(n: int) -> Options:
        return cholesky_options(n, ordering, "auto") if kind == "cholesky" else own_lu_options(n, ordering)

    chosen = options_of_ldlt(A, ordering, "auto", None) if kind == "ldlt" else options
    symbolic, canonical = pipeline.analyze(A, request, kind, chosen)
    return as_symbolic(symbolic), canonical


def prepare_schur(A: Any, request: Request, kind: str, options: pipeline.ReadOptions, indices: Any) -> Any:
    """Canonicalize, check, and analyse the matrix without the unknowns of `indices`."""
    A, request = pipeline.read(A, request)

    def interior(inside: Any) -> Symbolic[Any, Any]:
        return as_symbolic(pipeline.analyze(inside, request, kind, options)[0])

    return SchurSymbolic(*pipeline.checked_pattern(A, kind, pipeline.options_for(options, A)), indices, interior)
