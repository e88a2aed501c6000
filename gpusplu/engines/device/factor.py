"""A factor in device memory, whatever the engine: LU, Cholesky or LDL^T of one matrix on one device.

The path of a refactorization with values on the host, `refactor`:

1. `refactor` enters the device, the lock and `Interrupted`, and takes the caller's current stream
   (`CommandGraphs.begin`). `_resolve` completes what earlier calls left: deferred calls are checked, an
   interrupted one is undone.
2. The values are copied to page-locked memory. `CommandGraphs.graph` (call.py) has the graph of `Call("new",
   on_host=True)`: values to the device; in canonical order, checked, the previous ones kept; factorization by the
   engine's program (program.py); status to the host. It is made on first use. Everything was allocated before, so the
   host neither decides nor allocates anything in between.
3. `_submit` launches it and follows the values through the states of `ValueState`: GIVING, then MUST_RESTORE.
4. The call waits for the stream, and `_accept_or_restore` reads the status. A NaN: the previous values are restored
   (`_restore`), and its position is returned. Otherwise the accuracy policy decides by the pivots (`_accept`): they are
   accepted, and the state is HELD again; or the CPU engine factors the same values with pivoting over whole columns
   (`_repivot`), and the device continues with its pivots if a program for them can be made (`_follow`), else the CPU
   engine solves until the next refactor. It also raises the errors: singular, not positive definite.

A refactorization with an array on the device ends after step 3, PENDING: the host does not wait for it. A solve that
follows reports its status together with its own, waits once, and does step 4 for both (`_certified`); any other call
that waits does step 4 first (`_resolve`). So that call, a second refactorization too, raises the error and goes back to
the previous values.

Solutions are certified by the rules of the CPU engine (core/certify/accuracy_policy.hpp), always by measuring: a solve
returns its backward error, refinement reduces it (`refine`), and if that is not enough new pivots are chosen. L and
U, and determinants if pivots are suspect, are taken from the CPU engine's factor of the same values (`HostState`).

With ``wait=False``, check="later" of users, a call only adds commands to the caller's stream (`_enqueue`): it replays a
graph or, if the caller captures the stream, adds the same commands to the caller's graph. The status then accumulates
on the device (kernels/common/accumulate.cuh), however often the caller's graph is replayed, until `check`, or the next
call that waits, evaluates it (`_resolve_deferred`): the last factorization is accepted or repaired as usual, and the
worst of all calls decides whether solutions that were returned can be trusted, since these cannot be repaired.

Calls enter the device before they take the lock: a forked child raises there, and does not wait for a thread that does
not exist in it. Signals can interrupt a call at any place. The device continues the submitted work, and the next call
waits for it (interrupted.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.listeners import log_enabled, tell
from ...common.options import Options
from ...common.scipy_names import warn
from ...cuda.graphs import Graph
from ...cuda.stream import Stream
from ...errors import AccuracyError, DeviceMemoryError
from ..processor import cpu_factor
from .buffers import STAGED, is_asymmetric
from .call import IN_BUFFERS, Addresses, Call, CommandGraphs
from .interrupted import Interrupted
from .program import Program

VALUES_GONE = (
    "found at a check: solutions since the last check cannot be trusted, and the previous values were overwritten, so "
    "the factor holds no values until it is refactored"
)
GRAPHS_APART = (
    "a graph that was captured before new pivots were chosen was replayed, so its values and those of the factor may "
    "differ; capture it again"
)
NO_GUARD = nullcontext()
CHECK_INTERRUPTED = "a check was interrupted, so the solutions that it covered cannot be trusted"


class ValueState(Enum):
    """State of the values on the device. Every transition is one store, so that a signal leaves one of these states.

    A call that takes new values goes HELD or LOST -> GIVING -> MUST_RESTORE -> HELD, or with values on the device HELD
    or LOST -> GIVING -> PENDING -> STATUS_REQUESTED -> HELD; `_resolve` takes other states back to HELD or LOST.
    Deferred calls set no state, but `_unchecked`: their values are not accepted before `_resolve_deferred`.
    """

    HELD = "those of the factor: accepted, or of deferred calls that have not been checked"
    LOST = "none: deferred calls replaced them by values that cannot be factored"
    GIVING = "a graph that takes new values is being launched; only the status shows whether it was"
    PENDING = "new ones were taken by a call that did not wait for their status, which is on the device"
    STATUS_REQUESTED = "the same, but a command that copies the status to the host may have been given"
    MUST_RESTORE = "new ones were taken by a call that has not accepted them yet: if it never does, go back"


class HostState(Enum):
    """State of the CPU engine's factor."""

    NONE = "there is no such factor"
    STALE = "it is of other values than those held"
    CURRENT = "it is of the values held"
    SOLVES = "the same, and it solves in place of the device"


HELD, LOST, GIVING, PENDING, STATUS_REQUESTED, MUST_RESTORE = ValueState
NONE, STALE, CURRENT, SOLVES = HostState


