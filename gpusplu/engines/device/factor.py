"""A factor in device memory that is refactored and solved with by replaying graphs, whatever the engine.

`DeviceFactor` is to the GPU what the core's factor is to the CPU, and has the same interface. Solutions are certified
by the rules of the CPU engine (core/certify/accuracy_policy.hpp), always by measuring: a solve returns its backward
error, refinement reduces it, and if that is not enough new pivots are chosen (factorization.py). L and U, and
determinants if pivots are suspect, are taken from the CPU engine's factor of the same values.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ... import _core
from ...common import matrix
from ...common.scipy_names import warn
from ...cuda.graphs import Graph
from ...cuda.stream import Stream
from .deferred import DeferredFactorization
from .inertia import inertia_of
from .program import STAGED
from .refinement import refine


class DeviceFactor(DeferredFactorization):
    """LU, Cholesky or LDL^T factor of one matrix on one device."""

    def solve(self, b: Any, trans: int = 0) -> Any:
        """Solve op(A) X = B; `b` and the result are NumPy's or CuPy's, Fortran-contiguous, of the factor's dtype."""
        with self._device, self._lock, self._interrupted:
            self._resolve_deferred()
            if self._is_left or self._lost:  # pending values may replace values that were lost
                self._resolve(self._recorded.begin())
            self._must_hold()
            return self._solve(b, trans)

    def refactor_solve(self, values: Any, b: Any, trans: int = 0) -> Any:
        """Refactor with the caller's values and solve for a right-hand side, both on the same side, by one graph."""
        with self._device, self._lock, self._interrupted:
            self._resolve(self._recorded.begin())
            return self._solve(b, trans, values)

    def get_ready(self, from_device: bool) -> None:
        """Make the graphs for refactorizations of values on the host, and for refactorizations and solves of such
        arrays."""
        with self._device, self._lock, self._interrupted:
            recorded, measures = self._recorded, int(self._measures)
            recorded.begin()
            small = recorded.host.small
            recorded.graph("refactor_host" if small else "refactor")
            if small and not from_device:
                recorded.graph("solve_host", 0, measures)
            else:
                recorded.graph("refactor")
                recorded.graph("solve", 0, 1, measures)

    def _solve(self, b: Any, trans: int, values: Any = None) -> Any:
        """Solve; with `values`, for one right-hand side on the same side, after a refactorization."""
        start = perf_counter()
        recorded, nrhs = self._recorded, 1 if b.ndim == 1 else b.shape[1]
        if self._on_cpu and values is None and not self._pending:
            return self._solve_on_cpu(b, trans)
        if nrhs == 1:
            x, worst = self._solve_one(b, trans, values)
        else:
            x, worst = self._solve_many(b, trans, nrhs)
        if self._on_cpu:
            return self._solve_on_cpu(b, trans)
        if self._recorded is not recorded:  # new pivots were chosen
            return self._solve(b, trans)
        self._error = worst if self._measures else -1.0
        self._seconds["solve_seconds"] = perf_counter() - start
        return x

    def _solve_many(self, b: Any, trans: int, nrhs: int) -> tuple[Any, float]:
        """Solve several right-hand sides at a time; the solutions and the worst remaining backward error."""
        recorded, worst, on_host = self._recorded, 0.0, type(b) is not self.device_array
        x = np.empty(b.shape, self._dtype, order="F") if on_host else self._device.array(b.shape, self._dtype)
        for begin, end in recorded.buffers.chunks(nrhs):
            error = self._solve_some(b[:, begin:end], x[:, begin:end], trans, end - begin)
            if not error <= worst:
                worst = error
            if self._on_cpu or self._recorded is not recorded:
                break
        return x, worst

    def _solve_some(self, b: Any, x: Any, trans: int, nrhs: int) -> float:
        """Solve for columns that fit the buffers; the remaining backward error."""
        recorded = self._recorded
        vectors, stream = recorded.buffers.vectors(nrhs), recorded.begin()
        nbytes, to = recorded.vector_bytes(nrhs), None
        if type(b) is self.device_array:
            stream.copy(vectors.b.pointer, self._device.pointer(b), nbytes)
            target = self._device.pointer(x)
        else:
            recorded.send(stream, vectors.b.pointer, b)
            to = recorded.host.some(nbytes)
            target = to.ctypes.data
        self._launch_graph(stream, recorded.graph("solve", trans, nrhs, int(self._measures)))
        if to is not None and nbytes > STAGED:
            self._device.fetch(stream, to, vectors.x.pointer)
        else:
            stream.copy(target, vectors.x.pointer, nbytes)
        error = self._certified(stream, trans, nrhs, target)
        if to is not None:
            x.reshape(-1, order="F")[...] = to.view(self._dtype)
        return error

    def _solve_one(self, b: Any, trans: int, values: Any) -> tuple[Any, float]:
        """One right-hand side, with `values` after a refactorization; the solution and its backward error."""
        recorded, measures = self._recorded, int(self._measures)
        stream, vectors = recorded.begin(), recorded.buffers.vectors(1)
        what, nbytes = "solve" if values is None else "refactor_solve", recorded.vector_bytes(1)
        if type(b) is self.device_array:
            x = self._device.array(b.shape, self._dtype)
            arrays, target = (b, x) if values is None else (values, b, x), self._device.pointer(x)
            direct = recorded.direct(what, trans, 1, measures, arrays=arrays)
            if direct is None:
                graph = recorded.graph(what, trans, 1, measures)
                if values is not None:
                    stream.copy(recorded.buffers.input.pointer, self._device.pointer(values), values.nbytes)
                stream.copy(vectors.b.pointer, self._device.pointer(b), nbytes)
                self._launch_graph(stream, graph, values is not None)
                stream.copy(target, vectors.x.pointer, nbytes)
                return x, self._certified(stream, trans, 1, target)
            self._launch_graph(stream, direct, values is not None)
            return x, self._certified(stream, trans, 1, target, self._device.pointer(b))
        if not recorded.host.small:
            x = np.empty(b.shape, self._dtype, order="F")
            return x, self._solve_some(b, x, trans, 1)
        graph = recorded.graph(f"{what}_host", trans, measures)
        recorded.host.take(values, b)
        self._launch_graph(stream, graph, values is not None)
        error = self._certified(stream, trans, 1, recorded.host.x.ctypes.data)
        return recorded.host.x.reshape(b.shape).copy(order="F"), error

    def _launch_graph(self, stream: Stream, graph: Graph, given: bool = False) -> None:
        """Replay a graph that solves, and copies the status to the host; `given`: it takes new values first."""
        if given:
            self._give(stream, graph, True)
            return
        if self._pending:
            self._recorded.host.forget()
            self._status_requested = True
        stream.replay(graph)

    def _certified(self, stream: Stream, trans: int, nrhs: int, target: int, b: int = 0) -> float:
        """Wait for a solve, and refine until its solution is good; the remaining backward error.

        `target`: address that the solution has been copied to from the buffers; with `b`, the kernels have read the
        right-hand side in place and written the solution to `target`.
        """
        recorded = self._recorded
        stream.synchronize()
        if self._pending:
            self._resolve_device()
        if not self._measures or self._on_cpu or self._recorded is not recorded:
            return 0.0
        error = recorded.backward_error()
        if not self._suspect and self._policy.is_enough(error):
            self._steps[trans] = 0
            return error
        vectors, nbytes = recorded.buffers.vectors(nrhs), recorded.vector_bytes(nrhs)
        if b:
            stream.copy(vectors.b.pointer, b, nbytes)
            stream.copy(vectors.x.pointer, target, nbytes)
        refined = refine(recorded, stream, trans, nrhs, self._policy, self._pivots, self._symbolic)
        self._events["n_refinement"] += refined.steps
        self._steps[trans] = refined.steps
        stream.copy(target, vectors.x.pointer, nbytes)
        stream.synchronize()
        if not refined.accurate:
            self._give_up(refined.error, nrhs)
        return refined.error

    def _give_up(self, error: float, nrhs: int) -> None:
        """Choose new pivots after a solve that stayed inaccurate, or warn."""
        vectors = self._recorded.buffers.vectors(nrhs)
        b, x = (bool(np.isfinite(self._recorded.vector(v, nrhs)).all()) for v in (vectors.b, vectors.x))
        if self._policy.may_choose_pivots(0, b):
            self._repivot()
        elif self._policy.must_warn(error, x, b):
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)

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

    @property
    def symbolic(self) -> Any:
        return self._cpu.symbolic if self._on_cpu else self._symbolic

    recorded = property(lambda self: self._recorded, doc="Its graphs and its program, for those who measure them.")
    on_cpu = property(lambda self: self._on_cpu, doc="Whether the CPU engine solves in its place.")
    method = property(lambda self: self._cpu.method if self._on_cpu else self._symbolic.method)
    takes_both = property(lambda self: self._recorded.host.small, doc="`refactor_solve` of what is on the host.")
    bytes = property(lambda self: self._recorded.buffers.nbytes + self._recorded.program.plan_bytes)
    nnz = property(lambda self: self._cpu.nnz if self._on_cpu else self._recorded.program.nnz)
    backward_error = property(lambda self: self._error)
    row_perm = property(lambda self: self._resolved_cpu().row_perm)
    col_perm = property(lambda self: self._resolved_cpu().col_perm)
    has_accurate_triangles = property(lambda self: self._resolved_cpu().has_accurate_triangles)

    def lower(self) -> Any:
        return self._resolved_cpu().lower()

    def upper(self) -> Any:
        return self._resolved_cpu().upper()

    def inverse_on_pattern(self) -> Any:
        return self._resolved_cpu().inverse_on_pattern()

    def inverse_on_factors(self) -> Any:
        return self._resolved_cpu().inverse_on_factors()

    def inverse_at(self, rows: np.ndarray, columns: np.ndarray) -> Any:
        return self._resolved_cpu().inverse_at(rows, columns)

    def pivots(self) -> Any:
        return self._resolved_cpu().pivots()

    def inertia(self) -> Any:
        """Computed by the device if that is certain, else by the CPU engine's factor."""
        with self._device, self._lock, self._interrupted:
            self._resolve(self._recorded.begin())
            self._must_hold()
            found = None if self._on_cpu else inertia_of(self._recorded, self._symbolic)
        return found or self._resolved_cpu().inertia()

    def slogdet(self) -> Any:
        """From the factor on the device; from the CPU engine if that factor is of another matrix, or suspect."""
        with self._device, self._lock, self._interrupted:
            stream = self._recorded.begin()
            self._resolve(stream)
            self._must_hold()
            known = not (self._on_cpu or self._suspect or self._found.n_perturbed)
            found = self._recorded.program.slogdet(stream, self._recorded.buffers) if known else None
        return found or self._resolved_cpu().slogdet()

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
            self._resolve(self._recorded.begin())
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
                "bytes": self.bytes,
                "n_windows": program.n_windows,
                "host_bytes": program.host_bytes,
                "predicted_factor_seconds": program.factor_seconds,
                "predicted_solve_seconds": program.solve_seconds,
                **program.details,
            }
