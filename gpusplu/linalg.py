"""scipy.sparse.linalg with our direct solvers: splu, factorized, spsolve, cholesky and ldlt; the rest is SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import matrix
from ._scipy import umfpack_is_demanded, warn
from .arrays import LENT, LentColumns, LentEntries, takes_arrays
from .cost.model import REFACTORIZATIONS
from .factor import CholeskyFactor, LUFactor
from .indefinite import ldlt as ldlt
from .indefinite import options_of_ldlt
from .options import Options, cholesky_options, kind_of, lu_options
from .pipeline import DEFAULTS, factor_cholesky, factor_lu, prepare, prepare_schur, read, solve_once
from .problem import Request
from .report import explain_matrix
from .rhs import check_rhs
from .selection.request import AUTO, automatic, read_request

# Columns of a sparse right-hand side that are solved at a time.
SPARSE_BLOCK = 32


@takes_arrays
def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
    *,
    engine: str = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Any = "auto",
    pivoting: str = "auto",
    refine: str = "auto",
    precision: str = "double",
    deterministic: bool = False,
) -> LUFactor:
    """Factor a square sparse matrix: ``Pr A Pc = L U``.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Any format; never modified.
    permc_spec : {"NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD"}, optional
        "NATURAL" keeps the columns in order; the others leave the choice to `ordering`.
    diag_pivot_thresh : float, optional
        A diagonal entry is an acceptable pivot if it is at least this fraction of the largest of its column. Up to 0.1
        the diagonal is trusted and matching turned off. A larger one holds where pivots are sought by columns, as
        SuperLU does it, with ``pivoting="partial"``; 1 and more is SuperLU's default. Either leaves pivots to us
        otherwise.
    relax, panel_size : int, optional
        SuperLU's; no effect.
    options : dict, optional
        SuperLU's; ColPerm, DiagPivotThresh, SymmetricMode and IterRefine count, the others have no effect. Ours is
        ``{"symbolic": "device"}``: sflu finds the pattern of L + U on the device.
    engine : {"auto", "cpu", "glu", "sflu", "crisscross", "supernodal"}, optional
        One asked for by name runs or raises.
    device : int or cupy.cuda.Device, optional
        For a GPU engine; CuPy's current one unless given. Given, "auto" takes the GPU; "cpu" keeps to the processor.
    device_memory : int, optional
        Device memory that may be used [bytes]; what is free unless given. A supernodal factor that needs more streams
        through it, with the same bits.
    expected_refactors : float, optional
        How often the factor will be refactored and solved with: few of them make the analysis count, many the rest.
        Engine, method and ordering are chosen by it where the caller leaves them open.
    ordering : {"auto", "amd", "nd", "natural"} or permutation, optional
        A permutation is the column order, gather.
    pivoting : {"auto", "static", "partial"}, optional
        "static" keeps the analysed pivot order as long as it gives numbers, "partial" is threshold partial pivoting
        from the start, "auto" is whatever is certified to be accurate.
    refine : {"auto", "always", "never"}, optional
        Iterative refinement in solve.
    precision : {"double", "mixed", "auto"}, optional
        Of the factor of a matrix in double precision. "mixed" is a factor in single precision, of half the memory,
        whose answers are refined to double precision; where they cannot be, the factor is made in double precision
        after all. "auto" is that on devices whose double precision is slow, or memory short.
    deterministic : bool, optional
        The same calls give the same bits, whatever the process did before: no remembered analysis is used, and a factor
        does not move to another engine.

    Returns
    -------
    LUFactor

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    ValueError
        A is not square, not finite (`NonFiniteError`), or an option is unknown.
    EngineUnavailableError
        The engine asked for cannot run here.
    DeviceMemoryError
        The factor does not fit into the memory of the device.

    Warns
    -----
    SparseEfficiencyWarning
        A is not in CSC format.
    """
    request = read_request(engine, device, device_memory, expected_refactors, deterministic)
    if matrix.is_on_device(A):
        request = request._replace(on_device=True)
    arguments = (permc_spec, diag_pivot_thresh, relax, panel_size, options, ordering, pivoting, refine, precision)
    return factor_lu(matrix.to_host(A), arguments, request)


@takes_arrays
def factorized(A: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that solves ``A x = b``, with A factored beforehand.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)

    Returns
    -------
    solve : callable
        ``splu(A).solve``.
    """
    if umfpack_is_demanded():
        raise RuntimeError("Scikits.umfpack not installed.")
    return splu(A).solve


