"""LDLFactor, the result of ldlt."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.options import Options, ldlt_options
from ..common.progress import seen
from ..common.results import Inertia
from ..common.rhs import solve_as_given
from ..cost.model import REFACTORIZATIONS
from ..dispatch import pipeline
from ..dispatch.pipeline import Made, read
from ..dispatch.selection import read_request
from ..errors import NoSymmetricFactorError
from ..typing import ArrayT, Engine, Ordering, Precision, Progress, Refine, Verbose
from .factor import SymmetricFactor
from .symbolic import FACTORS


class LDLFactor(SymmetricFactor):
    """LDL^T factors of a Hermitian matrix: ``A[perm][:, perm] = L D L^H``; of a complex symmetric one, ``L D L^T``.

    Made by :func:`gpusplu.ldlt`. Calling it solves. If LU had to choose the pivots again, solves still work, attributes
    and methods of L and D raise `NoSymmetricFactorError`, and `inertia` returns None.

    See Also
    --------
    ldlt, CholeskyFactor

    Examples
    --------
    >>> K = gs.gallery.kkt(30, 10)
    >>> factor = gs.ldlt(K)
    >>> L, D, perm = factor.L, factor.D, factor.perm
    >>> abs(L @ D @ L.T - K[perm][:, perm]).max() < 1e-12
    np.True_
    """

    __slots__ = ("_inertia_reason",)
    _names = "L and D"

    def __init__(self, made: Made):
        super().__init__(made)
        self._inertia_reason = ""

    @property
    def hermitian(self) -> bool:  # type: ignore[override]
        """False for a complex symmetric matrix."""
        return self._symbolic.parts()[0].options.hermitian

    @property
    def perm(self) -> NDArray[np.int32]:
        """Gather permutation, int32: ``A[perm][:, perm] = L D L^H``."""
        return self._require_pivots()

    @property
    def L(self) -> sp.csc_array:
        """Unit lower triangular factor; the same object until refactor."""
        self._require_pivots()
        return super().L

    @property
    def D(self) -> sp.csc_array:
        """Diagonal with blocks of order 1 and 2; the same object until refactor."""
        self._require_pivots()
        return self._keep("_upper", self._make_D)

    def _make_D(self) -> sp.csc_array:
        self._check_product()
        d, e = self._core.host_factor().pivots()
        above = e.conj() if self.hermitian else e
        diagonals = {-1: e[:-1], 0: d, 1: above[:-1]} if d.size else {0: d}  # an empty matrix has no off-diagonals
        D = sp.diags_array(list(diagonals.values()), offsets=list(diagonals), shape=self.shape, format="csc")
        D.eliminate_zeros()
        return D

    def _require_pivots(self) -> NDArray[np.int32]:
        """Order of the pivots. A device engine gets it from the CPU engine, which may fall back to LU."""
        host = self._core.host_factor()
        if host.symbolic.kind != "ldlt":
            raise NoSymmetricFactorError
        return host.col_perm

    @overload
    def solve_D(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def solve_D(self, rhs: ArrayT) -> ArrayT: ...
    def solve_D(self, rhs: Any) -> Any:
        """Solve ``D x = rhs``, shape (n,) or (n, k), on the processor.

        See Also
        --------
        LDLFactor.solve_L, LDLFactor.solve_Lt

        Examples
        --------
        >>> K = gs.gallery.kkt(30, 10)
        >>> factor = gs.ldlt(K)
        >>> y = factor.solve_D(np.ones(40))
        >>> np.allclose(factor.D @ y, 1)
        True
        """
        if matrix.is_cupy(rhs):
            return matrix.to_device(self.solve_D(rhs.get()))
        _ = self.L  # raises if there are no pivots
        d, e = self._core.host_factor().pivots()

        def solve(b: ndarray, op: int) -> ndarray:
            columns = b.reshape((len(b), prod(b.shape[1:])), order="F")
            x = columns / np.where(d == 0, 1, d)[:, None]
            first = np.flatnonzero(e)  # of pivots of order 2
            low, high = e[first, None], (e.conj() if self.hermitian else e)[first, None]
            above, below = d[first, None] / high, d[first + 1, None] / low
            p, q = columns[first] / high, columns[first + 1] / low
            x[first], x[first + 1] = (below * p - q) / (above * below - 1), (above * q - p) / (above * below - 1)
            return np.asfortranarray(x.reshape(b.shape, order="F"))

        return solve_as_given(solve, rhs, "N", self.shape[0], self._dtype)

    def inertia(self) -> Inertia | None:
        """Numbers of positive, negative and zero eigenvalues of A, or None if they are not certain.

        By Sylvester's law they are those of D if L D L^H is close enough to A: no matrix between the two is singular if
        ``||I - A (L D L^H)^-1||`` is below 1. Eight solves with random right-hand sides estimate that norm; it includes
        the effects of rounding, growth and perturbed pivots. Certain means an estimate of at most 0.01. So a nearly
        singular A, with a condition number above about 1e13 in double precision after scaling, has no inertia. A
        singular A has no factor, so `zero` is 0. If the result is None, `inertia_doubt` gives the reason.

        Returns
        -------
        Inertia or None

        Raises
        ------
        TypeError
            A is complex symmetric, so that its eigenvalues are not real.

        Notes
        -----
        Cost: eight solves.

        Examples
        --------
        >>> K = gs.gallery.kkt(30, 10)
        >>> factor = gs.ldlt(K)
        >>> factor.inertia()
        Inertia(positive=30, negative=10, zero=0)
        >>> factor.inertia_doubt
        ''
        """
        if not self.hermitian:
            raise TypeError("inertia: A is complex symmetric, not Hermitian, and its eigenvalues are not real")
        held, certain, positive, negative, distance = self._core.inertia()
        self._inertia_reason = inertia_reason_of(held, certain, distance)
        return None if self._inertia_reason else Inertia(positive, negative, 0)

    @property
    def inertia_doubt(self) -> str:
        """Why the last call of `inertia` returned None; empty if it did not."""
        return self._inertia_reason


def inertia_reason_of(held: bool, certain: bool, distance: float) -> str:
    """Why an inertia is not certain; empty if it is."""
    if not held:
        return "LU chose new pivots, and LU gives no inertia"
    if not certain:
        most = _core.CERTAIN_DISTANCE
        return f"A is too close to a singular matrix: ||I - A (L D L^H)^-1|| is {distance:.1e}, not below {most}"
    return ""


FACTORS.update(ldlt=LDLFactor)


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
    return seen(lambda: LDLFactor(pipeline.factor(A, "ldlt", options, request)), verbose, progress)()


def options_of_ldlt(
    A: Any, ordering: Any, refine: str, hermitian: bool | None, precision: str = "double"
) -> Callable[[int], Options]:
    """Reader of the options for ldlt of `A`, from `read`; tests whether `A` is Hermitian unless the caller says so."""
    resolved = matrix.is_hermitian(A) if hermitian is None else bool(hermitian) or A.dtype.kind != "c"
    return lambda n: ldlt_options(n, ordering, refine, resolved, precision)
