"""Deferred calls of a batch, check="later": like deferred.py for single factors, for every system.

A device measures and refines the systems of a batch without the host. Such a call only omits the separate treatment of
systems for which the common pivots are unsuitable. The status of every system accumulates on the device until `check`
or the next call that waits reads it. Systems with a solution less accurate than `check` promises are then *suspect*:
`status` shows them until they have been reported and another call is made. The values that were factored last are
treated as in other calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.counting import FACTORIZATIONS
from ..common.rhs import check_out, check_trans
from ..engines.interface import AcceptsDeferred, AccumulatedLaneStatus
from . import deferred as later
from .batch_status import TrackedSystems


class DeferredBatch(TrackedSystems):
    """Deferred calls of batches."""

    _on_device: bool
    _map: tuple[bool, np.ndarray | None]  # positions of canonical values in the caller's: Pattern.direct_map
    _deferred: AcceptsDeferred | None  # the engine's batch, if it takes such calls

    _began_on_host = property(lambda self: not self._on_device)
    _device_array = property(lambda self: self._deferred.device_array if self._deferred else None)

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
            self._forget_reported()
            self._poll_deferred()
            self._reported = True
            return self._largest.copy()

    def _note(self, check: str) -> None:
        """Include calls that were checked at once in the results of `check`."""
        if check == "later":
            self._largest = np.fmax(self._largest, self._error)

    def _forget_reported(self) -> None:
        if self._reported:
            self._doubted[:], self._largest[:], self._reported = False, np.nan, False

    def _poll_deferred(self) -> None:
        """Check the deferred calls.

        Raises
        ------
        RuntimeError
            The caller's stream is captured.
        BatchError
        """
        accumulated = self._deferred.take_accumulated() if self._deferred else None
        if accumulated is None:
            return
        self._forget_reported()
        if accumulated.n_factored:
            self._own, self._pending = {}, True
        if accumulated.n_solved:
            self._largest, self._error[:] = np.fmax(self._largest, accumulated.error), accumulated.error
            self._doubted |= self._suspects_of(accumulated)
        self._resolve()
        self._raise_flagged()

    def _suspects_of(self, accumulated: AccumulatedLaneStatus) -> np.ndarray:
        """Systems for which a call that waits would have chosen other pivots, raised, or warned of an error."""
        doubted = self._incompatible(accumulated.report)
        refined = self._problem.options.refine != "never" and self._policy.may_choose_pivots(0, True)
        if refined and not self._policy.is_accurate(float(accumulated.error.max())):
            doubted |= [not self._policy.is_accurate(error) for error in accumulated.error.tolist()]
        return doubted

    # ---- the calls

    def _is_deferred(self, check: Any, out: Any, arrays: dict[str, Any]) -> bool:
        """As `later.is_deferred`."""
        if check == "later" and self._on_device and self._device_array is None:
            raise TypeError(
                f"check='later' takes batches whose systems a device factors side by side and all at a time, and "
                f"engine={self._symbolic.engine!r} has these one after another; pass check='now'"
            )
        return later.is_deferred(self, check, out, {name: array for name, array in arrays.items() if array is not None})

    def _values_deferred(self, values: Any) -> tuple[Any, np.ndarray | None]:
        """The caller's values for the engine, without a copy, and the positions of canonical values in them."""
        direct, source = self._map
        shape = self._doubted.size, self._problem.pattern.size
        if not direct:
            raise TypeError(
                "check='later' takes values that are one entry of the matrix each; sum duplicates, and pass both "
                "triangles of complex Hermitian matrices"
            )
        if np.shape(values) != shape:
            raise ValueError(f"check='later' takes values of shape {shape}, for each system those of A.data")
        return later.as_it_is(self, "values", values, "C"), source

    def _enqueue_deferred(self, values: Any, rhs: Any = None, trans: Any = "N", out: Any = None) -> Any:
        """Factor values, solve, or both, without waiting."""
        shape = self._doubted.size, self._problem.n
        op = check_trans(trans)
        if rhs is not None:
            if later.as_it_is(self, "rhs", rhs, "C").ndim not in (2, 3) or rhs.shape[:2] != shape:
                wanted = f"({shape[0]}, {shape[1]}"
                raise ValueError(f"with check='later' b must have shape {wanted}) or {wanted}, k), got {rhs.shape}")
            if out is not None:
                check_out(later.as_it_is(self, "out", out, "C"), rhs.shape)
        source = None
        if values is not None:
            values, source = self._values_deferred(values)
        with self._lock:
            assert self._deferred is not None
            x = self._deferred.enqueue_deferred(values, source, rhs, op, out)
            FACTORIZATIONS.add(0 if values is None else shape[0])
            return x
