"""analyze and explain: what is found about a matrix before it is factored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .arrays import takes_arrays
from .cost.model import REFACTORIZATIONS
from .indefinite import options_of_ldlt
from .options import Options, cholesky_options, kind_of, lu_options
from .pipeline import prepare, prepare_schur, read
from .report import explain_matrix
from .selection.request import read_request


def own_lu_options(
    n: int, ordering: Any = "auto", pivoting: str = "auto", refine: str = "auto", precision: str = "double"
) -> Options:
    """Of LU, where SciPy's arguments are not given."""
    return lu_options(n, None, None, None, None, None, ordering, pivoting, refine, precision)


@takes_arrays
def analyze(
    A: Any,
    *,
    cholesky: bool = False,
    ldlt: bool = False,
    engine: str = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Any = "auto",
    pivoting: str = "auto",
    refine: str = "auto",
    precision: str = "double",
    hermitian: bool | None = None,
    schur: Any = None,
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
        Unknowns to be left out, of which factors then have the Schur complement.

    Returns
    -------
    Symbolic, or SchurSymbolic with `schur`
    """
    request = read_request(engine, device, device_memory, expected_refactors)
    kind = kind_of(cholesky, ldlt)
    if ldlt:
        A, request = read(A, request._replace(movable=False))

    def options(n: int) -> Options:
        if cholesky:
            return cholesky_options(n, ordering, refine, precision)
        own = own_lu_options(n, ordering, pivoting, refine, precision)
        return replace(own, symmetric=False)  # for any values and batches

    chosen = options_of_ldlt(A, ordering, refine, hermitian, precision) if ldlt else options
    if schur is None:
        return prepare(A, request, kind, chosen)[0]
    return prepare_schur(A, request, kind, chosen, schur)


@takes_arrays
def explain(
    A: Any,
    *,
    cholesky: bool = False,
    ldlt: bool = False,
    engine: str = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Any = "auto",
) -> str:
    """What gpusplu finds about `A` and would choose for it, as a few lines of text; `A` is analysed, not factored.

    Parameters
    ----------
    A, cholesky, ldlt, engine, device, device_memory, expected_refactors, ordering
        As in :func:`analyze`; for neither of both kinds as in :func:`splu`.

    Returns
    -------
    str
        Traits of the matrix, the choice and its reason, and a table of the seconds predicted for each engine.
    """
    request, kind = read_request(engine, device, device_memory, expected_refactors), kind_of(cholesky, ldlt)
    if ldlt:
        A, request = read(A, request._replace(movable=False))

    def options(n: int) -> Options:
        return cholesky_options(n, ordering, "auto") if cholesky else own_lu_options(n, ordering)

    chosen = options_of_ldlt(A, ordering, "auto", None) if ldlt else options
    return explain_matrix(*prepare(A, request, kind, chosen))
