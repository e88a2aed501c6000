"""BatchedLUFactor and BatchedCholeskyFactor: factors of many systems with one pattern.

An engine that factors systems side by side uses the pivots of one analysis for all of them and reports the status of
every system. Systems for which these pivots are unsuitable get a separate ordinary factor (batch_status.py), with
pivots chosen among their own values; without batches in the engine all systems do. The accuracy policy is that of
single factors (core/certify/accuracy_policy.hpp). batch_deferred.py has the deferred calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import Any, Generic, Self, get_args, overload

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.listeners import caller
from ..common.options import one_of
from ..common.results import SlogDet
from ..common.stats import Stats
from ..dispatch import phases
from ..dispatch.pipeline import factor_values
from ..engines import registry
from ..engines.chunked_batch import make_batch
from ..engines.interface import AcceptsDeferred, FactorsAndSolves, OverlapsHostWork
from ..errors import require
from ..typing import ArrayT, Errors, FactorT
from .batch_calls import BatchCalls
from .batch_status import BatchStatus
from .cholesky import CholeskyFactor
from .lu import LUFactor
from .symbolic import BATCHES, FACTORS, Symbolic

ERRORS: tuple[str, ...] = get_args(Errors)


class BatchedFactor(BatchCalls, Generic[FactorT]):
    """Common base of batches of LU and of Cholesky factors.

    Every system is as accurate as with a separate factor, and its results do not depend on the number or the order of
    the systems. A system that cannot be factored is flagged and its solutions are NaN; the others are not affected.
    Threads may use a batch one after the other; calls wait for each other.
    """

    def __init__(self, symbolic: Symbolic, values: Any, errors: Errors = "flag", canonical: bool = False):
        """Factor `values`, shape (nbatch, size), each row in the order of ``A.data``, or canonical values."""
        self._errors = one_of("errors", errors, ERRORS)
        self._problem, self._analysis = symbolic.parts()
        if not canonical:
            values = self._read(values)
        if self._analysis.core.structural_rank < self._problem.n:
            symbolic = Symbolic.of(symbolic.compatible_with(self._without_zeros(values.dtype)))
            self._problem, self._analysis = symbolic.parts()
        self._symbolic = symbolic
        self._dtype, self._lock = values.dtype, RLock()
        self._map = self._problem.pattern.direct_map(self._dtype)
        count = values.shape[0]
        self._policy = _core.AccuracyPolicy(
            self._dtype.char, pivoting=self._problem.options.pivoting, refine=self._problem.options.refine
        )
        self._problem = self._problem.of_dtype(self._dtype)
        engine = registry.named(symbolic.engine)
        self._on_device = engine.capabilities.on_device
        systems: Any = make_batch(engine, self._problem, self._analysis, count)
        self._systems, self._deferred = systems, systems if isinstance(systems, AcceptsDeferred) else None
        self._fused = systems if isinstance(systems, FactorsAndSolves) else None
        self._overlapping = systems if isinstance(systems, OverlapsHostWork) else None
        self._begin(count)
        self._held = self._waiting = None
        self._caller = caller()
        self._seconds = {"refactor": 0.0, "solve": 0.0}
        self._refactor(values, canonical)
        phases.batch_factored(count, systems is not None, self._seconds["refactor"])

    def _without_zeros(self, dtype: np.dtype) -> np.ndarray:
        """Canonical values with a large diagonal, to analyse in place of values that zeros made singular.

        Values of a system are not used, because the results of the others would depend on the choice of the system.
        """
        pattern = self._problem.pattern
        columns = np.repeat(np.arange(pattern.n), np.diff(pattern.ptr))
        return np.where(pattern.ind == columns, 2, 1).astype(dtype)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of systems, and shape of each."""
        return len(self), *self._symbolic.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the factors and of the solutions."""
        return self._dtype

    @property
    def engine(self) -> str:
        """Name of the engine that runs."""
        return self._symbolic.engine

    @property
    def symbolic(self) -> Symbolic[FactorT, Self]:
        """The analysis that all systems share."""
        return self._symbolic

    # ---- status of the systems

    @property
    def status(self) -> np.ndarray:
        """Status of each system, int8, shape (nbatch,): values of `BatchStatus`."""
        with self._lock:
            self._poll_deferred()
            self._resolve()
            return self._whole_status()

    @property
    def backward_error(self) -> np.ndarray:
        """Normwise backward error of each system's last solve, shape (nbatch,); NaN where none was measured."""
        with self._lock:
            self._poll_deferred()
            return self._error.copy()

    def slogdet(self) -> SlogDet[NDArray[np.float64]]:
        """Sign (or phase) and logarithm of the modulus of each determinant, both of shape (nbatch,).

        As in NumPy, 0 and minus infinity for singular systems; NaN if there is no factor for another reason.

        See Also
        --------
        LUFactor.slogdet

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> np.allclose(np.diff(batch.slogdet().logabsdet), 100 * np.log([2, 1.5]))
        True
        """
        with self._lock:
            self._poll_deferred()
            self._resolve()
            sign, logabsdet = np.ones(len(self), self._dtype), np.zeros(len(self))
            if self._systems is not None:
                sign[...], logabsdet[...] = self._side_by_side.slogdet()
            for system in self._of_their_own():
                sign[system], logabsdet[system] = self._single_factors[system].slogdet()
            singular, failed = self._factored == BatchStatus.SINGULAR, self._factored > BatchStatus.SINGULAR
            sign[singular], logabsdet[singular] = 0, -np.inf
            sign[failed], logabsdet[failed] = np.nan, np.nan
            return SlogDet(sign, logabsdet)

    def inverse_on_pattern(self) -> np.ndarray:
        """Entry (j, i) of each inverse for each canonical entry (i, j) of A, shape (nbatch, nnz), on the host.

        By the factors held; a system is factored once more where entries by the common pivots are not accurate. NaN
        for systems that have no factor.

        See Also
        --------
        LUFactor.selected_inverse

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> batch.inverse_on_pattern().shape
        (3, 460)
        """
        with self._lock:
            self._poll_deferred()
            self._resolve()
            entries = np.full((len(self), self._problem.nnz), np.nan, self._dtype)
            if self._systems is not None:
                entries[...], errors = self._systems.inverse_on_pattern()
                report, policy = self._systems.report(), self._policy
                is_reliable = map(policy.ones_tell, report["multiplier"].tolist(), report["growth"].tolist())
                fit = [
                    seen and policy.is_inverse(error) for seen, error in zip(is_reliable, errors.tolist(), strict=True)
                ]
                self._separate(~np.array(fit) & (self._factored == BatchStatus.RIGHT))
            entries[self._factored >= BatchStatus.SINGULAR] = np.nan
            for system in self._of_their_own():
                of_one = self._from_single(system, "inverse_on_pattern")
                entries[system] = np.nan if of_one is None else of_one
            return entries

    def canonical(self, system: int) -> np.ndarray:
        """Canonical values of a system, shape (nnz,).

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> np.array_equal(batch.canonical(1), 2 * A.data)
        True
        """
        with self._lock:
            self._poll_deferred()
            values = self._values(system)
            return values if self._held is None else values.copy()

    def __getitem__(self, system: int) -> FactorT:
        """A new ordinary factor of one system; raises the errors of a factorization."""
        index = range(len(self))[system]
        canonical = self.canonical(index)
        matrix.check_finite(self._problem.pattern, canonical)
        if self._problem.cholesky:
            matrix.check_new_values(self._problem.pattern, canonical, "cholesky")
        factor: FactorT = FACTORS[self._problem.kind](factor_values(self._symbolic, canonical))
        return factor

    def __iter__(self) -> Iterator[FactorT]:
        return (self[system] for system in range(len(self)))

    @property
    def stats(self) -> Stats:
        """Seconds of the last calls, sizes, and number of systems by status."""
        status = self.status
        counts = {kind.name.lower(): int((status == kind).sum()) for kind in BatchStatus}
        return Stats(
            {
                "engine": self.engine,
                "n": self._problem.n,
                "nnz": self._problem.nnz,
                "nbatch": len(self),
                "side_by_side": self._systems is not None,
                **counts,
                "bytes": 0 if self._systems is None else int(self._systems.nbytes),
                "seconds": dict(self._symbolic.seconds) | self._seconds,
            }
        )

    def __repr__(self) -> str:
        count, n, _ = self.shape
        return f"<{type(self).__name__} of {count} systems, {n} x {n}, {self._dtype.name}, engine {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = np.stack([self.canonical(system) for system in range(len(self))])
        return restore_batch, (type(self), self._symbolic, values, self._errors)


