"""splu_batch and cholesky_batch: factors of many systems with one pattern.

An engine that factors systems side by side uses the pivots of one analysis for all of them and reports the status of
every system. Systems for which these pivots are unsuitable get a separate ordinary factor
(engines/repaired_batch.py), with pivots chosen among their own values; without batches in the engine all systems do.
The accuracy policy is that of single factors (core/certify/accuracy_policy.hpp).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from threading import RLock
from time import perf_counter
from typing import Any, Generic, Self, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from ..common import matrix
from ..common.arrays import PLAIN, takes_arrays
from ..common.listeners import caller
from ..common.options import cholesky_options, one_of, own_lu_options
from ..common.progress import seen, shown_to
from ..common.results import SlogDet
from ..common.rhs import check_out, check_trans, copied, solve_batch_as_given
from ..common.stats import Stats
from ..dispatch import phases
from ..dispatch.pipeline import ReadOptions, analysis_for_batch, factor_values, within_memory
from ..dispatch.selection import AUTO, read_request
from ..engines import registry
from ..engines.problem import Request
from ..engines.repaired_batch import BatchStatus, RepairedBatch
from ..errors import require
from ..typing import (
    ArrayT,
    Check,
    Engine,
    Errors,
    FactorT,
    Later,
    Now,
    Ordering,
    Pivoting,
    Progress,
    Refine,
    Trans,
    Verbose,
)
from . import deferred as later
from .cholesky import CholeskyFactor
from .lu import LUFactor
from .symbolic import BATCHES, FACTORS, Symbolic, as_symbolic

ERRORS: tuple[str, ...] = get_args(Errors)


class BatchedFactor(Generic[FactorT]):
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
            symbolic = as_symbolic(symbolic.compatible_with(self._without_zeros(values.dtype)))
            self._problem, self._analysis = symbolic.parts()
        self._symbolic = symbolic
        self._dtype: np.dtype[Any] = values.dtype
        self._locks: dict[int, Any] = {}
        if self._dtype != self._problem.dtype:
            self._problem = self._problem.again(dtype=self._dtype)
        engine, count, raises = registry.named(symbolic.engine), values.shape[0], self._errors == "raise"
        self._numeric = RepairedBatch(engine, self._problem, self._analysis, count, raises)
        self._caller = caller()  # log context in which the batch was made
        self._seconds = {"refactor": 0.0, "solve": 0.0}
        self._refactor(values, canonical)
        phases.batch_factored(count, self._numeric.side_by_side, self._seconds["refactor"])

    @property
    def _lock(self) -> Any:
        """The lock of this process; a forked child would wait for ever for the threads of its parent."""
        return self._locks.setdefault(os.getpid(), RLock())

    def _without_zeros(self, dtype: np.dtype) -> np.ndarray:
        """Canonical values with a large diagonal, to analyse in place of values that zeros made singular.

        Values of a system are not used, because the results of the others would depend on the choice of the system.
        """
        pattern = self._problem.pattern
        columns = np.repeat(np.arange(pattern.n), np.diff(pattern.ptr))
        return np.where(pattern.ind == columns, 2, 1).astype(dtype)

    _began_on_host = property(lambda self: not self._numeric.on_device)
    _device_array = property(lambda self: self._numeric.device_array)

    def __len__(self) -> int:
        """Number of systems."""
        return self._numeric.count

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

    # ---- factor

    @takes_arrays
    def refactor(self, values: Any, *, check: Check = "now") -> None:
        """Factor new values of all systems.

        Parameters
        ----------
        values : array_like, shape (nbatch, size)
            On the host or on the device; row i has the values of system i, in the order of ``A.data``.
        check : {"now", "later"}, optional
            "later", of a batch on a device: may be captured into a CUDA graph; :meth:`check` returns the status of
            the systems. Takes contiguous CuPy arrays of the factors' dtype only.

        Raises
        ------
        ValueError
            Another shape.
        BatchError
            With ``errors="raise"``: systems are singular, not definite, not finite or not Hermitian; they are listed.

        See Also
        --------
        BatchedLUFactor.refactor_solve

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> batch.refactor(2 * values)
        >>> np.allclose(2 * A @ batch.solve(np.ones(100))[0], 1)
        True
        """
        if self._is_deferred(check, None, {"values": values}):
            self._enqueue_deferred(values)
            return
        with self._lock, shown_to(self._caller):
            self._numeric.begin()
            self._refactor(self._read(values))

    def _refactor(self, values: Any, canonical: bool = False) -> None:
        start = perf_counter()
        self._numeric.refactor(values, canonical=canonical)
        self._seconds["refactor"] = perf_counter() - start

    def _read(self, values: Any) -> Any:
        """The values of a caller in the dtype of the factors, shape (nbatch, size)."""
        known = self.__dict__.get("_dtype")
        values = matrix.batch_values(self._problem.pattern, values, known)
        if known is not None and values.shape[0] != len(self):
            raise ValueError(f"refactor: values of {values.shape[0]} systems, the batch has {len(self)}")
        return values

    # ---- solve

    @overload
    def solve(self, rhs: NDArray[Any], trans: Trans = "N", *, check: Now = "now") -> NDArray[Any]: ...
    @overload
    def solve(
        self, rhs: NDArray[Any], trans: Trans = "N", *, check: Later, out: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def solve(self, rhs: ArrayT, trans: Trans = "N", *, check: Now = "now") -> ArrayT: ...
    @overload
    def solve(self, rhs: ArrayT, trans: Trans = "N", *, check: Later, out: ArrayT | None = None) -> ArrayT: ...
    @takes_arrays
    def solve(self, rhs: Any, trans: Trans = "N", *, check: Check = "now", out: Any = None) -> Any:
        """Solve ``op(A_i) x_i = rhs_i`` for every system.

        Parameters
        ----------
        rhs : ndarray, shape (n,), (nbatch, n) or (nbatch, n, k)
            On the host or on the device; (n,) is used for every system. Must cast safely to the dtype of the factors;
            complex ones of real factors are fine as long as their parts do.
        trans : {"N", "T", "H"}, optional
            A, its transpose, or its conjugate transpose.
        check : {"now", "later"}, optional
            As for `refactor`.
        out : ndarray, shape (nbatch, n) or (nbatch, n, k), optional
            With "later": where the solutions go; may be `rhs` itself.

        Returns
        -------
        x : ndarray, shape (nbatch, n) or (nbatch, n, k)
            On the device if `rhs` is. NaN for systems that have no factor (`status`).

        Raises
        ------
        TypeError
            `rhs` is not an array, or casting it would lose precision.
        ValueError
            Another shape, or an unknown `trans`.
        BatchError
            With ``errors="raise"``, after values on the device: see `refactor`.

        See Also
        --------
        BatchedLUFactor.refactor_solve

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> x = batch.solve(np.ones((3, 100)))
        >>> np.allclose(3 * A @ x[2], 1)
        True
        """
        if self._is_deferred(check, out, {"rhs": rhs, "out": out}):
            return self._enqueue_deferred(None, rhs, trans, out)
        start = perf_counter()
        with self._lock, shown_to(self._caller):
            self._numeric.begin()
            x = solve_batch_as_given(self._numeric.solve, rhs, trans, (len(self), self._problem.n), self._dtype)
            self._seconds["solve"] = perf_counter() - start
            if check == "later":
                self._numeric.include_errors()
        return copied(x, out)

    @overload
    def refactor_solve(
        self, values: Any, rhs: NDArray[Any], trans: Trans = "N", *, check: Now = "now"
    ) -> NDArray[Any]: ...
    @overload
    def refactor_solve(
        self, values: Any, rhs: NDArray[Any], trans: Trans = "N", *, check: Later, out: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def refactor_solve(self, values: Any, rhs: ArrayT, trans: Trans = "N", *, check: Now = "now") -> ArrayT: ...
    @overload
    def refactor_solve(
        self, values: Any, rhs: ArrayT, trans: Trans = "N", *, check: Later, out: ArrayT | None = None
    ) -> ArrayT: ...
    @takes_arrays
    def refactor_solve(
        self, values: Any, rhs: Any, trans: Trans = "N", *, check: Check = "now", out: Any = None
    ) -> Any:
        """``refactor(values)``, then ``solve(rhs, trans)``, evaluated together.

        Parameters
        ----------
        values, rhs, trans, check, out
            As for those methods.

        Returns
        -------
        x : ndarray, shape (nbatch, n) or (nbatch, n, k)

        See Also
        --------
        BatchedLUFactor.refactor, BatchedLUFactor.solve

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> x = batch.refactor_solve(2 * values, np.ones(100))
        >>> np.allclose(2 * A @ x[0], 1)
        True
        """
        if self._is_deferred(check, out, {"values": values, "rhs": rhs, "out": out}):
            return self._enqueue_deferred(values, rhs, trans, out)
        with self._lock, shown_to(self._caller):
            self._numeric.begin()
            self._numeric.refactor(self._read(values), postpone=True)
            try:
                x = self.solve(rhs, trans)
                if check == "later":
                    self._numeric.include_errors()
                return copied(x, out)
            finally:
                self._numeric.factor_waiting()

    # ---- status of the systems

    def check(self) -> np.ndarray:
        """Wait for all calls with ``check="later"`` and check them; any other call that waits does so too.

        Afterwards `status` has the state of each system: ``BatchStatus.UNTRUSTED`` if any solution since the last check
        cannot be trusted, even if the last one can.

        Returns
        -------
        error : ndarray, shape (nbatch,)
            The largest backward errors of the systems' solutions since the last check; infinite if one was NaN, and NaN
            if there was none.

        Raises
        ------
        BatchError
            With ``errors="raise"``: solutions of systems cannot be trusted, or their last values have no factor.

        See Also
        --------
        BatchedLUFactor.status

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
        >>> batch = gs.splu_batch(A, values)
        >>> x = batch.refactor_solve(values, np.ones(100), check="later")
        >>> batch.check().shape
        (3,)
        """
        with self._lock:
            return self._numeric.check()

    @property
    def status(self) -> np.ndarray:
        """Status of each system, int8, shape (nbatch,): values of `BatchStatus`."""
        with self._lock:
            return self._numeric.status

    @property
    def backward_error(self) -> np.ndarray:
        """Normwise backward error of each system's last solve, shape (nbatch,); NaN where none was measured."""
        with self._lock:
            return self._numeric.backward_error

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
            return SlogDet(*self._numeric.slogdet())

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
            return self._numeric.inverse_on_pattern()

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
            return self._numeric.values(system)

    def __getitem__(self, system: int) -> FactorT:
        """A new ordinary factor of one system; raises the errors of a factorization."""
        index = range(len(self))[system]
        canonical = self.canonical(index)
        matrix.check_finite(self._problem.pattern, canonical)
        if self._problem.cholesky:
            matrix.check_new_values(self._problem.pattern, canonical, "cholesky")
        return FACTORS[self._problem.kind](factor_values(self._symbolic, canonical))

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
                "side_by_side": self._numeric.side_by_side,
                **counts,
                "bytes": self._numeric.nbytes,
                "seconds": dict(self._symbolic.seconds) | self._seconds,
            }
        )

    def __repr__(self) -> str:
        count, n, _ = self.shape
        return f"<{type(self).__name__} of {count} systems, {n} x {n}, {self._dtype.name}, engine {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = np.stack([self.canonical(system) for system in range(len(self))])
        return restore_batch, (type(self), self._symbolic, values, self._errors)

    # ---- calls that do not wait

    def _is_deferred(self, check: Any, out: Any, arrays: dict[str, Any]) -> bool:
        """As `later.is_deferred`."""
        if check == "later" and self._numeric.on_device and self._device_array is None:
            raise TypeError(
                f"check='later' needs a device that factors all systems of a batch at the same time, and "
                f"engine={self._symbolic.engine!r} factors these one after another; pass check='now'"
            )
        return later.is_deferred(self, check, out, {name: array for name, array in arrays.items() if array is not None})

    def _values_deferred(self, values: Any) -> Any:
        """The caller's values for the engine, without a copy."""
        shape = len(self), self._problem.pattern.size
        if not self._numeric.takes_values:
            raise TypeError(
                "check='later' takes one value for each entry of the matrix; sum duplicates, and pass both "
                "triangles of complex Hermitian matrices"
            )
        if np.shape(values) != shape:
            raise ValueError(f"check='later' takes values of shape {shape}, for each system those of A.data")
        return later.as_it_is(self, "values", values, "C")

    def _enqueue_deferred(self, values: Any, rhs: Any = None, trans: Any = "N", out: Any = None) -> Any:
        """Factor values, solve, or both, without waiting."""
        shape = len(self), self._problem.n
        op = check_trans(trans)
        if rhs is not None:
            if later.as_it_is(self, "rhs", rhs, "C").ndim not in (2, 3) or rhs.shape[:2] != shape:
                wanted = f"({shape[0]}, {shape[1]}"
                raise ValueError(f"with check='later' b must have shape {wanted}) or {wanted}, k), got {rhs.shape}")
            if out is not None:
                check_out(later.as_it_is(self, "out", out, "C"), rhs.shape)
        if values is not None:
            values = self._values_deferred(values)
        with self._lock:
            if rhs is None:
                self._numeric.refactor(values, wait=False)
                return None
            return self._numeric.solve_deferred(values, rhs, op, out)


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
    require(whole and kind is BATCHES[symbolic.parts()[0].kind], "a part has the wrong type")
    values = isinstance(canonical, np.ndarray) and canonical.dtype in matrix.FLOATS and canonical.ndim == 2
    require(values and canonical.shape[0] > 0 and canonical.shape[1] == symbolic.nnz, "the values are not of a batch")
    batch: BatchedFactor = kind(symbolic, np.ascontiguousarray(canonical), "flag", True)
    batch._errors = one_of("errors", errors, ERRORS)
    batch._numeric.raises = errors == "raise"
    return batch


