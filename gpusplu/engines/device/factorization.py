"""The factorization of a matrix on a device: transfers of values, and new pivots when the current ones become bad.

Everything is allocated when the factorization is made, and a refactorization is a graph (recorded.py), so that the
host neither decides nor allocates anything in between. The program is the only part of the engine that it uses. If
pivots show that the matrix may be singular or indefinite, or a solve was not accurate, the CPU engine factors the same
values, with pivoting over whole columns. If a new program can be made with its pivots, the device continues; else the
CPU engine solves until the next refactor.

Calls enter the device before they take the lock: a forked child raises there, and does not wait for a thread that does
not exist in it.

Commands go to the caller's current stream. A refactorization of values on the device does not wait: the next call
reports an error in it, raises, and goes back to the factor of the previous values.

Signals can interrupt a call at any place. The device continues the submitted work, and the next call waits for it.
Members that begin as class attributes record the state for that call: they are set before or directly after the
commands that they describe, without a call in between, where no handler runs.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.listeners import log_enabled, tell
from ...common.options import Options
from ...cuda.graphs import Graph
from ...cuda.stream import Stream
from ...errors import DeviceMemoryError
from ..processor import cpu_factor, cpu_refactor
from .interrupted import Interrupted
from .program import Program, Status, is_asymmetric
from .recorded import Recorded


class DeviceFactorization:
    """LU, Cholesky or LDL^T factorization of one matrix on one device.

    Parameters
    ----------
    program : Program
        The plan, on the device.
    symbolic : _core.Symbolic
    pattern : matrix.Pattern
    canonical : ndarray, shape (nnz,)
        Finite.
    options : Options
    device_memory : int, optional
        Limit of the memory used [bytes].
    cpu : _core.Factor, optional
        The CPU engine's factor of the same values, if there is one.
    replan : callable, optional
        Makes another program from the pivots of the CPU engine's factor; without it the CPU engine solves.
    spent : float, optional
        Seconds spent before [s].
    """

    _unchecked = False  # calls were made without a check (deferred.py)
    _lost = False  # values were taken that cannot be factored, and the previous ones are gone
    _giving = False  # new values are being given to the device; the status shows whether it took them
    _undo = False  # a call gave new values, and raises unless it completes: the previous ones are then restored
    _status_requested = False  # the status of pending values may have been read

    def __init__(
        self,
        program: Program,
        symbolic: Any,
        pattern: matrix.Pattern,
        canonical: np.ndarray,
        options: Options,
        device_memory: int | None = None,
        cpu: Any = None,
        replan: Callable[[Any], Program] | None = None,
        spent: float = 0.0,
    ):
        start = perf_counter() - spent
        self._device = program.device
        self._symbolic, self._pattern, self._options = symbolic, pattern, options
        self.n, self._dtype = pattern.n, canonical.dtype
        self._policy = _core.AccuracyPolicy(self._dtype.char, pivoting=options.pivoting, refine=options.refine)
        self._measures = self._policy.must_measure()
        self._lock, self._interrupted = RLock(), Interrupted(program.devices)
        self.device_array = self._device.array_class
        self._device_memory, self._replan = device_memory, replan
        self._cpu = cpu  # the CPU engine's factor, once it was needed
        self._cpu_current = cpu is not None  # it is of the values held
        self._on_cpu = False  # the CPU engine has to solve
        self._pending = False  # a refactorization was submitted without a wait
        self._events = dict.fromkeys(("n_refactor", "n_repivoted", "n_refinement"), 0)
        self._seconds = dict.fromkeys(("factor_seconds", "refactor_seconds", "solve_seconds"), 0.0)
        with self._device, self._lock, self._interrupted:
            self._recorded = Recorded(program, device_memory)
            stream = self._recorded.begin()
            self._recorded.send(stream, self._recorded.buffers.values.pointer, canonical)
            self._found = self._recorded.factor_now(stream)
            self._accept(canonical)
        self._seconds["factor_seconds"] = perf_counter() - start

    def __del__(self) -> None:
        try:
            self._interrupted.keep(self._recorded)
            if self._pending or self._unchecked:  # its memory must not be freed before
                with self._device:
                    self._recorded.begin().synchronize()
        except Exception:  # at the end of the process there may be no CUDA any more, nor `suppress`
            pass

    # ---- refactor

    def refactor(self, values: Any, source: np.ndarray | None = None, checked: bool = False) -> int:
        """Factor new values; see `Factor.refactor`.

        Parameters
        ----------
        values : ndarray or cupy.ndarray
            The caller's, in the order of A.data; without `source` and on the host: canonical.
        source : ndarray, optional
            Says that `values` are the caller's.
        checked : bool, optional
            Canonical values on the host are symmetric where they have to be.

        Returns
        -------
        int
            Canonical position of a NaN or Inf, the factor being what it was, or -1. On the device always -1.
        """
        start = perf_counter()
        with self._device, self._lock, self._interrupted:
            stream = self._recorded.begin()
            self._resolve(stream)
            if type(values) is self.device_array:
                direct = self._recorded.direct("refactor", arrays=(values,))
                graph = direct or self._recorded.graph("refactor")
                if direct is None:
                    stream.copy(self._recorded.buffers.input.pointer, self._device.pointer(values), values.nbytes)
                self._give(stream, graph, False)
                self._recorded.leave(stream)
            else:
                self._refactor_from_host(stream, values, source is None, checked)
                stream.synchronize()
                bad = self._resolve_host()
                if bad >= 0:
                    return bad
            self._seconds["refactor_seconds"] = perf_counter() - start
        return -1

    def _refactor_from_host(self, stream: Stream, values: np.ndarray, canonical: bool, checked: bool) -> None:
        """Factor new values and report the status."""
        recorded, buffers = self._recorded, self._recorded.buffers
        if canonical and (checked or not self._pattern.core.identity):
            graph = recorded.graph("factor")
            stream.copy(buffers.previous.pointer, buffers.values.pointer, buffers.values.nbytes)
            self._undo = True
            recorded.send(stream, buffers.values.pointer, values)
            stream.replay(graph)
            recorded.report(stream)
        elif recorded.host.small:
            graph = recorded.graph("refactor_host")
            recorded.host.take(values=values)
            self._give(stream, graph, True)
        else:
            graph = recorded.graph("refactor")
            recorded.send(stream, buffers.input.pointer, values)
            self._give(stream, graph, True)
            recorded.report(stream)

    def _give(self, stream: Stream, graph: Graph, waits: bool) -> None:
        """Replay a graph that takes new values; `waits`: the call continues until they are resolved."""
        self._recorded.host.forget()
        self._giving = True
        stream.replay(graph)
        self._pending, self._undo, self._giving = True, waits, False

    def _resolve(self, stream: Stream) -> None:
        """Wait for a refactorization without a wait, and report errors in it; after an interrupted one, go back to the
        previous values."""
        if self._giving:
            self._undo, self._giving = self._status_arrived(stream), False
        if self._undo:
            stream.synchronize()
            self._restore()
        elif self._pending:
            if not self._status_requested:
                self._recorded.report(stream)
                stream.synchronize()
            else:
                self._status_arrived(stream)
            self._resolve_device()

    @property
    def _is_left(self) -> bool:
        """Whether a call was interrupted, so that `_resolve` has to restore a consistent state."""
        return self._giving or self._undo or self._status_requested

    def _status_arrived(self, stream: Stream) -> bool:
        """Whether the status has come to the host since `forget`, or is on the device and comes now."""
        stream.synchronize()
        if not self._recorded.host.status_arrived:
            self._recorded.report(stream)
            stream.synchronize()
        return self._recorded.host.status_arrived

    def _resolve_device(self, found: Status | None = None) -> None:
        """`_resolve_host` for values that came from the device; raises."""
        self._status_requested = True
        found = found or self._recorded.status()
        canonical = self._recorded.values() if found.not_finite else None
        bad = self._resolve_host(found)
        if bad >= 0 and canonical is not None:
            raise matrix.non_finite(self._pattern, bad, canonical)

    def _resolve_host(self, found: Status | None = None) -> int:
        """Accept a refactorization, or go back to the previous values and raise or return the place of a NaN."""
        self._cpu_current = self._on_cpu = False
        self._found = found or self._recorded.status()
        if self._found.not_finite:  # values, or pivots that overflowed
            finite = np.isfinite(self._recorded.values())
            if not finite.all():
                self._restore()
                return int(finite.argmin())
        try:
            self._must_be_symmetric()
            self._accept()
        except Exception:
            self._restore()
            raise
        self._lost = False
        self._events["n_refactor"] += 1
        self._pending = self._undo = self._status_requested = False
        return -1

    def _must_be_symmetric(self) -> None:
        """Raise if new values of both triangles are not valid for LDL^T and Cholesky.

        Raises
        ------
        NotHermitianError
        """
        if is_asymmetric(self._found, self._dtype):
            hermitian = self._options.hermitian
            raise matrix.not_hermitian(self._pattern, self._recorded.values(), self._symbolic.kind, hermitian)

    def _accept(self, canonical: np.ndarray | None = None) -> None:
        """Let the CPU engine decide cases that pivots cannot decide; it raises if the matrix is singular or
        indefinite."""
        self._pivots = self._report(self._found, self._recorded.program)
        self._suspect = self._policy.is_suspect(self._pivots)
        if self._policy.after_factorization(self._pivots, self._measures) != _core.Decision.accept:
            self._repivot(canonical)

    def _report(self, found: Status, program: Program) -> _core.PivotReport:
        return report_of(found, self._symbolic, program.growth_bound)

    def _repivot(self, canonical: np.ndarray | None = None) -> None:
        """Choose pivots with the CPU engine, which the device continues with if it can; else the CPU engine solves."""
        if self._replan is not None and not self._cpu_current and not self._symbolic.ldlt:
            self._cpu = None  # a refactorization could keep its pivots
        self._make_cpu(canonical)
        self._events["n_repivoted"] += 1
        self._on_cpu = not self._follow()
        if log_enabled():
            goes_on = "processor solves by them" if self._on_cpu else "device goes on with them"
            tell(f"pivots chosen anew by the processor; the {goes_on}")

    def _follow(self) -> bool:
        """Whether the device has factored the values held, accurately, with the pivots of the CPU engine."""
        if self._replan is None or self._cpu.symbolic.kind != self._symbolic.kind:  # LU is the fallback of LDL^T
            return False
        if self._recorded.program.has_pivots_of(self._cpu):
            return False
        try:
            program = self._replan(self._cpu)
            following = Recorded(program, self._device_memory)
        except DeviceMemoryError:
            return False
        stream = following.begin()
        following.send(stream, following.buffers.values.pointer, self._cpu.values())
        found = following.factor_now(stream)
        pivots = self._report(found, program)
        if found.n_tiny or self._policy.after_factorization(pivots, True) != _core.Decision.accept:
            return False
        symbolic = self._cpu.symbolic
        self._recorded, self._found, self._pivots, self._symbolic = following, found, pivots, symbolic
        self._pending = self._undo = self._status_requested = False  # `following` has no previous values
        self._suspect = self._policy.is_suspect(pivots)
        return True

    def _restore(self) -> None:
        """Go back to the previous values, if any; if a signal interrupts this, the next call repeats it."""
        self._undo = True
        if not self._lost:
            buffers, stream = self._recorded.buffers, self._recorded.begin()
            self._recorded.graph("factor")  # one launch: kernels without their successors would leave counters wrong
            stream.copy(buffers.values.pointer, buffers.previous.pointer, buffers.values.nbytes)
            self._cpu_current = self._on_cpu = False
            self._found = self._recorded.factor_now(stream)
            self._accept()
        self._pending = self._undo = self._status_requested = False

    # ---- the CPU engine

    def _make_cpu(self, canonical: np.ndarray | None = None) -> Any:
        """The CPU engine's factor of the values held."""
        if not self._cpu_current:
            values = self._recorded.values() if canonical is None else canonical
            cpu, self._cpu = self._cpu, None
            if cpu is None:
                cpu = cpu_factor(self._symbolic, self._pattern, values, self._options)
            else:
                cpu_refactor(cpu, values)
            self._cpu, self._cpu_current = cpu, True
        return self._cpu

    def _resolved_cpu(self) -> Any:
        with self._device, self._lock, self._interrupted:
            self._resolve(self._recorded.begin())
            self._must_hold()
            cpu = self._make_cpu()
            if cpu.symbolic.kind != self._symbolic.kind:  # it changed to LU, which solves then use too
                self._on_cpu = True
            return cpu

    def values(self) -> np.ndarray:
        """Canonical values of the last factorization."""
        with self._device, self._lock, self._interrupted:
            stream = self._recorded.begin()
            self._resolve(stream)
            self._must_hold()
            stream.synchronize()
            return self._recorded.values()

    def _must_hold(self) -> None:
        """Raise if there are no values to continue with."""
        if self._lost:
            raise RuntimeError(
                "the factor holds no values: the last ones, given with check='later', were not fit; refactor it"
            )


def report_of(found: Status, structure: Any, growth_bound: float) -> _core.PivotReport:
    """Pivot report for the accuracy policy, of a factorization by an analysis, or a plan, that knows its kind."""
    failed = found.not_finite > 0 or found.growth > growth_bound
    if structure.ldlt:  # the error that a replaced pivot causes in a block is not symmetric
        failed = failed or found.n_perturbed > 0
    if structure.cholesky:
        return _core.PivotReport(failed=failed or found.n_perturbed > 0)
    return _core.PivotReport(
        failed=failed, n_perturbed=found.n_perturbed, n_tiny=found.n_tiny, max_multiplier=found.growth
    )
