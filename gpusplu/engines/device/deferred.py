"""Calls with check="later", which do not wait: the caller may capture them into graphs, and they certify themselves.

Such a call only adds commands to the caller's stream: it replays a graph of gpusplu or, if the stream is captured and
graphs cannot be launched, adds the same commands to the caller's graph one by one. The host decides nothing. The status
that `_resolve` would read after each call accumulates on the device (kernels/common/accumulate.cuh), however often the
caller's graph is replayed, until `check`, or the next call that waits, takes the accumulated status and applies the
accuracy policy: to the last factorization, which is repaired as usual, and to the worst of all calls, since solutions
that were returned cannot be repaired.

The number of refinement steps is fixed when a call is made or captured: as many as the last solve with a wait took.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.scipy_names import warn
from ...cuda.stream import Stream
from ...errors import AccuracyError
from .accumulated import AccumulatedStatus
from .factorization import DeviceFactorization
from .recorded import Recorded

GONE = (
    "found at a check: solutions since the last one cannot be trusted, and the values before are gone, so the factor "
    "holds none until it is refactored"
)
APART = (
    "a graph was replayed that had been captured before other pivots were chosen, so that it and the factor have gone "
    "apart; capture it again"
)

LOST = "a check was interrupted that had begun to look after solutions, so that these cannot be trusted"


class DeferredFactorization(DeviceFactorization):
    """A factorization that accepts calls without waiting."""

    _captured: tuple[Recorded, ...] = ()  # with commands in graphs of the caller's; these may run at any time
    _evaluating = False  # accumulated status was taken but not yet evaluated
    _error = _checked = -1.0
    _n_deferred = 0  # refactorizations without a wait

    def __init__(self, *args: Any, **options: Any):
        self._steps = [0, 0, 0]  # of refinement that the last solve took with A, its transpose and its conjugate
        super().__init__(*args, **options)

    @property
    def captured(self) -> bool:
        """Whether the values held may change without a call."""
        return bool(self._captured)

    @property
    def n_deferred(self) -> int:
        """Refactorizations without a wait, pending ones included."""
        with self._device, self._lock, self._interrupted:
            self._resolve_deferred()
            return self._n_deferred

    def refactor_deferred(self, values: Any) -> None:
        """`refactor` with values on the device."""
        with self._device, self._lock, self._interrupted:
            self._enqueue("refactor_deferred", values=values)

    def solve_deferred(self, b: Any, trans: int, x: Any = None, values: Any = None) -> Any:
        """`solve` for `b` on the device, with `values` and one right-hand side after a refactorization.

        Parameters
        ----------
        b : cupy.ndarray
            Fortran-contiguous, of the factor's dtype.
        trans : int
        x : cupy.ndarray, optional
            Where the solution goes: like `b`, or `b` itself.
        values : cupy.ndarray, optional

        Returns
        -------
        x : cupy.ndarray
        """
        with self._device, self._lock, self._interrupted:
            if x is None:
                x = self._device.array(b.shape, self._dtype)
            measured = int(self._measures)
            key = measured, self._steps[trans] * measured
            nrhs = 1 if b.ndim == 1 else b.shape[1]
            if nrhs == 1:
                what = "solve_deferred" if values is None else "refactor_solve_deferred"
                self._enqueue(what, trans, 1, *key, values=values, b=b, x=x)
            else:
                self._solve_many_deferred(b, trans, x, nrhs, key)
            return x

    def _solve_many_deferred(self, b: Any, trans: int, x: Any, nrhs: int, key: tuple[int, int]) -> None:
        recorded = self._recorded
        if self._device.caller_stream().captured:
            self._must_be_ready("solve_deferred", trans, nrhs, *key)
        for begin, end in recorded.buffers.chunks(nrhs):
            self._enqueue("solve_deferred", trans, end - begin, *key, b=b[:, begin:end], x=x[:, begin:end])

    def _enqueue(self, what: str, *key: int, values: Any = None, b: Any = None, x: Any = None) -> None:
        """Run commands over the caller's arrays, or over buffers if kernels cannot use these directly."""
        recorded, device = self._recorded, self._device
        arrays = tuple(array for array in (values, b, x) if array is not None)
        fit = (b is None or (key[1] == 1 and not self._overlap(b, x))) and all(map(device.can_read, arrays))
        stream = recorded.begin_deferred()
        if stream.captured:
            if self._is_left:
                raise RuntimeError("a call of this factor was interrupted: make one that waits before it is captured")
            self._must_be_ready(what, *key)
            if recorded not in self._captured:
                self._captured += (recorded,)
            with device.captured() as stream:
                self._bring(stream, *((None, None) if fit else (values, b)))
                getattr(recorded, what)(stream, *key, *(map(device.pointer, arrays) if fit else ()))
                self._take_away(stream, None if fit else x)
            return
        if self._is_left:
            self._resolve(stream)
        if values is None and not self._pending:
            self._must_solve_on_host()
        direct = recorded.direct(what, *key, arrays=arrays) if fit else None
        graph = direct or recorded.graph(what, *key)
        self._bring(stream, *((None, None) if direct else (values, b)))
        self._unchecked = True
        stream.replay(graph)
        self._take_away(stream, None if direct else x)
        recorded.leave(stream)
        if values is not None:
            self._on_cpu = self._cpu_current = self._lost = False

    def _must_solve_on_host(self) -> None:
        self._must_hold()
        if self._on_cpu:
            raise RuntimeError(
                "the pivots of these values were left to the CPU engine, which solves with check='now'; or refactor"
            )

    def _must_be_ready(self, what: str, *key: int) -> None:
        if not self._recorded.is_ready(what, *key):
            raise RuntimeError(
                "nothing can be allocated or compiled while a stream is captured; make the same call once before"
            )

    def _bring(self, stream: Stream, values: Any, b: Any) -> None:
        """Copy the caller's arrays into the buffers."""
        buffers, pointer = self._recorded.buffers, self._device.pointer
        if values is not None:
            stream.copy(buffers.input.pointer, pointer(values), values.nbytes)
        if b is not None:
            nrhs = b.size // self.n
            stream.copy(buffers.vectors(nrhs).b.pointer, pointer(b), b.nbytes)

    def _take_away(self, stream: Stream, x: Any) -> None:
        if x is not None:
            nrhs = x.size // self.n
            stream.copy(self._device.pointer(x), self._recorded.buffers.vectors(nrhs).x.pointer, x.nbytes)

    def _overlap(self, b: Any, x: Any) -> bool:
        """Whether the solution overwrites its right-hand side, which its residual needs."""
        first, second = self._device.pointer(b), self._device.pointer(x)
        return bool(first < second + x.nbytes and second < first + b.nbytes)

    # ---- status of these calls

    def check(self) -> float:
        """Check all calls without a wait; the largest backward error, negative if none was measured."""
        with self._device, self._lock, self._interrupted:
            self._checked = -1.0
            self._resolve(self._recorded.begin())
            return self._checked

    def _resolve(self, stream: Stream) -> None:
        self._resolve_deferred()
        super()._resolve(stream)

    def _resolve_deferred(self) -> None:
        """Take the accumulated status, if there may be one."""
        if not (self._unchecked or self._captured):
            return
        stream = self._recorded.begin()
        if self._captured:  # graphs of the caller's add to it, in whatever stream they are launched
            self._device.synchronize()
        current = self._recorded
        every = [current, *(recorded for recorded in self._captured if recorded is not current)]
        for recorded in every:
            recorded.read_accumulated(stream)
        lost, self._evaluating = self._evaluating, True  # until the accumulated status is evaluated
        accumulated, *others = [recorded.take_accumulated(stream) for recorded in every]
        self._unchecked = False
        apart = any(other.n_factored or other.n_solved for other in others)
        try:
            if accumulated.n_factored or accumulated.n_solved:
                self._evaluate(accumulated)
        except Exception as error:
            self._evaluating = False
            if apart:
                error.add_note(APART)
            raise
        self._evaluating = False
        if apart:
            raise AccuracyError(APART)
        if lost:
            raise AccuracyError(LOST)

    def _evaluate(self, accumulated: AccumulatedStatus) -> None:
        """Accept the last factorization, or raise; raise or warn if a solution cannot be trusted."""
        held, used = [self._pivots] if accumulated.n_held and not self._pending else [], self._recorded
        if accumulated.n_solved and self._measures:
            self._error = self._checked = accumulated.error
        if accumulated.n_factored:
            self._take_values(accumulated)
        elif self._pending:
            self._resolve_device(accumulated.last)
        if not accumulated.n_solved:
            return
        reason = self._suspect_reason(accumulated, [*held, self._report(accumulated.worst, used.program)])
        if reason:
            note = "pivots have been chosen anew, which graphs captured before do not know"
            advice = note if used is not self._recorded else "a solve with check='now' mends what can be mended"
            raise AccuracyError(
                f"some of {accumulated.n_solved:,} solutions since the last check cannot be trusted: {reason}; {advice}"
            )
        if self._measures and self._policy.must_warn(accumulated.error, bool(np.isfinite(accumulated.error)), True):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)

    def _take_values(self, accumulated: AccumulatedStatus) -> None:
        """`_resolve_host` if the previous values are lost."""
        self._pending = self._cpu_current = self._on_cpu = self._giving = self._undo = self._status_requested = False
        self._found, self._lost = accumulated.last, True
        self._n_deferred += accumulated.n_factored
        self._pivots = self._report(accumulated.last, self._recorded.program)
        try:
            if accumulated.last.not_finite:  # values, or pivots that overflowed
                values = self._recorded.values()
                finite = np.isfinite(values)
                if not finite.all():
                    raise matrix.non_finite(self._pattern, int(finite.argmin()), values)
            self._must_be_symmetric()
            self._accept()
        except Exception as error:
            error.add_note(GONE)
            raise
        self._lost = False
        self._events["n_refactor"] += accumulated.n_factored

    def _suspect_reason(self, accumulated: AccumulatedStatus, pivots: list[Any]) -> str:
        """Why solutions for which a call that waits would have chosen other pivots, or refined more, cannot be trusted;
        empty if they can."""
        policy, found = self._policy, []
        if accumulated.worst.not_finite:
            first = (
                f" first in refactorization {accumulated.not_finite:,} of {accumulated.n_factored:,}"
                if accumulated.not_finite
                else ""
            )
            found.append(f"NaN or Inf was met{first}")
        elif accumulated.asymmetric:
            found.append(
                f"values were not those of a Hermitian or symmetric matrix, first in refactorization "
                f"{accumulated.asymmetric:,} of {accumulated.n_factored:,}"
            )
        elif any(self._needs_other_pivots(each) for each in pivots):
            found.append("pivots were too small, or entries grew too much, in a factorization")
        mendable = self._measures and policy.may_choose_pivots(0, True)
        if mendable and not policy.is_accurate(accumulated.error):
            found.append(
                f"the largest backward error is {accumulated.error:.1e}, of solution {accumulated.worst_solve:,}"
            )
        return ", and ".join(found)

    def _needs_other_pivots(self, pivots: Any) -> bool:
        """Whether solutions with these pivots need more checks than their backward errors."""
        policy, accept = self._policy, _core.Decision.accept
        suspect = self._measures and policy.may_choose_pivots(0, True) and policy.is_suspect(pivots)
        return suspect or policy.after_factorization(pivots, self._measures) != accept
