"""ldlt: factors of symmetric indefinite matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..common import matrix
from ..common.options import Options, ldlt_options
from ..common.progress import seen
from ..cost.model import REFACTORIZATIONS
from ..dispatch import pipeline
from ..dispatch.pipeline import read
from ..dispatch.request import read_request
from ..typing import Engine, Ordering, Precision, Progress, Refine, Verbose
from .ldl import LDLFactor


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

    Takes half of the work and of the memory of :func:`splu`. Pivots of order 1 and 2 are chosen inside the fronts; a
    matrix with a weak diagonal is first scaled and ordered by a symmetric matching. Solutions are checked and refined
    as for :func:`splu`. Where refinement is not enough, LU chooses the pivots again (``stats["method"]`` is then
    "column").

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Both triangles, or one of them. Any format; never modified.
    engine, device, device_memory, expected_refactors, ordering, refine, precision, deterministic, verbose, progress
        As in :func:`splu`. The CPU engine and the supernodal engine have this factorization.
    hermitian : bool, optional
        Whether a complex `A` equals its conjugate transpose, or its transpose, with ``A[perm][:, perm] = L D L^T``.
        Determined from `A` by default; a single triangle means a Hermitian matrix, as for :func:`cholesky`.

    Returns
    -------
    LDLFactor

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotHermitianError
        Both triangles are stored and they differ, or the diagonal of a Hermitian matrix is not real.
    ValueError
        A is not square or not finite (`NonFiniteError`), or an option is unknown.
    EngineUnavailableError
        The named engine is unavailable, or has no such factorization.

    See Also
    --------
    cholesky : definite matrices.
    splu : any matrix; uses this factorization where it is predicted to be faster.

    Notes
    -----
    Pivots of order 1 and 2 are sought inside the blocks of a front [1]_. Columns without an acceptable pivot are
    delayed to the rest of the front, and finally to the front of the parent. Large entries next to weak diagonals are
    paired before the factorization [2]_. Pivots that stay small are perturbed and counted, and an inertia is returned
    only if it is certain.

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

    def work() -> LDLFactor:
        return LDLFactor(pipeline.factor(A, "ldlt", options, request))

    return seen(work, verbose, progress)()


def options_of_ldlt(
    A: Any, ordering: Any, refine: str, hermitian: bool | None, precision: str = "double"
) -> Callable[[int], Options]:
    """Reader of the options for ldlt of `A`, from `read`; tests whether `A` is Hermitian unless the caller says so."""
    resolved = matrix.is_hermitian(A) if hermitian is None else bool(hermitian) or A.dtype.kind != "c"
    return lambda n: ldlt_options(n, ordering, refine, resolved, precision)