@takes_arrays
def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Solve ``A x = b``.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
    b : array_like or sparse, shape (n,), (n, 1) or (n, k)
    permc_spec : optional
        As in :func:`splu`.
    use_umfpack : bool, optional
        SciPy's; UMFPACK is never used.

    Returns
    -------
    x : ndarray or sparse
        Shape (n,) where `b` is one column, else the shape of `b`; sparse, in A's class, where `b` is and has not
        exactly one column.

    Raises
    ------
    ValueError
        Shapes do not fit, or A is not finite (`NonFiniteError`).

    Warns
    -----
    MatrixRankWarning
        A is singular; `x` is NaN.
    SparseEfficiencyWarning
        A is neither CSC nor CSR, or a sparse `b` is not CSC.
    """
    if matrix.is_cupy(A) or matrix.is_cupy(b):
        return matrix.to_device(spsolve(matrix.to_host(A), matrix.to_host(b), permc_spec, use_umfpack))
    restore = type(b).from_scipy_sparse if matrix.is_pydata(b) else None
    A, b = matrix.to_host(A), matrix.to_host(b)
    if isinstance(A, LentEntries):
        A = LentColumns(A)
    if not (sp.issparse(A) and A.format in ("csc", "csr")):
        A = sp.csc_array(A)
        warn("spsolve requires A be CSC or CSR matrix format", sp.SparseEfficiencyWarning)
    if not sp.issparse(b):
        b = np.asarray(b)
    one_column = b.ndim == 1 or (b.ndim == 2 and b.shape[1] == 1)
    A, b = promote(A, b)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({A.shape} - {b.shape[0]})")
    if one_column and use_umfpack and umfpack_is_demanded():
        raise RuntimeError("Scikits.umfpack not installed.")
    if sp.issparse(b) and not one_column:
        x = solve_sparse(A, b)
        return restore(x) if restore else x
    if sp.issparse(b):
        b = b.toarray()
    x = solve_dense(A, b, permc_spec)
    return x.ravel() if one_column else x


@takes_arrays
def cholesky(
    A: Any,
    *,
    engine: str = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Any = "auto",
    refine: str = "auto",
    precision: str = "double",
    deterministic: bool = False,
) -> CholeskyFactor:
    """Factor a Hermitian positive definite matrix: ``A[perm][:, perm] = L L^H``.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Both triangles, or one of them. Any format; never modified.
    engine, device, device_memory, expected_refactors, ordering, refine, precision, deterministic : optional
        As in :func:`splu`.

    Returns
    -------
    CholeskyFactor

    Raises
    ------
    NotPositiveDefiniteError
        With the column, in A's numbering, where the factorization stopped.
    NotHermitianError
        Both triangles are there and they differ.
    ValueError
        A is not square or not finite (`NonFiniteError`), or an option is unknown.
    EngineUnavailableError
        The engine asked for cannot run here.
    DeviceMemoryError
        The factor does not fit into the memory of the device.
    """
    request = read_request(engine, device, device_memory, expected_refactors, deterministic)
    return factor_cholesky(A, request, lambda n: cholesky_options(n, ordering, refine, precision))


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


def promote(A: Any, b: Any) -> tuple[Any, Any]:
    """Bring A and b to their common floating-point dtype; the data of A, not its structure, is copied if need be."""
    dtype = np.promote_types(matrix.float_dtype(A.dtype), b.dtype)
    if A.dtype != dtype:
        A = A.astype(dtype)
    if dtype not in matrix.FLOATS:
        raise TypeError("nzvals is not of a type supported by SuperLU")
    return A, b if b.dtype == dtype else b.astype(dtype)


def solve_dense(A: Any, b: np.ndarray, permc_spec: Any) -> np.ndarray:
    """One solve; NaN and a MatrixRankWarning if A is singular."""
    try:
        x: np.ndarray = solve_stored(A, b, permc_spec, automatic())
    except RuntimeError as error:
        if not is_singular(error):
            raise
        check_rhs(b, A.shape[0])
        warn("Matrix is exactly singular", matrix_rank_warning())
        return np.full(b.shape, np.nan, dtype=b.dtype, order="F")
    return x


def solve_stored(A: Any, b: Any, permc_spec: Any, request: Request) -> Any:
    """One solve, wherever `b` is. CSR is factored as the CSC of its transpose."""
    transposed = A.format == "csr"

    def solve(lu: LUFactor) -> Any:
        return lu.solve(b, "T" if transposed else "N")

    columns = matrix.Columns(A.shape[0], A.data, A.indices, A.indptr) if transposed else A.tocsc()
    return solve_once(columns, (permc_spec, *DEFAULTS[1:]), for_one_use(request), solve)


def solve_sparse(A: Any, b: Any) -> Any:
    """Sparse right-hand sides, some columns at a time; the result has A's class."""

    def solve(lu: LUFactor) -> Any:
        if b.format != "csc" and not isinstance(b, LENT):
            warn("spsolve is more efficient when sparse b is in the CSC matrix format", sp.SparseEfficiencyWarning)
        columns = sp.csc_array(b)
        blocks = []
        for first in range(0, b.shape[1], SPARSE_BLOCK):
            x = lu.solve(columns[:, first : first + SPARSE_BLOCK].toarray(order="F"))
            blocks.append(sp.csc_array(x))
        return sp.hstack(blocks, format="csc") if blocks else sp.csc_array(b.shape, dtype=A.dtype)

    return type(A)(solve_once(A, DEFAULTS, for_one_use(automatic()), solve))


@cache
def for_one_use(request: Request) -> Request:
    """What ``engine="auto"`` means for a factor that nobody keeps."""
    return request._replace(refactorizations=1) if request.engine == AUTO else request


def is_singular(error: RuntimeError) -> bool:
    return str(error) == "Factor is exactly singular"


def matrix_rank_warning() -> type[Warning]:
    from scipy.sparse.linalg import MatrixRankWarning

    category: type[Warning] = MatrixRankWarning
    return category


def __getattr__(name: str) -> Any:
    import scipy.sparse.linalg

    try:
        return getattr(scipy.sparse.linalg, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has scipy.sparse.linalg") from None


def __dir__() -> list[str]:
    import scipy.sparse.linalg

    return sorted({*globals(), *dir(scipy.sparse.linalg)})