BATCHES.update(lu=BatchedLUFactor, cholesky=BatchedCholeskyFactor)
PLAIN.update(BATCHES.values())


@takes_arrays
def splu_batch(
    A: Any,
    values: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    ordering: Ordering = "auto",
    pivoting: Pivoting = "auto",
    refine: Refine = "auto",
    errors: Errors = "flag",
    verbose: Verbose = 0,
    progress: Progress = None,
) -> BatchedLUFactor:
    """Factor many square sparse matrices with one pattern.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Has the pattern; its values, which should be like those of the systems, guide matching, scaling and pivots.
    values : array_like, shape (nbatch, size)
        One system per row, in the order of ``A.data``; on the host or on the device.
    engine, device, device_memory, ordering, pivoting, refine : optional
        As in :func:`splu`. "auto" works where `values` are.
    errors : {"flag", "raise"}, optional
        Systems that cannot be factored are flagged, or raise.
    verbose, progress : optional
        As in :func:`splu`.

    Returns
    -------
    BatchedLUFactor

    Raises
    ------
    ValueError
        As :func:`splu`; or `values` have another shape.
    BatchError
        Systems are singular or not finite, with ``errors="raise"``; the message lists them.

    See Also
    --------
    splu : one matrix.
    cholesky_batch : definite matrices.
    BatchStatus : what `status` says.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.splu_batch(A, values)
    >>> x = batch.solve(np.ones(100))
    >>> x.shape
    (3, 100)
    >>> np.allclose(x[0], 3 * x[2])
    True
    >>> batch.status
    array([0, 0, 0], dtype=int8)
    """
    options = partial(own_lu_options, ordering=ordering, pivoting=pivoting, refine=refine)
    request = read_batch(engine, device, device_memory, values, errors)
    return seen(made_batch, verbose, progress)(A, values, request, BatchedLUFactor, options, errors)


