"""A factor in device memory that is refactored and solved with by replaying graphs, whatever the engine.

`DeviceFactor` is to the GPU what the core's factor is to the CPU, and has its surface. Everything it needs is allocated
when it is made; refactor, solve and refinement are graphs (recorded.py), so that nothing is decided or allocated on the
host in between. Of the engine it knows the program only. Answers are certified as the CPU engine's are
(core/numeric/factor.hpp), always by measuring: the backward error of a solve comes back with it, at most three steps of
refinement mend it, and where that is not enough, or where pivots say that the matrix may be singular or indefinite, the
CPU engine factors the same values, with pivoting over whole columns. A program that can follow is made anew of its
pivots, and the device goes on; else the CPU engine solves until the next refactor. It is also what L, U, determinants
and condition numbers are taken from.

Commands go to the caller's current stream. A refactorization of values on the device is not waited for: what is wrong
with it shows at the next call, which then raises and holds the factor of the values before.
"""

from __future__ import annotations

from contextlib import suppress
from threading import RLock
from time import perf_counter
from typing import Any

import numpy as np

from .. import matrix
from ..errors import DeviceMemoryError
from ..kernels.queue import Queue
from ..options import Options
from .buffers import chunks
from .cpu import cpu_factor, cpu_refactor
from .program import Program
from .recorded import Recorded
from .refinement import ACCEPT_BELOW, REFINE_ABOVE, refine

MOST_RHS = 32  # solved at a time