class DeviceFactor:
    """LU, Cholesky or LDL^T factor of one matrix on one device.

    To the GPU what the core's factor is to the CPU, with the same interface (engines/interface.py).

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

    _state = HELD
    _before = HELD  # HELD or LOST: the state to go back to from the others
    _unchecked = False  # calls were made without a check
    _evaluating = False  # their status was taken, but not evaluated yet
    _in_graphs: tuple[CommandGraphs, ...] = ()  # with commands in graphs of the caller's; may run any time
    _error = _checked = -1.0  # backward errors: of the last solve, and since the last check
    _n_deferred = 0  # deferred refactorizations

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
        self._measures = bool(self._policy.must_measure())
        self._lock, self._interrupted = RLock(), Interrupted(program.devices)
        self.device_array = self._device.array_class
        self._device_memory, self._replan = device_memory, replan
        self._cpu, self._host = cpu, NONE if cpu is None else CURRENT
        self._steps = [0, 0, 0]  # of refinement that the last solve took with A, its transpose and its conjugate
        self._events = dict.fromkeys(("n_refactor", "n_repivoted", "n_refinement"), 0)
        self._seconds = dict.fromkeys(("factor_seconds", "refactor_seconds", "solve_seconds"), 0.0)
        with self._device, self._lock, self._interrupted:
            self._commands = CommandGraphs(program, device_memory)
            stream = self._commands.begin()
            self._commands.send(stream, self._commands.buffers.values.pointer, canonical)
            self._found = self._commands.factor_now(stream)
            self._accept(canonical)
        self._seconds["factor_seconds"] = perf_counter() - start

    def __del__(self) -> None:
        try:
            self._interrupted.keep(self._commands)
            if self._unchecked or self._state.name not in ("HELD", "LOST"):  # its memory must not be freed before
                with self._device:
                    self._commands.begin().synchronize()
        except Exception:  # at the end of the process there may be no CUDA any more, nor `suppress`
            pass

    # ---- refactor and solve

    def refactor(
        self, values: Any, source: np.ndarray | None = None, checked: bool = False, *, wait: bool = True
    ) -> int:
        """Factor new values; see `Factor.refactor`.

        Parameters
        ----------
        values : ndarray or cupy.ndarray
            The caller's, in the order of A.data; without `source` and on the host: canonical.
        source : ndarray, optional
            Says that `values` are the caller's.
        checked : bool, optional
            Canonical values on the host are symmetric where they have to be.
        wait : bool, optional
            False: `values` are on the device, and `check` says whether they could be factored.

        Returns
        -------
        int
            Canonical position of a NaN or Inf, the factor being what it was, or -1. On the device always -1.
        """
        start = perf_counter()
        given = source is not None or type(values) is self.device_array
        with self._device, self._lock, self._guard(wait, values, given), self._interrupted:
            if not wait:
                self._enqueue(Call("new", deferred=True), values)
                return -1
            stream = self._commands.begin()
            self._resolve(stream)
            if type(values) is self.device_array:
                self._run(stream, Call("new"), values)
                self._commands.leave(stream)
            else:
                self._refactor_from_host(stream, values, source is None, checked)
                stream.synchronize()
                bad = self._accept_or_restore()
                if bad >= 0:
                    return bad
            self._seconds["refactor_seconds"] = perf_counter() - start
        return -1

    def _refactor_from_host(self, stream: Stream, values: np.ndarray, canonical: bool, checked: bool) -> None:
        """Factor new values and report the status."""
        commands, buffers = self._commands, self._commands.buffers
        if canonical and (checked or not self._pattern.core.identity):
            graph = commands.graph(Call("held"))
            stream.copy(buffers.previous.pointer, buffers.values.pointer, buffers.values.nbytes)
            self._before = self._state
            self._state = MUST_RESTORE
            commands.send(stream, buffers.values.pointer, values)
            stream.replay(graph)
            commands.report(stream)
        elif commands.host.small:
            call = Call("new", on_host=True)
            graph = commands.graph(call)
            commands.host.take(values=values)
            self._submit(stream, graph, call)
        else:
            call = Call("new")
            graph = commands.graph(call)
            commands.send(stream, buffers.input.pointer, values)
            self._submit(stream, graph, call, MUST_RESTORE)
            commands.report(stream)

    def solve(self, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        """Solve op(A) X = B.

        Parameters
        ----------
        b : ndarray or cupy.ndarray
            Fortran-contiguous, of the factor's dtype; on the device without a wait.
        trans : int
        out : cupy.ndarray, optional
            Without a wait: where the solution goes, like `b`, or `b` itself.
        wait : bool, optional

        Returns
        -------
        x : ndarray or cupy.ndarray, like `b`
        """
        with self._device, self._lock, self._guard(wait), self._interrupted:
            if not wait:
                return self._solve_deferred(b, trans, out)
            self._resolve_deferred()
            if self._was_interrupted:
                self._resolve(self._commands.begin())
            self._must_hold()
            return self._solve(b, trans)

    def refactor_solve(self, values: Any, b: Any, trans: int = 0, out: Any = None, *, wait: bool = True) -> Any:
        """Refactor with the caller's values and solve for a right-hand side, both on the same side, by one graph."""
        with self._device, self._lock, self._guard(wait, values), self._interrupted:
            if not wait:
                return self._solve_deferred(b, trans, out, values)
            self._resolve(self._commands.begin())
            return self._solve(b, trans, values)

    def get_ready(self, from_device: bool) -> None:
        """Make the graphs for refactorizations of values on the host, and for refactorizations and solves of such
        arrays."""
        with self._device, self._lock, self._interrupted:
            commands = self._commands
            commands.begin()
            small = commands.host.small
            commands.graph(Call("new", on_host=small))
            if small and not from_device:
                commands.graph(self._solving(0, on_host=True))
            else:
                commands.graph(Call("new"))
                commands.graph(self._solving(0))

    def _solving(self, trans: int, nrhs: int = 1, values: Any = None, on_host: bool = False) -> Call:
        """A call that waits, and solves; with `values` after a refactorization."""
        return Call("" if values is None else "new", True, trans, nrhs, self._measures, 0, False, on_host)

    def _solve(self, b: Any, trans: int, values: Any = None) -> Any:
        """Solve; with `values`, for one right-hand side on the same side, after a refactorization."""
        start = perf_counter()
        commands, nrhs = self._commands, 1 if b.ndim == 1 else b.shape[1]
        if self._host is SOLVES and values is None and self._state is HELD:
            return self._solve_on_cpu(b, trans)
        if nrhs != 1:
            x, worst = self._solve_many(b, trans, nrhs)
        elif type(b) is self.device_array:
            x = self._device.array(b.shape, self._dtype)
            worst = self._solve_on_device(b, x, self._solving(trans, 1, values), values)
        elif commands.host.small:
            x, worst = self._solve_from_host(b, self._solving(trans, 1, values, on_host=True), values)
        else:
            x = np.empty(b.shape, self._dtype, order="F")
            worst = self._solve_in_buffers(b, x, self._solving(trans))
        if self._host is SOLVES:
            return self._solve_on_cpu(b, trans)
        if self._commands is not commands:  # new pivots were chosen
            return self._solve(b, trans)
        self._error = worst if self._measures else -1.0
        self._seconds["solve_seconds"] = perf_counter() - start
        return x

    def _solve_many(self, b: Any, trans: int, nrhs: int) -> tuple[Any, float]:
        """Solve several right-hand sides at a time; the solutions and the worst remaining backward error."""
        commands, worst, on_device = self._commands, 0.0, type(b) is self.device_array
        x = self._device.array(b.shape, self._dtype) if on_device else np.empty(b.shape, self._dtype, order="F")
        solve = self._solve_on_device if on_device else self._solve_in_buffers
        for begin, end in commands.buffers.chunks(nrhs):
            error = solve(b[:, begin:end], x[:, begin:end], self._solving(trans, end - begin))
            if not error <= worst:
                worst = error
            if self._host is SOLVES or self._commands is not commands:
                break
        return x, worst

    def _solve_on_device(self, b: Any, x: Any, call: Call, values: Any = None) -> float:
        """Solve with arrays on the device; the remaining backward error."""
        stream, pointer = self._commands.begin(), self._device.pointer
        in_place = self._run(stream, call, values, b, x)
        return self._certified(stream, call, pointer(x), pointer(b) if in_place else 0)

    def _solve_from_host(self, b: np.ndarray, call: Call, values: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Solve with page-locked arrays that the graph copies to and from; the solution and the remaining error."""
        commands, stream = self._commands, self._commands.begin()
        graph = commands.graph(call)
        commands.host.take(values, b)
        self._submit(stream, graph, call)
        error = self._certified(stream, call, commands.host.x.ctypes.data)
        return commands.host.x.reshape(b.shape).copy(order="F"), error

    def _solve_in_buffers(self, b: np.ndarray, x: np.ndarray, call: Call) -> float:
        """Solve with arrays of the host that fit the buffers; the remaining backward error."""
        commands = self._commands
        vectors, stream = commands.buffers.vectors(call.nrhs), commands.begin()
        commands.send(stream, vectors.b.pointer, b)
        to = commands.host.some(commands.vector_bytes(call.nrhs))
        self._submit(stream, commands.graph(call), call)
        if to.nbytes > STAGED:
            self._device.fetch(stream, to, vectors.x.pointer)
        else:
            stream.copy(to.ctypes.data, vectors.x.pointer, to.nbytes)
        error = self._certified(stream, call, to.ctypes.data)
        x.reshape(-1, order="F")[...] = to.view(self._dtype)
        return error

    def _guard(self, wait: bool = True, values: Any = None, given: bool = True) -> AbstractContextManager[None]:
        """Within which a call takes place; `given`: `values` are in the caller's order."""
        return NO_GUARD

    # ---- commands

    def _run(self, stream: Stream, call: Call, values: Any = None, b: Any = None, x: Any = None) -> bool:
        """Run a call over the caller's arrays on the device; whether in place, and not by copies in the buffers."""
        device, commands, pointer = self._device, self._commands, self._device.pointer
        in_place = Addresses(
            0 if values is None else pointer(values), 0 if b is None else pointer(b), 0 if x is None else pointer(x)
        )

        def fits() -> bool:
            arrays = [array for array in (values, b, x) if array is not None]
            return call.nrhs == 1 and not overlap(in_place, b, x) and all(map(device.can_read, arrays))

        if call.deferred and stream.captured:
            at = in_place if fits() else IN_BUFFERS
            with device.captured() as captured:
                if at is IN_BUFFERS:
                    self._copy_in(captured, values, b)
                commands.add_commands(captured, call, at)
                if at is IN_BUFFERS:
                    self._copy_out(captured, x)
            return at is in_place
        direct = commands.direct(call, in_place, fits) if call.nrhs == 1 else None
        graph = direct or commands.graph(call)
        if direct is None:
            self._copy_in(stream, values, b)
        self._submit(stream, graph, call)
        if direct is None:
            self._copy_out(stream, x)
        return direct is not None

    def _submit(self, stream: Stream, graph: Graph, call: Call, then: ValueState | None = None) -> None:
        """Launch a graph, and set the state of the values.

        `then`: the state after new values. If not given: MUST_RESTORE for values of the host and with a solve, because
        the call waits, and PENDING for values on the device alone.
        """
        if call.deferred:
            self._unchecked = True
            stream.replay(graph)
        elif call.values:
            self._commands.host.forget()
            self._before = self._state
            self._state = GIVING
            stream.replay(graph)
            self._state = then or (MUST_RESTORE if call.solve or call.on_host else PENDING)
        else:
            if self._state is PENDING:  # this graph reports their status too
                self._request_status()
            stream.replay(graph)

    def _copy_in(self, stream: Stream, values: Any, b: Any) -> None:
        """Copy the caller's arrays into the buffers."""
        buffers, pointer = self._commands.buffers, self._device.pointer
        if values is not None:
            stream.copy(buffers.input.pointer, pointer(values), values.nbytes)
        if b is not None:
            stream.copy(buffers.vectors(b.size // self.n).b.pointer, pointer(b), b.nbytes)

    def _copy_out(self, stream: Stream, x: Any) -> None:
        """Copy the solution from the buffers to the caller's array."""
        if x is not None:
            vectors = self._commands.buffers.vectors(x.size // self.n)
            stream.copy(self._device.pointer(x), vectors.x.pointer, x.nbytes)

    # ---- certification of solutions

    def _certified(self, stream: Stream, call: Call, target: int, b: int = 0) -> float:
        """Wait for a solve, and refine until its solution is good; the remaining backward error.

        `target`: address that the solution has been copied to from the buffers; with `b`, the kernels have read the
        right-hand side in place and written the solution to `target`.
        """
        commands, trans, nrhs = self._commands, call.trans, call.nrhs
        stream.synchronize()
        if self._state is not HELD:
            self._accept_or_raise(commands.status())
        if not self._measures or self._host is SOLVES or self._commands is not commands:
            return 0.0
        error = commands.backward_error()
        if not self._policy.is_suspect(self._pivots) and self._policy.is_enough(error):
            self._steps[trans] = 0
            return error
        vectors, nbytes = commands.buffers.vectors(nrhs), commands.vector_bytes(nrhs)
        if b:
            stream.copy(vectors.b.pointer, b, nbytes)
            stream.copy(vectors.x.pointer, target, nbytes)
        refined = refine(commands, stream, trans, nrhs, self._policy, self._pivots, self._symbolic)
        self._events["n_refinement"] += refined.steps
        self._steps[trans] = refined.steps
        stream.copy(target, vectors.x.pointer, nbytes)
        stream.synchronize()
        if not refined.accurate:
            self._give_up(refined.error, nrhs)
        return refined.error

    def _give_up(self, error: float, nrhs: int) -> None:
        """Choose new pivots after a solve that stayed inaccurate, or warn."""
        vectors = self._commands.buffers.vectors(nrhs)
        b, x = (bool(np.isfinite(self._commands.vector(v, nrhs)).all()) for v in (vectors.b, vectors.x))
        if self._policy.may_choose_pivots(0, b):
            self._repivot()
        elif self._policy.must_warn(error, x, b):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)

    # ---- acceptance of values

    @property
    def _was_interrupted(self) -> bool:
        """Whether a call was interrupted, so that `_resolve` has to restore a consistent state."""
        return self._evaluating or self._state in (GIVING, STATUS_REQUESTED, MUST_RESTORE)

    def _resolve(self, stream: Stream) -> None:
        """Wait for earlier calls that have not been waited for, and report errors in them; after an interrupted one, go
        back to the previous values."""
        self._resolve_deferred()
        if self._state is GIVING:
            self._state = MUST_RESTORE if self._status_arrived(stream) else self._before
        if self._state is MUST_RESTORE:
            stream.synchronize()
            self._restore()
        elif self._state is PENDING:
            self._request_status()
            self._commands.report(stream)
            stream.synchronize()
            self._accept_or_raise(self._commands.status())
        elif self._state is STATUS_REQUESTED:
            self._status_arrived(stream)
            self._accept_or_raise(self._commands.status())

    def _request_status(self) -> None:
        """Before a command that copies the status of pending values to the host, and clears it on the device."""
        self._commands.host.forget()
        self._state = STATUS_REQUESTED

    def _status_arrived(self, stream: Stream) -> bool:
        """Whether the status has come to the host since `forget`, or is on the device and comes now."""
        stream.synchronize()
        if not self._commands.host.status_arrived:
            self._commands.report(stream)
            stream.synchronize()
        return self._commands.host.status_arrived

    def _accept_or_raise(self, found: Any) -> None:
        """`_accept_or_restore` for values that came from the device, or with a right-hand side; raises."""
        canonical = self._commands.values() if found.not_finite else None
        bad = self._accept_or_restore(found)
        if bad >= 0 and canonical is not None:
            raise matrix.non_finite(self._pattern, bad, canonical)

    def _accept_or_restore(self, found: Any = None) -> int:
        """Accept a refactorization, or go back to the previous values and raise or return the place of a NaN."""
        self._host_is_stale()
        self._found = found or self._commands.status()
        self._pivots = self._report(self._found, self._commands.program)
        if self._found.not_finite:  # values, or pivots that overflowed
            finite = np.isfinite(self._commands.values())
            if not finite.all():
                self._restore()
                return int(finite.argmin())
        try:
            self._must_be_symmetric()
            self._accept()
        except Exception:
            self._restore()
            raise
        self._state = HELD
        self._events["n_refactor"] += 1
        return -1

    def _must_be_symmetric(self) -> None:
        """Raise if new values of both triangles are not valid for LDL^T and Cholesky.

        Raises
        ------
        NotHermitianError
        """
        if is_asymmetric(self._found, self._dtype):
            hermitian = self._options.hermitian
            raise matrix.not_hermitian(self._pattern, self._commands.values(), self._symbolic.kind, hermitian)

    def _accept(self, canonical: np.ndarray | None = None) -> None:
        """Let the CPU engine decide cases that pivots cannot decide; it raises if the matrix is singular or
        indefinite."""
        self._pivots = self._report(self._found, self._commands.program)
        if self._policy.after_factorization(self._pivots, self._measures) != _core.Decision.accept:
            self._repivot(canonical)

    def _report(self, found: Any, program: Program) -> _core.PivotReport:
        return report_of(found, self._symbolic, program.growth_bound)

    def _repivot(self, canonical: np.ndarray | None = None) -> None:
        """Choose pivots with the CPU engine, which the device continues with if it can; else the CPU engine solves."""
        if self._replan is not None and self._host is STALE and not self._symbolic.ldlt:
            self._host, self._cpu = NONE, None  # a refactorization would keep its pivots, a new factor chooses again
        self._make_cpu(canonical)
        self._events["n_repivoted"] += 1
        follows = self._follow()
        self._host = CURRENT if follows else SOLVES
        if log_enabled():
            solver = "device continues" if follows else "processor solves"
            tell(f"the processor chose new pivots; the {solver} with them")

    def _follow(self) -> bool:
        """Whether the device has factored the values held, accurately, with the pivots of the CPU engine."""
        if self._replan is None or self._cpu.symbolic.kind != self._symbolic.kind:  # LU is the fallback of LDL^T
            return False
        if self._commands.program.has_pivots_of(self._cpu):
            return False
        try:
            program = self._replan(self._cpu)
            following = CommandGraphs(program, self._device_memory)
        except DeviceMemoryError:
            return False
        stream = following.begin()
        following.send(stream, following.buffers.values.pointer, self._cpu.values())
        found = following.factor_now(stream)
        pivots, symbolic = self._report(found, program), self._cpu.symbolic
        if found.n_tiny or self._policy.after_factorization(pivots, True) != _core.Decision.accept:
            return False
        # Both at once: `following` has no previous values to go back to.
        self._commands, self._state = following, HELD
        self._found, self._pivots, self._symbolic = found, pivots, symbolic
        return True

    def _restore(self) -> None:
        """Go back to the previous values, if any; if a signal interrupts this, the next call repeats it."""
        self._state = MUST_RESTORE
        if self._before is HELD:
            buffers, stream = self._commands.buffers, self._commands.begin()
            self._commands.graph(Call("held"))  # built before; a signal between its kernels would leave counters wrong
            stream.copy(buffers.values.pointer, buffers.previous.pointer, buffers.values.nbytes)
            self._host_is_stale()
            self._found = self._commands.factor_now(stream)
            self._accept()
        self._state = self._before

    def _must_hold(self) -> None:
        """Raise if there are no values to continue with."""
        if self._state is LOST:
            raise RuntimeError(
                "the factor holds no values: the last ones, given with check='later', were unusable; refactor it"
            )

    # ---- deferred calls

    def _solve_deferred(self, b: Any, trans: int, x: Any, values: Any = None) -> Any:
        """Solve. With `values`, of one right-hand side, refactor first; x is allocated if it is None."""
        if x is None:
            x = self._device.array(b.shape, self._dtype)
        nrhs, steps = 1 if b.ndim == 1 else b.shape[1], self._steps[trans] if self._measures else 0
        call = self._solving(trans, nrhs, values)._replace(steps=steps, deferred=True)
        if nrhs == 1:
            self._enqueue(call, values, b, x)
            return x
        if self._device.caller_stream().captured:
            self._must_be_ready(call)
        for begin, end in self._commands.buffers.chunks(nrhs):
            self._enqueue(call._replace(nrhs=end - begin), None, b[:, begin:end], x[:, begin:end])
        return x

    def _enqueue(self, call: Call, values: Any = None, b: Any = None, x: Any = None) -> None:
        """Add the commands of a deferred call to the caller's stream."""
        stream = self._commands.begin_deferred()
        if stream.captured:  # the values at the time of a replay are unknown here; `_resolve_deferred` evaluates them
            if self._was_interrupted:
                raise RuntimeError("a call of this factor was interrupted: make one call that waits before the capture")
            self._must_be_ready(call)
            if self._commands not in self._in_graphs:
                self._in_graphs += (self._commands,)
            self._run(stream, call, values, b, x)
            return
        if self._was_interrupted:
            self._resolve(stream)
        if values is None and self._state is not PENDING:
            self._must_hold()
            if self._host is SOLVES:
                raise RuntimeError(
                    "these values need the pivots of the CPU engine, which solves with check='now'; or refactor"
                )
        self._run(stream, call, values, b, x)
        self._commands.leave(stream)
        if values is not None:
            self._host_is_stale()
            if self._state is LOST:
                self._state = HELD  # if the check finds these unusable too, they are LOST again

    def _must_be_ready(self, call: Call) -> None:
        if not self._commands.is_ready(call):
            raise RuntimeError(
                "nothing can be allocated or compiled while a stream is captured; "
                "make the same call once before, with check='later'"
            )

    @property
    def n_deferred(self) -> int:
        """Deferred refactorizations, those of replays included."""
        with self._device, self._lock, self._interrupted:
            self._resolve_deferred()
            return self._n_deferred

    def check(self) -> float:
        """Check all deferred calls; the largest backward error, negative if none was measured."""
        with self._device, self._lock, self._guard(), self._interrupted:
            self._checked = -1.0
            self._resolve(self._commands.begin())
            return self._checked

    def _resolve_deferred(self) -> None:
        """Take the accumulated status, if there may be one, and evaluate it."""
        if not (self._unchecked or self._in_graphs or self._evaluating):
            return
        stream = self._commands.begin()
        if self._in_graphs:  # graphs of the caller's add to it, in whatever stream they are launched
            self._device.synchronize()
        current = self._commands
        every = [current, *(commands for commands in self._in_graphs if commands is not current)]
        accumulated, *others = [commands.read_accumulated(stream) for commands in every]
        # Once the status is cleared nothing else tells of these calls: if a signal interrupts the evaluation, values of
        # deferred calls are lost, and the next call raises.
        lost, self._evaluating = self._evaluating, True
        pending = self._state in (PENDING, STATUS_REQUESTED)
        if accumulated.n_factored:
            self._state = LOST
        elif accumulated.n_solved and pending:
            self._commands.host.status[()] = accumulated.last  # as if it had been reported
            self._state = STATUS_REQUESTED
        for commands in every:
            commands.clear_accumulated(stream)
        self._unchecked = False
        apart = any(other.n_factored or other.n_solved for other in others)
        try:
            if accumulated.n_factored or accumulated.n_solved:
                self._evaluate(accumulated, pending)
        except Exception as error:
            self._evaluating = False
            if apart:
                error.add_note(GRAPHS_APART)
            raise
        self._evaluating = False
        if apart:
            raise AccuracyError(GRAPHS_APART)
        if lost:
            raise AccuracyError(CHECK_INTERRUPTED)

    def _evaluate(self, accumulated: Any, pending: bool) -> None:
        """Accept the last factorization, or raise; raise or warn if a solution cannot be trusted.

        `pending`: values taken by a refactorization before these calls had not been accepted.
        """
        held, used = [self._pivots] if accumulated.n_held and not pending else [], self._commands
        if accumulated.n_solved and self._measures:
            self._error = self._checked = accumulated.error
        if accumulated.n_factored:
            self._take_values(accumulated)
        elif pending:
            self._accept_or_raise(accumulated.last)
        if not accumulated.n_solved:
            return
        reason = self._suspect_reason(accumulated, [*held, self._report(accumulated.worst, used.program)])
        if reason:
            note = "new pivots were chosen; capture the graphs again, which use the old ones"
            advice = note if used is not self._commands else "a solve with check='now' repairs what it can"
            raise AccuracyError(
                f"some of {accumulated.n_solved:,} solutions since the last check cannot be trusted: {reason}; {advice}"
            )
        if self._measures and self._policy.must_warn(accumulated.error, bool(np.isfinite(accumulated.error)), True):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)

    def _take_values(self, accumulated: Any) -> None:
        """`_accept_or_raise` for values of deferred calls: the previous ones are lost."""
        self._n_deferred += accumulated.n_factored
        self._before = LOST
        try:
            self._accept_or_raise(accumulated.last)
        except Exception as error:
            error.add_note(VALUES_GONE)
            raise
        self._events["n_refactor"] += accumulated.n_factored - 1

    def _suspect_reason(self, accumulated: Any, pivots: list[Any]) -> str:
        """Why solutions for which a call that waits would have chosen other pivots, or refined more, cannot be trusted;
        empty if they can."""
        policy, found = self._policy, []
        if accumulated.worst.not_finite:
            first = (
                f" first in refactorization {accumulated.not_finite:,} of {accumulated.n_factored:,}"
                if accumulated.not_finite
                else ""
            )
            found.append(f"NaN or Inf occurred{first}")
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

    # ---- the CPU engine's factor

    def _host_is_stale(self) -> None:
        if self._host is not NONE:
            self._host = STALE

    def _make_cpu(self, canonical: np.ndarray | None = None) -> Any:
        """The CPU engine's factor of the values held."""
        if self._host in (NONE, STALE):
            values = self._commands.values() if canonical is None else canonical
            is_new, self._host = self._host is NONE, NONE
            if is_new:
                self._cpu = cpu_factor(self._symbolic, self._pattern, values, self._options)
            else:
                self._cpu.refactor(values, None, True)
            self._host = CURRENT
        return self._cpu

    def host_factor(self) -> Any:
        """The CPU engine's factor of the values held, which L, U, D, permutations and entries of the inverse are taken
        from."""
        with self._device, self._lock, self._interrupted:
            self._resolve(self._commands.begin())
            self._must_hold()
            cpu = self._make_cpu()
            if cpu.symbolic.kind != self._symbolic.kind:  # it changed to LU, which solves then use too
                self._host = SOLVES
            return cpu

    def _solve_on_cpu(self, b: Any, trans: int) -> Any:
        on_device = matrix.is_cupy_array(b)
        x = self._make_cpu().solve(b.get(order="F") if on_device else b, trans)
        self._error = self._cpu.backward_error
        if not on_device:
            return x
        x_on_device = self._device.array(b.shape, self._dtype)
        x_on_device.set(x)
        return x_on_device

    # ---- what is known about the factor

    commands = property(lambda self: self._commands, doc="Its graphs and its program, for those who measure them.")
    on_cpu = property(lambda self: self._host is SOLVES, doc="Whether the CPU engine solves in its place.")
    symbolic = property(lambda self: self._cpu.symbolic if self.on_cpu else self._symbolic)
    method = property(lambda self: self.symbolic.method)
    takes_both = property(lambda self: self._commands.host.small, doc="`refactor_solve` of what is on the host.")
    bytes = property(lambda self: self._commands.buffers.nbytes + self._commands.program.plan_bytes)
    nnz = property(lambda self: self._cpu.nnz if self.on_cpu else self._commands.program.nnz)
    backward_error = property(lambda self: self._error)

    def values(self) -> np.ndarray:
        """Canonical values of the last factorization."""
        with self._device, self._lock, self._interrupted:
            stream = self._commands.begin()
            self._resolve(stream)
            self._must_hold()
            stream.synchronize()
            return self._commands.values()

    def inertia(self) -> Any:
        """Computed by the device if that is certain, else by the CPU engine's factor."""
        with self._device, self._lock, self._interrupted:
            self._resolve(self._commands.begin())
            self._must_hold()
            found = None if self.on_cpu else inertia_of(self._commands, self._symbolic)
        return found or self.host_factor().inertia()

    def slogdet(self) -> Any:
        """From the factor on the device; from the CPU engine if that factor is of another matrix, or suspect."""
        with self._device, self._lock, self._interrupted:
            stream = self._commands.begin()
            self._resolve(stream)
            self._must_hold()
            known = not (self.on_cpu or self._policy.is_suspect(self._pivots) or self._found.n_perturbed)
            found = self._commands.program.slogdet(stream, self._commands.buffers) if known else None
        return found or self.host_factor().slogdet()

    def rcond(self) -> float:
        """Estimated by solves on the device."""
        with self._device, self._lock, self._interrupted:
            kept = self._error, self._seconds["solve_seconds"]
            inverse_norm = _core.inverse_norm(self._dtype.char, self.n, self.solve)
            self._error, self._seconds["solve_seconds"] = kept
            moduli = abs(self.values()).astype(float)
        rcond = 1 / (inverse_norm * float(np.add.reduceat(moduli, self._pattern.ptr[:-1]).max()))
        return rcond if np.isfinite(rcond) else 0.0

    def stats(self) -> dict[str, Any]:
        """Counts, seconds and sizes, as the core's factor names them."""
        with self._device, self._lock, self._interrupted:
            self._resolve(self._commands.begin())
            status, program = self._found, self._commands.program
            cpu = self._cpu.stats() if self.on_cpu else {}
            return {
                **cpu,
                **self._events,
                "n_reanalyzed": cpu.get("n_reanalyzed", 0),
                **self._seconds,
                "n_perturbed": cpu.get("n_perturbed", status.n_perturbed),
                "max_multiplier": status.growth,
                "flops": program.flops,
                "bytes": self.bytes,
                "n_windows": program.n_windows,
                "host_bytes": program.host_bytes,
                "predicted_factor_seconds": program.factor_seconds,
                "predicted_solve_seconds": program.solve_seconds,
                **program.details,
            }


def overlap(at: Addresses, b: Any, x: Any) -> bool:
    """Whether the solution overwrites its right-hand side, which its residual needs."""
    return b is not None and x is not None and at.b < at.x + x.nbytes and at.x < at.b + b.nbytes


SAMPLES: int = _core.INERTIA_SAMPLES


def report_of(found: Any, structure: Any, growth_bound: float) -> _core.PivotReport:
    """Pivot report for the accuracy policy, of a factorization by an analysis, or a plan, that knows its kind."""
    failed = found.not_finite > 0 or found.growth > growth_bound
    if structure.ldlt:  # the error that a replaced pivot causes in a block is not symmetric
        failed = failed or found.n_perturbed > 0
    if structure.cholesky:
        return _core.PivotReport(failed=failed or found.n_perturbed > 0)
    return _core.PivotReport(
        failed=failed, n_perturbed=found.n_perturbed, n_tiny=found.n_tiny, max_multiplier=found.growth
    )


def refine(
    commands: CommandGraphs, stream: Stream, trans: int, nrhs: int, policy: Any, pivots: Any, symbolic: Any
) -> _core.Refined:
    """Refine the solutions in the buffers by the accuracy policy; the host examines errors of single rows.

    Parameters
    ----------
    commands : CommandGraphs
        After a measured solve.
    stream : Stream
    trans, nrhs : int
    policy : _core.AccuracyPolicy
    pivots : _core.PivotReport
        Of the factorization.
    symbolic : _core.Symbolic
        Its scales show which rows hold nothing but rounding errors.
    """
    vectors = commands.buffers.vectors(nrhs)

    def measure(by_rows: bool) -> tuple[float, float]:
        return commands.backward_error(), rowwise_error(commands, trans, nrhs, symbolic) if by_rows else 0.0

    def step(sized: bool) -> float:
        before = commands.vector(vectors.x, nrhs) if sized else None
        stream.replay(commands.graph(Call(trans=trans, nrhs=nrhs, measured=True, steps=1)))
        stream.synchronize()
        if before is None:
            return 0.0
        x = commands.vector(vectors.x, nrhs)
        return _core.relative_size((x - before).reshape(-1), x.reshape(-1), nrhs)

    def go_back() -> None:
        stream.copy(vectors.x.pointer, vectors.kept.pointer, commands.vector_bytes(nrhs))

    return policy.refine(pivots, measure, step, go_back)


def rowwise_error(commands: CommandGraphs, trans: int, nrhs: int, symbolic: Any) -> float:
    """Of the solutions in the buffers, the largest over all rows."""
    vectors, pattern = commands.buffers.vectors(nrhs), commands.program.pattern
    scale = np.asarray(symbolic.col_scale if trans else symbolic.row_scale, dtype=float)
    b, x = (commands.vector(vector, nrhs).reshape(-1) for vector in (vectors.b, vectors.x))
    return _core.rowwise_error(pattern.ptr, pattern.ind, commands.values(), "NTH"[trans], x, b, scale)


def inertia_of(commands: CommandGraphs, symbolic: Any) -> tuple[bool, bool, int, int, float] | None:
    """(held, certain, positive, negative, distance) as the core's factor returns it, for an accepted factorization.

    The kernels invert the diagonal blocks of D and store them symmetric to the last bit, so that what they solve with
    is the inverse of a Hermitian matrix with their inertia, up to rounding in the solves, which the certificate of
    core/numeric/factor.cpp sees. None if it is not certain; the CPU engine then examines it.
    """
    stream = commands.begin()
    counts = commands.program.signs_of_pivots(stream, commands.buffers)
    if counts is None or counts[2] or counts[0] + counts[1] != commands.n:
        return None
    distance = distance_of(commands, symbolic)
    return (True, True, counts[0], counts[1], distance) if distance < _core.CERTAIN_DISTANCE else None


def distance_of(commands: CommandGraphs, symbolic: Any) -> float:
    """Estimate of ``||I - A (L D L^H)^-1||``, scaled; NaN if numbers left the dtype's range."""
    n, dtype, total = commands.n, commands.program.dtype, 0.0
    scale = np.asarray(symbolic.row_scale) if symbolic.row_scale.size else np.ones(n)
    samples = np.random.default_rng(n).standard_normal((SAMPLES, n))
    for begin, end in commands.buffers.chunks(SAMPLES):
        nrhs, stream = end - begin, commands.begin()
        vectors = commands.buffers.vectors(nrhs)
        commands.send(stream, vectors.b.pointer, np.ascontiguousarray(samples[begin:end] / scale).astype(dtype).T)
        stream.replay(commands.graph(Call(solve=True, nrhs=nrhs, measured=True)))
        stream.synchronize()
        residual = commands.vector(vectors.residual, nrhs)
        total += float((np.abs(residual.astype(complex) * scale) ** 2).sum())
    return float(np.sqrt(total / SAMPLES))
