"""Calls that nobody waits for, check="later": they may be captured into graphs of the caller's, and certify themselves.

Such a call only adds commands to the caller's stream: it replays a graph of ours or, where the stream is captured
and graphs cannot be launched, adds the same commands to the caller's one by one. Nothing is decided on the host. What
`_settle` would have read after each of them adds up on the device (kernels/common/tally.cuh), however often the
caller's graph is replayed, until `check`, or the next call that waits, takes the tally and asks the ladder: about what
was factored last, which is repaired as ever, and about the worst of all, since solutions that were handed out are
beyond repair.

Refinement is a number of steps that is fixed when a call is made or captured: as many as the last solve took that was
waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.scipy_names import warn
from ...cuda.stream import Stream
from ...errors import AccuracyError
from .factorization import DeviceFactorization
from .recorded import Recorded
from .tally import Tally

GONE = (
    "found at a check: solutions since the last one cannot be trusted, and the values before are gone, so the factor "
    "holds none until it is refactored"
)
APART = (
    "a graph was replayed that had been captured before other pivots were chosen, so that it and the factor have gone "
    "apart; capture it again"
)

LOST = "a check was interrupted that had begun to look after solutions, so that these cannot be trusted"


class LaterFactorization(DeviceFactorization):
    """A factorization that can be asked for things without waiting."""

    _captured: tuple[Recorded, ...] = ()  # that graphs of the caller's have commands of; these may run at any time
    _judging = False  # tallies were taken, and nobody told what they say
    _error = _checked = -1.0
    _n_later = 0  # refactorizations that were not waited for

    def __init__(self, *args: Any, **options: Any):
        self._steps = [0, 0, 0]  # of refinement that the last solve took with A, its transpose and its conjugate
        super().__init__(*args, **options)

    @property
    def captured(self) -> bool:
        """Whether the values held may change without a call."""
        return bool(self._captured)

    @property
    def n_later(self) -> int:
        """Refactorizations that were not waited for, those that are under way too."""
        with self._device, self._lock, self._unfinished:
            self._settle_later()
            return self._n_later

    def refactor_later(self, values: Any) -> None:
        """`refactor` with values on the device."""
        with self._device, self._lock, self._unfinished:
            self._ask("refactor_later", values=values)

    def solve_later(self, b: Any, trans: int, x: Any = None, values: Any = None) -> Any:
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
        with self._device, self._lock, self._unfinished:
            if x is None:
                x = self._device.array(b.shape, self._dtype)
            measured = int(self._measures)
            key = measured, self._steps[trans] * measured
            nrhs = 1 if b.ndim == 1 else b.shape[1]
            if nrhs == 1:
                what = "solve_later" if values is None else "refactor_solve_later"
                self._ask(what, trans, 1, *key, values=values, b=b, x=x)
            else:
                self._solve_many_later(b, trans, x, nrhs, key)
            return x

    def _solve_many_later(self, b: Any, trans: int, x: Any, nrhs: int, key: tuple[int, int]) -> None:
        recorded = self._recorded
        if self._device.caller_stream().captured:
            self._must_be_ready("solve_later", trans, nrhs, *key)
        for begin, end in recorded.buffers.chunks(nrhs):
            self._ask("solve_later", trans, end - begin, *key, b=b[:, begin:end], x=x[:, begin:end])

    def _ask(self, what: str, *key: int, values: Any = None, b: Any = None, x: Any = None) -> None:
        """Have commands run over the caller's arrays, or over buffers where kernels cannot take these as they are."""
        recorded, device = self._recorded, self._device
        arrays = tuple(array for array in (values, b, x) if array is not None)
        fit = (b is None or (key[1] == 1 and not self._overlap(b, x))) and all(map(device.can_read, arrays))
        stream = recorded.begin_later()
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
            self._settle(stream)
        if values is None and not self._pending:
            self._must_solve_here()
        direct = recorded.direct(what, *key, arrays=arrays) if fit else None
        graph = direct or recorded.graph(what, *key)
        self._bring(stream, *((None, None) if direct else (values, b)))
        self._unread = True
        stream.replay(graph)
        self._take_away(stream, None if direct else x)
        recorded.leave(stream)
        if values is not None:
            self._on_cpu = self._cpu_current = self._lost = False

    def _must_solve_here(self) -> None:
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
        """Whether the solution is written over its right-hand side, which its residual needs."""
        first, second = self._device.pointer(b), self._device.pointer(x)
        return bool(first < second + x.nbytes and second < first + b.nbytes)

    # ---- what they have said

    def check(self) -> float:
        """Look after all calls that nobody waited for; the largest backward error, negative where none was measured."""
        with self._device, self._lock, self._unfinished:
            self._checked = -1.0
            self._settle(self._recorded.begin())
            return self._checked

    def _settle(self, stream: Stream) -> None:
        self._settle_later()
        super()._settle(stream)

    def _settle_later(self) -> None:
        """Take the tally, if there may be one."""
        if not (self._unread or self._captured):
            return
        stream = self._recorded.begin()
        if self._captured:  # graphs of the caller's add to it, in whatever stream they are launched
            self._device.synchronize()
        current = self._recorded
        every = [current, *(recorded for recorded in self._captured if recorded is not current)]
        for recorded in every:
            recorded.read_tally(stream)
        lost, self._judging = self._judging, True  # until somebody was told what the tallies say
        tally, *others = [recorded.take_tally(stream) for recorded in every]
        self._unread = False
        apart = any(other.n_factored or other.n_solved for other in others)
        try:
            if tally.n_factored or tally.n_solved:
                self._judge(tally)
        except Exception as error:
            self._judging = False
            if apart:
                error.add_note(APART)
            raise
        self._judging = False
        if apart:
            raise AccuracyError(APART)
        if lost:
            raise AccuracyError(LOST)

    def _judge(self, tally: Tally) -> None:
        """Take over what was factored last, or raise; raise or warn if a solution cannot be trusted."""
        held, used = [self._pivots] if tally.n_held and not self._pending else [], self._recorded
        if tally.n_solved and self._measures:
            self._error = self._checked = tally.error
        if tally.n_factored:
            self._take_values(tally)
        elif self._pending:
            self._settle_device(tally.last)
        if not tally.n_solved:
            return
        doubts = self._doubts(tally, [*held, self._report(tally.worst, used.program)])
        if doubts:
            anew = "pivots have been chosen anew, which graphs captured before do not know"
            advice = anew if used is not self._recorded else "a solve with check='now' mends what can be mended"
            raise AccuracyError(
                f"some of {tally.n_solved:,} solutions since the last check cannot be trusted: {doubts}; {advice}"
            )
        if self._measures and self._ladder.must_warn(tally.error, bool(np.isfinite(tally.error)), True):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)

    def _take_values(self, tally: Tally) -> None:
        """`_settle_host` where the values before are gone."""
        self._pending = self._cpu_current = self._on_cpu = self._giving = self._undo = self._asked = False
        self._found, self._lost = tally.last, True
        self._n_later += tally.n_factored
        self._pivots = self._report(tally.last, self._recorded.program)
        try:
            if tally.last.not_finite:  # values, or pivots that overflowed
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
        self._events["n_refactor"] += tally.n_factored

    def _doubts(self, tally: Tally, pivots: list[Any]) -> str:
        """Why solutions cannot be trusted for which a call that waits would have chosen other pivots, or refined more;
        empty if they can."""
        ladder, found = self._ladder, []
        if tally.worst.not_finite:
            first = (
                f" first in refactorization {tally.not_finite:,} of {tally.n_factored:,}" if tally.not_finite else ""
            )
            found.append(f"NaN or Inf was met{first}")
        elif tally.asymmetric:
            found.append(
                f"values were not those of a Hermitian or symmetric matrix, first in refactorization "
                f"{tally.asymmetric:,} of {tally.n_factored:,}"
            )
        elif any(self._is_unfit(each) for each in pivots):
            found.append("pivots were too small, or entries grew too much, in a factorization")
        mendable = self._measures and ladder.may_choose_pivots(0, True)
        if mendable and not ladder.is_accurate(tally.error):
            found.append(f"the largest backward error is {tally.error:.1e}, of solution {tally.worst_solve:,}")
        return ", and ".join(found)

    def _is_unfit(self, pivots: Any) -> bool:
        """Whether solutions with these pivots need more than their backward errors looked at."""
        ladder, accept = self._ladder, _core.Verdict.accept
        doubtful = self._measures and ladder.may_choose_pivots(0, True) and ladder.is_doubtful(pivots)
        return doubtful or ladder.after_factorization(pivots, self._measures) != accept
