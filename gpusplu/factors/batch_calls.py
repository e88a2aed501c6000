"""Calls of a batch: refactor, solve, and both; like factor.py for single factors."""

from __future__ import annotations

from time import perf_counter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..common import matrix
from ..common.arrays import takes_arrays
from ..common.counting import FACTORIZATIONS
from ..common.listeners import Caller
from ..common.progress import shown_to
from ..common.rhs import copied, solve_batch_as_given
from ..engines.interface import FactorsAndSolves, OverlapsHostWork
from ..typing import ArrayT, Check, Later, Now, Trans
from .batch_deferred import DeferredBatch
from .batch_status import BatchStatus


class BatchCalls(DeferredBatch):
    """Refactorizations and solves of all systems, for `BatchedFactor` to inherit."""

    _fused: FactorsAndSolves | None  # the engine's batch, if it supports that
    _overlapping: OverlapsHostWork | None  # likewise
    _caller: Caller  # log context in which the batch was made
    _waiting: tuple[Any, np.ndarray | None] | None  # values and source, to be factored by a solve
    _seconds: dict[str, float]

    def __len__(self) -> int:
        """Number of systems."""
        return int(self._status.size)

    # ---- factor

    @takes_arrays
    def refactor(self, values: Any, *, check: Check = "now") -> None:
        """Factor new values of all systems.

        Parameters
        ----------
        values : array_like, shape (nbatch, size)
            On the host or on the device; row i is what ``refactor`` of system i's own factor takes.
        check : {"now", "later"}, optional
            "later", of a batch on a device: may be captured into a CUDA graph, and leaves it to :meth:`check` what
            became of the systems. Takes contiguous CuPy arrays of the factors' dtype only.

        Raises
        ------
        ValueError
            Another shape.
        BatchError
            With ``errors="raise"``: systems are singular, not definite, not finite or not Hermitian; says which.

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
            self._forget_reported()
            self._poll_deferred()
            self._refactor(self._read(values))

    def _refactor(self, values: Any, canonical: bool = False) -> None:
        start = perf_counter()
        self._load(values, canonical)
        if self._errors == "raise" or not matrix.is_cupy_array(values):
            self._resolve()
        self._seconds["refactor"] = perf_counter() - start

    def _read(self, values: Any) -> Any:
        """The values of a caller in the dtype of the factors, shape (nbatch, size)."""
        known = self.__dict__.get("_dtype")
        values = matrix.batch_values(self._problem.pattern, values, known)
        if known is not None and values.shape[0] != len(self):
            raise ValueError(f"refactor: values of {values.shape[0]} systems, the batch has {len(self)}")
        return values

    def _load(self, values: Any, canonical: bool = False, fused: bool = False) -> None:
        """Factor the caller's values, or canonical ones; with `fused` in the next solve, if the engine supports it."""
        direct, source = (True, None) if canonical else self._map
        values = values if self._on_device else matrix.to_host(values)
        if self._systems is None or not direct:
            host = matrix.to_host(values)
            values = host.copy() if canonical else np.stack([self._problem.pattern.gather(one) for one in host])
            source = None
        self._own = {}
        if self._systems is not None:
            self._pending = True
            FACTORIZATIONS.add(len(self))
            self._waiting = (values, source)
            if not (fused and (self._fused or (self._overlapping and self._single_factors))):
                self._factor_those_that_wait()
            return
        self._held, self._pending = values, True
        FACTORIZATIONS.add(len(self))
        self._resolve()

    def _factor_those_that_wait(self) -> None:
        if self._waiting is not None:
            (values, source), self._waiting = self._waiting, None
            self._side_by_side.refactor(values, source)

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
            On the host or on the device; (n,) is taken for every system. Must cast safely to the dtype of the factors;
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
            self._forget_reported()
            self._poll_deferred()
            x = solve_batch_as_given(self._solve, rhs, trans, (len(self), self._problem.n), self._dtype)
            self._seconds["solve"] = perf_counter() - start
            self._note(check)
        return copied(x, out)

    def _solve(self, b: Any, trans: int) -> Any:
        """Solve for right-hand sides in the dtype of the factors, C-contiguous, shape (nbatch, n) or (nbatch, n, k)."""
        if matrix.is_cupy(b) and not (self._on_device and self._systems):
            return matrix.to_device(self._solve(b.get(), trans))
        if b.size == 0:  # nothing to measure, but a refactorization may be pending
            self._factor_those_that_wait()
            self._resolve()
            self._error[...], self._status[...] = np.nan, self._factored
            return b.copy()
        if self._systems is None:
            self._resolve()
            x = np.full(b.shape, np.nan, self._dtype)
            self._solve_single(b, x, trans, {})
            return x
        solved: dict[int, Any] = {}
        waiting, self._waiting = self._waiting, None
        if self._overlapping and self._single_factors:
            x = self._overlapping.solve_overlapped(waiting, b, trans, self._host_work(trans, solved))
        elif self._fused and waiting is not None:
            values, source = waiting
            x = self._fused.refactor_solve(values, b, trans, source)
        else:
            if waiting is not None:
                self._side_by_side.refactor(*waiting)
            x = self._side_by_side.solve(b, trans)
        self._resolve()
        self._error[...] = self._systems.errors()
        refined = (self._systems.steps > 0) & (self._factored == BatchStatus.RIGHT)
        self._separate(self._inaccurate(b))
        self._status[...] = np.where(refined & (self._factored == 0), BatchStatus.REFINED, self._factored)
        self._solve_single(b, x, trans, solved)
        return x

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
            As those methods take them.

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
            self._forget_reported()
            self._poll_deferred()
            self._load(self._read(values), fused=True)
            try:
                x = self.solve(rhs, trans)
                self._note(check)
                return copied(x, out)
            finally:
                self._factor_those_that_wait()