class BatchedLUFactor(BatchedFactor[LUFactor]):
    """LU factors of many matrices with one pattern; made by :func:`gpusplu.splu_batch`.

    See Also
    --------
    splu_batch, BatchStatus

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.splu_batch(A, values)
    >>> len(batch), batch.shape
    (3, (3, 100, 100))
    >>> type(batch[2]).__name__
    'LUFactor'
    """


class BatchedCholeskyFactor(BatchedFactor[CholeskyFactor]):
    """Cholesky factors of many Hermitian positive definite matrices with one pattern.

    Made by :func:`gpusplu.cholesky_batch`. Calling it solves.

    See Also
    --------
    cholesky_batch

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.cholesky_batch(A, values)
    >>> batch(np.ones(100)).shape
    (3, 100)
    """

    @overload
    def __call__(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def __call__(self, rhs: ArrayT) -> ArrayT: ...
    def __call__(self, rhs: Any) -> Any:
        """Solve ``A_i x_i = rhs_i``."""
        return self.solve(rhs)

    def logdet(self) -> np.ndarray:
        """Logarithms of the determinants, shape (nbatch,).

        See Also
        --------
        BatchedLUFactor.slogdet

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.cholesky_batch(A, values)
        >>> np.allclose(np.diff(batch.logdet()), 100 * np.log([2, 1.5]))
        True
        """
        return np.asarray(self.slogdet().logabsdet)


def restore_batch(kind: Any, symbolic: Any, canonical: Any, errors: Any) -> BatchedFactor:
    """A batch of the class `kind`, factored again.

    Raises
    ------
    ValueError
        The parts do not belong together.
    """
    whole = isinstance(kind, type) and issubclass(kind, BatchedFactor) and isinstance(symbolic, Symbolic)
    require(whole and kind is BATCHES[symbolic.parts()[0].kind], "a part is something else")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS and canonical.ndim == 2
    require(values and canonical.shape[0] > 0 and canonical.shape[1] == symbolic.nnz, "the values are not of a batch")
    batch: BatchedFactor = kind(symbolic, np.ascontiguousarray(canonical), "flag", True)
    batch._errors = one_of("errors", errors, ERRORS)
    return batch


BATCHES.update(lu=BatchedLUFactor, cholesky=BatchedCholeskyFactor)