@takes_arrays
def cholesky_batch(
    A: Any,
    values: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    ordering: Ordering = "auto",
    refine: Refine = "auto",
    errors: Errors = "flag",
    verbose: Verbose = 0,
    progress: Progress = None,
) -> BatchedCholeskyFactor:
    """Factor many Hermitian positive definite matrices with one pattern.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Has the pattern, of both triangles or of one of them.
    values, engine, device, device_memory, ordering, refine, errors, verbose, progress : optional
        As in :func:`splu_batch`. Where both triangles are given, `values` are assumed to be Hermitian.

    Returns
    -------
    BatchedCholeskyFactor

    Raises
    ------
    NotHermitianError, ValueError
        As :func:`cholesky`; or `values` have another shape.
    BatchError
        Systems are not positive definite, not finite or not Hermitian, with ``errors="raise"``; the message lists them.

    See Also
    --------
    cholesky, splu_batch

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.cholesky_batch(A, values)
    >>> batch.logdet().shape
    (3,)
    >>> np.allclose(batch(np.ones(100)) @ np.ones(100) * [1, 2, 3], batch(np.ones(100))[0].sum())
    True
    """
    options = partial(cholesky_options, ordering=ordering, refine=refine)
    request = read_batch(engine, device, device_memory, values, errors)
    return seen(made_batch, verbose, progress)(A, values, request, BatchedCholeskyFactor, options, errors)


def read_batch(engine: str, device: Any, device_memory: int | None, values: Any, errors: str) -> Request:
    """The request for systems with these values: on the device where they are by default."""
    one_of("errors", errors, ERRORS)
    if engine == AUTO and device is None and matrix.is_cupy_array(values):
        device = values.device.id
    request = read_request(engine, device, device_memory)
    systems = (*np.shape(values), 1)[0]
    return request._replace(systems=max(1, systems), on_device=matrix.is_cupy(values), may_migrate=False)


BatchedT = TypeVar("BatchedT", bound=BatchedFactor)


def made_batch(
    A: Any, values: Any, request: Request, made: type[BatchedT], options: ReadOptions, errors: Errors
) -> BatchedT:
    """Analyse the pattern and factor the batch."""
    kind = "cholesky" if made is BatchedCholeskyFactor else "lu"
    return within_memory(lambda: made(as_symbolic(analysis_for_batch(A, request, kind, options)), values, errors))
