"""scipy.sparse.linalg with gpusplu's splu, factorized, spsolve, cholesky and ldlt; the rest is SciPy's."""

from __future__ import annotations

from functools import partial
from typing import Any

from .common import matrix
from .common.arrays import PLAIN, takes_arrays
from .common.options import cholesky_options
from .common.progress import seen
from .common.scipy_names import umfpack_is_demanded
from .cost.model import REFACTORIZATIONS
from .dispatch.selection import read_request
from .factors.analysis import analyze as analyze
from .factors.analysis import explain as explain
from .factors.cholesky import CholeskyFactor, factor_cholesky
from .factors.ldl import ldlt as ldlt
from .factors.lu import LUFactor, factor_lu
from .factors.solving import spsolve as spsolve
from .typing import Engine, Ordering, PermcSpec, Pivoting, Precision, Progress, Refine, Solve, Verbose


@takes_arrays
def splu(
    A: Any,
    permc_spec: PermcSpec | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Ordering = "auto",
    pivoting: Pivoting = "auto",
    refine: Refine = "auto",
    precision: Precision = "double",
    deterministic: bool = False,
    verbose: Verbose = 0,
    progress: Progress = None,
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
        the diagonal is trusted and matching turned off. A larger value applies with ``pivoting="partial"``, which seeks
        pivots by columns as SuperLU does; 1 and more is SuperLU's default. Otherwise gpusplu chooses the pivots.
    relax, panel_size : int, optional
        As in SuperLU; no effect.
    options : dict, optional
        As in SuperLU; ColPerm, DiagPivotThresh, SymmetricMode and IterRefine are used, the others have no effect.
        gpusplu adds ``{"symbolic": "device"}``: sflu computes the pattern of L + U on the device.
    engine : {"auto", "cpu", "glu", "sflu", "crisscross", "supernodal"}, optional
        A named engine raises if it is unavailable.
    device : int, cupy.cuda.Device, list of these or {"all", "cpu"}, optional
        Device of a GPU engine, by default CuPy's current device. With a device, "auto" uses the GPU; "cpu" selects the
        processor. Several devices, or "all", share the work of the supernodal engine.
    device_memory : int, optional
        Memory of each device that may be used [bytes]; by default the free memory. A supernodal factor on a single
        device that needs more is streamed through it, with the same bits.
    expected_refactors : float, optional
        Expected number of refactorizations and solves with the factor. With few of them the time of the analysis
        matters, with many the time of the rest. Engine, method and ordering are chosen by it unless the caller sets
        them.
    ordering : {"auto", "amd", "nd", "natural"} or permutation, optional
        A permutation is the column order, gather.
    pivoting : {"auto", "static", "partial"}, optional
        "static" keeps the analysed pivot order while the results are finite, "partial" is threshold partial pivoting
        from the start, "auto" selects a method that is accurate.
    refine : {"auto", "always", "never"}, optional
        Iterative refinement in solve.
    precision : {"double", "mixed", "auto"}, optional
        Precision of the factor of a matrix in double precision. "mixed" makes a factor in single precision, with half
        the memory, and refines solutions to double precision; if refinement fails, the factor is made in double
        precision. "auto" means "mixed" on devices with slow double precision, or if device memory is insufficient.
    deterministic : bool, optional
        The same calls give the same bits, regardless of earlier calls: no cached analysis is used, and a factor
        does not migrate to another engine.
    verbose : {0, 1, 2}, optional
        1 prints one line per phase with measured and predicted time, choices, and repairs; 2 also one line for every
        refactorization and solve. The logger "gpusplu" gets the same lines, at levels INFO and DEBUG.
    progress : bool or callable, optional
        Whether to show a bar on standard error, or a function that is called as ``progress(phase, done, total)`` during
        this call and later refactorizations and solves by the factor; an exception from it stops them. By default
        terminals show a bar in calls of more than two seconds.

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
        The named engine is unavailable.
    DeviceMemoryError
        The factor does not fit into the memory of the device.

    Warns
    -----
    SparseEfficiencyWarning
        A is not in CSC format.

    See Also
    --------
    spsolve : one solve.
    cholesky, ldlt : half the work for Hermitian and symmetric matrices.
    splu_batch : many matrices with one pattern.
    analyze : only the analysis.

    Notes
    -----
    Rows are matched and scaled so that large entries lie on the diagonal [1]_. Matrices with little fill are then
    factored column by column [2]_, others by dense fronts up the elimination tree [3]_, and symmetric ones by LDL^T
    where that is predicted to be faster. The error bound of a factor determines how many of its solutions are checked;
    inaccurate solutions are refined, or solved with other pivots, before they are returned. If that does not help,
    there is a `RuntimeWarning`.

    References
    ----------
    .. [1] Duff, Koster, On algorithms for permuting large entries to the diagonal of a sparse matrix, SIAM J. Matrix
       Anal. Appl. 22, 2001
    .. [2] Gilbert, Peierls, Sparse partial pivoting in time proportional to arithmetic operations, SIAM J. Sci. Stat.
       Comput. 9, 1988
    .. [3] Liu, The multifrontal method for sparse matrix solution: theory and practice, SIAM Review 34, 1992

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> lu = gs.splu(A)
    >>> x = lu.solve(np.ones(100))
    >>> bool(abs(A @ x - 1).max() < 1e-13)
    True

    New values on the same pattern need no analysis:

    >>> lu.refactor(2 * A.data)
    >>> np.allclose(lu.solve(np.ones(100)), x / 2)
    True
    """
    request = read_request(engine, device, device_memory, expected_refactors, deterministic)
    if type(A) not in PLAIN:
        if matrix.is_on_device(A):
            request = request._replace(on_device=True)
        A = matrix.to_host(A)
    arguments = (permc_spec, diag_pivot_thresh, relax, panel_size, options, ordering, pivoting, refine, precision)
    return seen(factor_lu, verbose, progress)(A, arguments, request)


@takes_arrays
def factorized(A: Any, *, verbose: Verbose = 0, progress: Progress = None) -> Solve:
    """Return a function that solves ``A x = b``, with A factored beforehand.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
    verbose, progress : optional
        As in :func:`splu`.

    Returns
    -------
    solve : callable
        ``splu(A).solve``.

    See Also
    --------
    splu : a factor that takes new values, too.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> solve = gs.factorized(A)
    >>> x = solve(np.ones(100))
    >>> np.allclose(A @ x, 1)
    True
    """
    if umfpack_is_demanded():
        raise RuntimeError("Scikits.umfpack not installed.")
    return splu(A, verbose=verbose, progress=progress).solve


@takes_arrays
def cholesky(
    A: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Ordering = "auto",
    refine: Refine = "auto",
    precision: Precision = "double",
    deterministic: bool = False,
    verbose: Verbose = 0,
    progress: Progress = None,
) -> CholeskyFactor:
    """Factor a Hermitian positive definite matrix: ``A[perm][:, perm] = L L^H``.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Both triangles, or one of them. Any format; never modified.
    engine, device, device_memory, expected_refactors, ordering, refine, precision, deterministic, verbose, progress
        As in :func:`splu`.

    Returns
    -------
    CholeskyFactor

    Raises
    ------
    NotPositiveDefiniteError
        With the column, in A's numbering, where the factorization stopped.
    NotHermitianError
        Both triangles are stored and they differ.
    ValueError
        A is not square or not finite (`NonFiniteError`), or an option is unknown.
    EngineUnavailableError
        The named engine is unavailable.
    DeviceMemoryError
        The factor does not fit into the memory of the device.

    See Also
    --------
    ldlt : indefinite matrices.
    cholesky_batch : many matrices with one pattern.

    Notes
    -----
    Fronts are factored up the elimination tree [1]_; on a device they are batched by level and large ones are cut
    into tiles, after [2]_. A pivot that is not positive ends the factorization: nothing is perturbed.

    References
    ----------
    .. [1] Liu, The multifrontal method for sparse matrix solution: theory and practice, SIAM Review 34, 1992
    .. [2] Rennich, Stosic, Davis, Accelerating sparse Cholesky factorization on GPUs, Parallel Computing 59, 2016

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> factor = gs.cholesky(A)
    >>> np.allclose(A @ factor(np.ones(100)), 1)
    True
    >>> L, perm = factor.L, factor.perm
    >>> abs(A[perm][:, perm] - L @ L.T).max() < 1e-14
    np.True_
    """
    request = read_request(engine, device, device_memory, expected_refactors, deterministic)
    options = partial(cholesky_options, ordering=ordering, refine=refine, precision=precision)
    return seen(factor_cholesky, verbose, progress)(A, options, request)


def __getattr__(name: str) -> Any:
    import scipy.sparse.linalg

    if name == "__all__":
        return __dir__()
    try:
        return getattr(scipy.sparse.linalg, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has scipy.sparse.linalg") from None


def __dir__() -> list[str]:
    """gpusplu's functions and the public names of SciPy's module."""
    import scipy.sparse.linalg

    public = (name for name in dir(scipy.sparse.linalg) if not name.startswith("_"))
    return sorted({*public, "analyze", "cholesky", "explain", "factorized", "ldlt", "splu", "spsolve"})