class DeviceFactor:
    """LU or Cholesky factor of one matrix on one device.

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
        That may be used [bytes].
    cpu : _core.Factor, optional
        The CPU engine's factor of the same values, where there is one.
    spent : float, optional
        What it took to come here [s].
    """

    def __init__(
        self,
        program: Program,
        symbolic: Any,
        pattern: matrix.Pattern,
        canonical: np.ndarray,
        options: Options,
        device_memory: int | None = None,
        cpu: Any = None,
        spent: float = 0.0,
    ):
        start = perf_counter() - spent
        self._device = program.device
        self._symbolic, self._pattern, self._options = symbolic, pattern, options
        self.n, self._dtype, self.method = pattern.n, canonical.dtype, symbolic.method
        eps = float(np.finfo(self._dtype).eps)
        self._refine_above, self._accept_below = REFINE_ABOVE * eps, ACCEPT_BELOW * eps
        self._measures = options.refine != "never"
        self._lock = RLock()
        self.device_array = self._device.array_class
        self._device_memory = device_memory
        self._cpu = cpu  # the CPU engine's factor, once something needed it
        self._cpu_current = cpu is not None  # it is of the values held
        self._on_cpu = False  # it has to solve
        self._pending = False  # a refactorization was not waited for
        self._events = dict.fromkeys(("n_refactor", "n_repivoted", "n_refinement"), 0)
        self._seconds = dict.fromkeys(("factor_seconds", "refactor_seconds", "solve_seconds"), 0.0)
        self._error = -1.0
        with self._lock, self._device:
            self._recorded = Recorded(program, device_memory)
            queue = self._recorded.begin()
            self._recorded.send(queue, self._recorded.buffers.values.pointer, canonical)
            self._found = self._recorded.factor_now(queue)
            self._accept(canonical)
        self._seconds["factor_seconds"] = perf_counter() - start

    def __del__(self) -> None:
        if self.__dict__.get("_pending"):  # its memory must not be given away before
            with suppress(Exception), self._device:  # at the end of the process there may be no CUDA any more
                self._recorded.begin().synchronize()

    # ---- refactor

    def refactor(self, values: Any, source: np.ndarray | None = None) -> int:
        """Factor new values; see `Factor.refactor`.

        Parameters
        ----------
        values : ndarray or cupy.ndarray
            The caller's, in the order of A.data; without `source` and on the host: canonical.
        source : ndarray, optional
            Says that `values` are the caller's.

        Returns
        -------
        int
            Canonical position of a NaN or Inf, the factor being what it was, or -1. On the device always -1.
        """
        start = perf_counter()
        with self._lock, self._device:
            queue = self._recorded.begin()
            self._settle(queue)
            if type(values) is self.device_array:
                direct = self._recorded.direct("refactor", arrays=(values,))
                if direct is None:
                    queue.copy(self._recorded.buffers.input.pointer, self._device.pointer(values), values.nbytes)
                queue.replay(direct or self._recorded.graph("refactor"))
                self._pending = True
                self._recorded.leave(queue)
            else:
                self._refactor_from_host(queue, values, source is None)
                self._pending = True
                queue.synchronize()
                bad = self._settle_host()
                if bad >= 0:
                    return bad
            self._seconds["refactor_seconds"] = perf_counter() - start
        return -1

    def _refactor_from_host(self, queue: Queue, values: np.ndarray, canonical: bool) -> None:
        """Have new values factored, and the status reported."""
        recorded, buffers = self._recorded, self._recorded.buffers
        if canonical and not self._pattern.core.identity:
            queue.copy(buffers.previous.pointer, buffers.values.pointer, buffers.values.nbytes)
            recorded.send(queue, buffers.values.pointer, values)
            queue.replay(recorded.graph("factor"))
            recorded.report(queue)
        elif recorded.host.small:
            recorded.host.take(values=values)
            queue.replay(recorded.graph("refactor_host"))
        else:
            recorded.send(queue, buffers.input.pointer, values)
            queue.replay(recorded.graph("refactor"))
            recorded.report(queue)

    def _settle(self, queue: Queue) -> None:
        """Wait for a refactorization that nobody waited for, and say what was wrong with it."""
        if self._pending:
            self._recorded.report(queue)
            queue.synchronize()
            self._settle_device()

    def _settle_device(self) -> None:
        """`_settle_host` for values that came from the device; raises."""
        canonical = self._recorded.values() if self._recorded.status().not_finite else None
        bad = self._settle_host()
        if bad >= 0 and canonical is not None:
            raise matrix.non_finite(self._pattern, bad, canonical)

    def _settle_host(self) -> int:
        """Take over what was refactored, or go back to the values before and raise or return the place of a NaN."""
        self._pending = False
        self._cpu_current = self._on_cpu = False
        self._found = self._recorded.status()
        if self._found.not_finite:  # values, or pivots that overflowed
            finite = np.isfinite(self._recorded.values())
            if not finite.all():
                self._restore()
                return int(finite.argmin())
        try:
            self._accept()
        except Exception:
            self._restore()
            raise
        self._events["n_refactor"] += 1
        return -1

    def _accept(self, canonical: np.ndarray | None = None) -> None:
        """Leave what pivots cannot decide to the CPU engine, which raises if the matrix is singular or indefinite."""
        status, options = self._found, self._options
        unmeasured = self._symbolic.cholesky or options.refine == "never"
        doubtful = status.n_tiny > 0 or (unmeasured and status.n_perturbed > 0)
        doubtful = doubtful or status.growth > self._recorded.program.growth_bound
        if status.not_finite or (doubtful and (self._symbolic.cholesky or options.pivoting != "static")):
            self._repivot(canonical)

    def _repivot(self, canonical: np.ndarray | None = None) -> None:
        """Have the CPU engine choose pivots, which the device goes on with if it can; else the CPU engine solves."""
        if self._recorded.program.can_follow and not self._cpu_current:
            self._cpu = None  # a refactorization could keep its pivots
        self._make_cpu(canonical)
        self._events["n_repivoted"] += 1
        self._on_cpu = not self._follow()

    def _follow(self) -> bool:
        """Whether the device has factored the values held, well, with the pivots of the CPU engine."""
        try:
            program = self._recorded.program.repivoted(self._cpu)
            if program is None:
                return False
            following = Recorded(program, self._device_memory)
        except DeviceMemoryError:
            return False
        queue = following.begin()
        following.send(queue, following.buffers.values.pointer, self._cpu.values())
        found = following.factor_now(queue)
        if found.not_finite or found.n_tiny or found.growth > program.growth_bound:
            return False
        self._recorded, self._found = following, found
        return True

    def _restore(self) -> None:
        """Back to the values before."""
        buffers, queue = self._recorded.buffers, self._recorded.begin()
        queue.copy(buffers.values.pointer, buffers.previous.pointer, buffers.values.nbytes)
        self._found = self._recorded.factor_now(queue)
        self._accept()

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

    def _settled_cpu(self) -> Any:
        with self._lock, self._device:
            self._settle(self._recorded.begin())
            return self._make_cpu()

    # ---- solve

    def solve(self, b: Any, trans: int = 0) -> Any:
        """Solve op(A) X = B; `b` and the result are NumPy's or CuPy's, Fortran-contiguous, of the factor's dtype."""
        with self._lock, self._device:
            return self._solve(b, trans)

    def refactor_solve(self, values: Any, b: Any, trans: int = 0) -> Any:
        """Refactor with the caller's values and solve for a right-hand side, both on one side, by one graph."""
        with self._lock, self._device:
            self._settle(self._recorded.begin())
            self._pending = True
            return self._solve(b, trans, values)

    def _solve(self, b: Any, trans: int, values: Any = None) -> Any:
        """Solve; with `values`, for one right-hand side on their side, after a refactorization."""
        start = perf_counter()
        recorded, nrhs = self._recorded, 1 if b.ndim == 1 else b.shape[1]
        if self._on_cpu and not self._pending:
            return self._solve_on_cpu(b, trans)
        if nrhs == 1:
            x, worst = self._solve_one(b, trans, values)
        else:
            x, worst = self._solve_many(b, trans, nrhs)
        if self._on_cpu:
            return self._solve_on_cpu(b, trans)
        if self._recorded is not recorded:  # pivots were chosen anew
            return self._solve(b, trans)
        self._error = worst if self._measures else -1.0
        self._seconds["solve_seconds"] = perf_counter() - start
        return x

    def _solve_many(self, b: Any, trans: int, nrhs: int) -> tuple[Any, float]:
        """Several right-hand sides at a time; the solutions and the worst backward error that is left."""
        recorded, worst, on_host = self._recorded, 0.0, type(b) is not self.device_array
        x = np.empty(b.shape, self._dtype, order="F") if on_host else self._device.array(b.shape, self._dtype)
        at_once = recorded.buffers.rhs_at_once(min(max(nrhs, 1), MOST_RHS))
        for begin, end in chunks(nrhs, at_once):
            error = self._solve_some(b[:, begin:end], x[:, begin:end], trans, end - begin)
            if not error <= worst:
                worst = error
            if self._on_cpu or self._recorded is not recorded:
                break
        return x, worst

    def _solve_some(self, b: Any, x: Any, trans: int, nrhs: int) -> float:
        """Solve for columns that fit the buffers; the backward error that is left."""
        recorded = self._recorded
        vectors, queue = recorded.buffers.vectors(nrhs), recorded.begin()
        nbytes, to = recorded.vector_bytes(nrhs), None
        if type(b) is self.device_array:
            queue.copy(vectors.b.pointer, self._device.pointer(b), nbytes)
            target = self._device.pointer(x)
        else:
            recorded.send(queue, vectors.b.pointer, b)
            to = recorded.host.some(nbytes)
            target = to.ctypes.data
        queue.replay(recorded.graph("solve", trans, nrhs, int(self._measures)))
        queue.copy(target, vectors.x.pointer, nbytes)
        error = self._certified(queue, trans, nrhs, target)
        if to is not None:
            x.reshape(-1, order="F")[...] = to.view(self._dtype)
        return error

    def _solve_one(self, b: Any, trans: int, values: Any) -> tuple[Any, float]:
        """One right-hand side, with `values` after a refactorization; the solution and its backward error."""
        recorded, measures = self._recorded, int(self._measures)
        queue, vectors = recorded.begin(), recorded.buffers.vectors(1)
        what, nbytes = "solve" if values is None else "refactor_solve", recorded.vector_bytes(1)
        if type(b) is self.device_array:
            x = self._device.array(b.shape, self._dtype)
            arrays, target = (b, x) if values is None else (values, b, x), self._device.pointer(x)
            direct = recorded.direct(what, trans, 1, measures, arrays=arrays)
            if direct is None:
                if values is not None:
                    queue.copy(recorded.buffers.input.pointer, self._device.pointer(values), values.nbytes)
                queue.copy(vectors.b.pointer, self._device.pointer(b), nbytes)
                queue.replay(recorded.graph(what, trans, 1, measures))
                queue.copy(target, vectors.x.pointer, nbytes)
                return x, self._certified(queue, trans, 1, target)
            queue.replay(direct)
            return x, self._certified(queue, trans, 1, target, self._device.pointer(b))
        if not recorded.host.small:
            x = np.empty(b.shape, self._dtype, order="F")
            return x, self._solve_some(b, x, trans, 1)
        recorded.host.take(values, b)
        queue.replay(recorded.graph(f"{what}_host", trans, measures))
        error = self._certified(queue, trans, 1, recorded.host.x.ctypes.data)
        return recorded.host.x.reshape(b.shape).copy(order="F"), error

    def _certified(self, queue: Queue, trans: int, nrhs: int, target: int, b: int = 0) -> float:
        """Wait for a solve, and refine until its solution is good; the backward error that is left.

        `target`: where the solution has been copied to from the buffers; with `b`, that right-hand side has been read
        where it is and the solution has been written to `target`.
        """
        recorded = self._recorded
        queue.synchronize()
        if self._pending:
            self._settle_device()
        if not self._measures or self._on_cpu or self._recorded is not recorded:
            return 0.0
        error = recorded.backward_error()
        if not error <= self._refine_above:
            vectors, nbytes = recorded.buffers.vectors(nrhs), recorded.vector_bytes(nrhs)
            if b:
                queue.copy(vectors.b.pointer, b, nbytes)
                queue.copy(vectors.x.pointer, target, nbytes)
            error, steps = refine(recorded, queue, trans, nrhs, error, self._refine_above)
            self._events["n_refinement"] += steps
            queue.copy(target, vectors.x.pointer, nbytes)
            queue.synchronize()
        if not error <= self._accept_below and self._options.pivoting != "static":
            self._repivot()
        return error

    def _solve_on_cpu(self, b: Any, trans: int) -> Any:
        on_device = matrix.is_cupy_array(b)
        x = self._make_cpu().solve(b.get(order="F") if on_device else b, trans)
        self._error = self._cpu.backward_error
        if not on_device:
            return x
        moved = self._device.array(b.shape, self._dtype)
        moved.set(x)
        return moved

    # ---- what is known about the factor

    @property
    def symbolic(self) -> Any:
        return self._cpu.symbolic if self._on_cpu else self._symbolic

    takes_both = property(lambda self: self._recorded.host.small, doc="`refactor_solve` of what is on the host.")
    nnz = property(lambda self: self._cpu.nnz if self._on_cpu else self._recorded.program.nnz)
    backward_error = property(lambda self: self._error)
    row_perm = property(lambda self: self._settled_cpu().row_perm)
    col_perm = property(lambda self: self._settled_cpu().col_perm)

    def lower(self) -> Any:
        return self._settled_cpu().lower()

    def upper(self) -> Any:
        return self._settled_cpu().upper()

    def slogdet(self) -> Any:
        return self._settled_cpu().slogdet()

    def rcond(self) -> Any:
        return self._settled_cpu().rcond()

    def values(self) -> np.ndarray:
        """Canonical values that were factored last."""
        with self._lock, self._device:
            queue = self._recorded.begin()
            self._settle(queue)
            queue.synchronize()
            return self._recorded.values()

    def stats(self) -> dict[str, Any]:
        """Counts, seconds and sizes, as the core's factor names them."""
        with self._lock, self._device:
            self._settle(self._recorded.begin())
            status, program = self._found, self._recorded.program
            cpu = self._cpu.stats() if self._on_cpu else {}
            return {
                **cpu,
                **self._events,
                "n_reanalyzed": cpu.get("n_reanalyzed", 0),
                **self._seconds,
                "n_perturbed": cpu.get("n_perturbed", status.n_perturbed),
                "max_multiplier": status.growth,
                "flops": program.flops,
                "bytes": self._recorded.buffers.nbytes + program.nbytes,
                "n_windows": program.n_windows,
                "host_bytes": program.host_bytes,
                "predicted_factor_seconds": program.factor_seconds,
                "predicted_solve_seconds": program.solve_seconds,
                **program.details,
            }
