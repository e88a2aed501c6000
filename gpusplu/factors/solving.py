"""spsolve: solves without a factor that the caller keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Unpack, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..common import matrix
from ..common.arrays import FOREIGN, ForeignColumns, ForeignEntries, takes_arrays
from ..common.options import DEFAULTS
from ..common.progress import seen
from ..common.rhs import check_rhs
from ..common.scipy_names import umfpack_is_demanded, warn
from ..dispatch import device_patterns as device_pattern_cache
from ..dispatch import patterns
from ..dispatch.selection import AUTO, automatic
from ..engines.problem import Request
from ..errors import is_singular
from ..typing import ArrayT, PermcSpec, Progress, Verbose, Visible
from .lu import LUFactor, in_columns, made_lu

#: SciPy's own classes, not subclasses of them.
COMPRESSED = frozenset((sp.csc_array, sp.csc_matrix, sp.csr_array, sp.csr_matrix))
# Columns of a sparse right-hand side that are solved at a time.
SPARSE_BLOCK = 32


@overload
def spsolve(
    A: Any, b: NDArray[Any], permc_spec: PermcSpec | None = None, use_umfpack: bool = True, **visible: Unpack[Visible]
) -> NDArray[Any]: ...
@overload
def spsolve(
    A: Any, b: ArrayT, permc_spec: PermcSpec | None = None, use_umfpack: bool = True, **visible: Unpack[Visible]
) -> ArrayT: ...
@overload
def spsolve(
    A: Any, b: Any, permc_spec: PermcSpec | None = None, use_umfpack: bool = True, **visible: Unpack[Visible]
) -> Any: ...
@takes_arrays
def spsolve(
    A: Any,
    b: Any,
    permc_spec: PermcSpec | None = None,
    use_umfpack: bool = True,
    *,
    verbose: Verbose = 0,
    progress: Progress = None,
) -> Any:
    """Solve ``A x = b``.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
    b : array_like or sparse, shape (n,), (n, 1) or (n, k)
    permc_spec : optional
        As in :func:`splu`.
    use_umfpack : bool, optional
        As in SciPy; UMFPACK is never used.
    verbose, progress : optional
        As in :func:`splu`.

    Returns
    -------
    x : ndarray or sparse
        Shape (n,) where `b` is one column, else the shape of `b`; sparse, in A's class, where `b` is and has not
        exactly one column. On the device if `A` or `b` is.

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

    See Also
    --------
    splu, cholesky, ldlt : factors, for more than one solve.

    Examples
    --------
    >>> A = sp.csc_array([[4.0, 1.0], [1.0, 3.0]])
    >>> gs.spsolve(A, np.array([1.0, 2.0])).round(3)
    array([0.091, 0.636])
    """
    if not verbose and progress is None and is_plain(A, b, use_umfpack):
        return solve_dense(A, b, permc_spec)
    if matrix.is_compressed_on_device(A) and fits_on_device(A, b, use_umfpack):
        x = seen(solve_dense, verbose, progress)(A, b.astype(A.dtype, copy=False), permc_spec)
        return x.ravel() if one_column(b) else x
    if matrix.is_cupy(A) or matrix.is_cupy(b):
        host = matrix.to_host(A), matrix.to_host(b)
        return matrix.to_device(spsolve(*host, permc_spec, use_umfpack, verbose=verbose, progress=progress))
    restore = type(b).from_scipy_sparse if matrix.is_pydata(b) else None
    A, b = matrix.to_host(A), matrix.to_host(b)
    if isinstance(A, ForeignEntries):
        A = ForeignColumns(A)
    if not (sp.issparse(A) and A.format in ("csc", "csr")):
        A = sp.csc_array(A)
        warn("spsolve requires A be CSC or CSR matrix format", sp.SparseEfficiencyWarning)
    if not sp.issparse(b):
        if hasattr(b, "__dlpack__") and not hasattr(b, "__array__"):
            raise TypeError(f"b must be an array, not {type(b).__name__}; pass numpy.from_dlpack of it")
        b = np.asarray(b)
    single = one_column(b)
    A, b = promote(A, b)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {A.shape})")
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({A.shape} - {b.shape[0]})")
    if single and use_umfpack and umfpack_is_demanded():
        raise RuntimeError("Scikits.umfpack not installed.")
    many_sparse = sp.issparse(b) and not single
    if A.dtype not in matrix.FLOATS:
        if many_sparse:
            matrix.float_dtype(in_columns(A).dtype)  # raises
        raise TypeError("nzvals is not of a type supported by SuperLU")
    if many_sparse:
        x = seen(solve_sparse, verbose, progress)(A, b)
        return restore(x) if restore else x
    if sp.issparse(b):
        b = b.toarray()
    x = seen(solve_dense, verbose, progress)(A, b, permc_spec)
    return x.ravel() if single else x


def is_plain(A: Any, b: Any, use_umfpack: bool) -> bool:
    """Whether the arguments need no conversion before the solve, as in most calls."""
    return (
        type(A) in COMPRESSED
        and type(b) is np.ndarray
        and b.ndim == 1
        and b.dtype in matrix.FLOATS
        and A.dtype == b.dtype
        and A.shape == (b.size, b.size)
        and not (use_umfpack and umfpack_is_demanded())
    )


def fits_on_device(A: Any, b: Any, use_umfpack: bool) -> bool:
    """Whether a matrix on a device and right-hand sides need no conversion except a cast of `b`."""
    return (
        A.dtype in matrix.FLOATS
        and A.shape[0] == A.shape[1]
        and matrix.is_cupy_array(b)
        and b.ndim in (1, 2)
        and b.shape[0] == A.shape[0]
        and b.size > 0
        and np.promote_types(A.dtype, b.dtype) == A.dtype
        and not (use_umfpack and one_column(b) and umfpack_is_demanded())
    )


def one_column(b: Any) -> bool:
    return bool(b.ndim == 1 or (b.ndim == 2 and b.shape[1] == 1))


def promote(A: Any, b: Any) -> tuple[Any, Any]:
    """Bring A and b to their common floating-point dtype; the data of A, not its structure, is copied if need be."""
    dtype = np.promote_types(matrix.float_dtype(A.dtype), b.dtype)
    if A.dtype != dtype:
        if not A.has_canonical_format:  # duplicates are added in their own type
            A = A.copy()
            A.sum_duplicates()
        A = A.astype(dtype)
    return A, b if b.dtype == dtype else b.astype(dtype)


def solve_dense(A: Any, b: Any, permc_spec: Any) -> Any:
    """One solve; NaN and a MatrixRankWarning if A is singular. Both are on the host, or both on a device."""
    request = automatic()
    if matrix.is_cupy(A):
        request = request._replace(on_device=True)
    try:
        return solve_stored(A, b, permc_spec, request)
    except RuntimeError as error:
        if not is_singular(error):
            raise
    from scipy.sparse.linalg import MatrixRankWarning

    check_rhs(b, A.shape[0])
    warn("Matrix is exactly singular", MatrixRankWarning)
    x = np.full(b.shape, np.nan, dtype=b.dtype, order="F")
    return matrix.to_device(x) if matrix.is_cupy(b) else x


def solve_stored(A: Any, b: Any, permc_spec: Any, request: Request) -> Any:
    """One solve with `b` on the host or a device. CSR is factored as the CSC of its transpose.

    A matrix on a device is CSC or CSR. Its values stay on the device once its factor is there.
    """
    transposed, is_on_device = A.format == "csr", matrix.is_cupy(A)

    def solve(lu: LUFactor) -> Any:
        x = lu.solve(b, "T" if transposed else "N")
        if (
            is_on_device
            and lu.symbolic.call
            and lu._device_array is not None
            and type(columns) is not device_pattern_cache.DeviceColumns
        ):
            device_pattern_cache.learn(A, columns)
        return x

    columns: Any
    if is_on_device:
        columns = device_pattern_cache.columns_of(A)
    elif transposed:
        columns = matrix.Columns(A.shape[0], A.data, A.indices, A.indptr)
    else:
        columns = A.tocsc()
    return solve_borrowed(in_columns(columns), (permc_spec, *DEFAULTS[1:]), for_one_use(request), solve)


def solve_borrowed(A: Any, arguments: tuple[Any, ...], request: Request, solve: Callable[[LUFactor], Any]) -> Any:
    """``solve(splu(A))`` with a hidden factor, which the next matrix of the pattern may borrow."""
    lu, known = None, None
    try:
        made = made_lu(A, arguments, request, borrow=True)
        lu, known = LUFactor(made), made.known
        x = solve(lu)
    except RuntimeError:
        if type(A) is not device_pattern_cache.DeviceColumns or A.was_fetched:
            raise
        if known is not None and lu is not None:
            patterns.give(known, lu._core)  # it holds the previous values
        patterns.STORE.retract_hit()
        return solve_borrowed(A.on_host(), arguments, request, solve)  # repairs the factor or reports the error
    if known is not None:
        patterns.give(known, lu._core)
    return x


def factor_to_borrow(A: Any, request: Request) -> tuple[LUFactor, Callable[[LUFactor], None] | None]:
    """``splu(A)`` for callers that hide the factor, and a function that returns it to the pattern cache, or None."""
    made = made_lu(A, DEFAULTS, request, borrow=True)
    known = made.known

    def give(lu: LUFactor) -> None:
        patterns.give(known, lu._core)

    return LUFactor(made), None if known is None else give


def solve_sparse(A: Any, b: Any) -> Any:
    """Sparse right-hand sides, some columns at a time; the result has A's class."""

    def solve(lu: LUFactor) -> Any:
        if b.format != "csc" and not isinstance(b, FOREIGN):
            warn("spsolve is more efficient when sparse b is in the CSC matrix format", sp.SparseEfficiencyWarning)
        columns = sp.csc_array(b)
        blocks = []
        for first in range(0, b.shape[1], SPARSE_BLOCK):
            x = lu.solve(columns[:, first : first + SPARSE_BLOCK].toarray(order="F"))
            blocks.append(sp.csc_array(x))
        return sp.hstack(blocks, format="csc") if blocks else sp.csc_array(b.shape, dtype=A.dtype)

    return type(A)(solve_borrowed(in_columns(A), DEFAULTS, for_one_use(automatic()), solve))


@cache
def for_one_use(request: Request) -> Request:
    """``engine="auto"`` for a factor that is used once."""
    return request._replace(refactorizations=1) if request.engine == AUTO else request
