"""ldlt: factors of symmetric indefinite matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..common import matrix
from ..common.options import Options, ldlt_options
from ..common.progress import seen
from ..cost.model import REFACTORIZATIONS
from ..dispatch.request import read_request
from ..typing import Engine, Ordering, Precision, Progress, Refine, Verbose
from .ldl_factor import LDLFactor
from .pipeline import factored, read, within_memory


def ldlt(
    A: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    expected_refactors: float = REFACTORIZATIONS,
    ordering: Ordering = "auto",
    refine: Refine = "auto",
    hermitian: bool | None = None,
    precision: Precision = "double",
    deterministic: bool = False,
    verbose: Verbose = 0,
    progress: Progress = None,
) -> LDLFactor:
    """Factor a Hermitian or symmetric matrix, definite or not: ``A[perm][:, perm] = L D L^H``.

    Half of the work and of the memory of :func:`splu`. Pivots of order 1 and 2 are chosen inside the fronts, of a
    matrix that is scaled and ordered by a symmetric matching where its diagonal is weak. What solves with them leave is
    measured and refined as for :func:`splu`; where that is not enough, pivots are chosen anew by LU, and the factor
    says so (``stats["method"]`` is "column").

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Both triangles, or one of them. Any format; never modified.
    engine, device, device_memory, expected_refactors, ordering, refine, precision, deterministic, verbose, progress
        As in :func:`splu`. The CPU engine and the supernodal engine have this factorization.
    hermitian : bool, optional
        What a complex `A` equals: its conjugate transpose, or its transpose, with ``A[perm][:, perm] = L D L^T``. Told
        from `A` unless given; one triangle alone means a Hermitian matrix, as for :func:`cholesky`.

    Returns
    -------
    LDLFactor

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotHermitianError
        Both triangles are there and they differ, or the diagonal of a Hermitian matrix is not real.
    ValueError
        A is not square or not finite (`NonFiniteError`), or an option is unknown.
    EngineUnavailableError
        The engine asked for cannot run here, or has no such factorization.

    See Also
    --------
    cholesky : definite matrices.
    splu : any matrix; it goes by this factorization where that is predicted to be faster.

    Notes
    -----
    Pivots of order 1 and 2 are sought inside the blocks of a front [1]_; columns without a good one wait for the rest
    of the front, and at last for that of the parent. Large entries beside weak diagonals are paired beforehand [2]_.
    Pivots that stay small are perturbed and counted, and an inertia is given only if it is certain.

    References
    ----------
    .. [1] Duff, Hogg, Lopez, A new sparse LDL^T solver using a posteriori threshold pivoting, SIAM J. Sci. Comput. 42,
       2020
    .. [2] Duff, Pralet, Strategies for scaling and pivoting for sparse symmetric indefinite problems, SIAM J. Matrix
       Anal. Appl. 27, 2005

    Examples
    --------
    >>> K = gs.gallery.kkt(30, 10)
    >>> factor = gs.ldlt(K)
    >>> factor.inertia()
    Inertia(positive=30, negative=10, zero=0)
    >>> np.allclose(K @ factor(np.ones(40)), 1)
    True
    """
    request = read_request(engine, device, device_memory, expected_refactors, deterministic)
    A, request = read(A, request._replace(may_migrate=False))
    options = options_of_ldlt(A, ordering, refine, hermitian, precision)
    work = seen(within_memory, verbose, progress)
    factor: LDLFactor = work(factored, A, request, options, LDLFactor, "ldlt")[0]
    return factor


def options_of_ldlt(
    A: Any, ordering: Any, refine: str, hermitian: bool | None, precision: str = "double"
) -> Callable[[int], Options]:
    """Reader of the options for ldlt of `A`, from `read`, which says whether it is Hermitian if the caller does not."""
    resolved = matrix.is_hermitian(A) if hermitian is None else bool(hermitian) or A.dtype.kind != "c"
    return lambda n: ldlt_options(n, ordering, refine, resolved, precision)
