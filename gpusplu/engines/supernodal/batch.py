"""Many systems of one pattern in lockstep on a device: a lane of a warp each (docs/engines/supernodal.md)."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from ...cuda.devices import usable_bytes
from ...cuda.layout import record, struct
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError
from ..device.determinants import outer_determinant
from ..device.part import address
from .lane_commands import THREADS, LaneCommands
from .lockstep import (
    DETERMINANTS,
    LANES,
    OUTCOME,
    REPORT,
    LockstepProgram,
)

if TYPE_CHECKING:
    from ...problem import Problem
    from ..interface import Analysis

#: What `report` says of every system.
REPORTED = struct("shared/lockstep.hpp", "LockstepReport")


class LockstepBatch:
    """Factors of `count` systems on a device; the interface of engines' batches.

    Commands go to the caller's stream, and nothing waits but `report`, `errors`, `steps`, `slogdet`, `values`, and
    calls with arrays of the host.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    def __init__(self, program: LockstepProgram, count: int, limit: int | None = None):
        self.count, self.n, self.nnz = count, program.n, program.pattern.nnz
        self._program, self._device = program, program.device
        self._dtype, self._groups = program.dtype, -(-count // LANES)
        self._lock = RLock()
        self._stream: Stream | None = None
        self._event: Any = None
        device = self._device
        with device:
            program.prepare()
            sizes, usable = program.sizes(self._groups), usable_bytes(device, limit)
            self.nbytes = sum(sizes.values())
            if self.nbytes > usable:
                raise DeviceMemoryError(self.nbytes, usable)
            self._memory = {name: device.empty(size) for name, size in sizes.items()}
            self._sources: tuple[Any, Buffer | None] = (None, None)
            self._commands = LaneCommands(program, self._memory, count)
            device.own_stream().synchronize()

    # ---- what the facade calls

    def refactor(self, values: Any, source: np.ndarray | None = None) -> None:
        """Factor canonical values, shape (count, nnz), or with `source` the caller's, (count, size)."""
        with self._device, self._lock:
            stream = self._begin()
            pointer, held = self._on_device(stream, values)
            self._commands.take(stream, pointer, values.shape[1], self._source(source))
            self._commands.factor(stream)
            self._leave(stream, held)

    def solve(self, b: Any, trans: int = 0) -> Any:
        """Solve op(A) X = B, measured and refined; b and the result are (count, n) or (count, n, k), C-contiguous."""
        with self._device, self._lock:
            stream = self._begin()
            columns = 1 if b.ndim == 2 else b.shape[2]
            on_host = type(b) is not self._device.array_class
            x = self._device.array(b.shape[::-1], self._dtype).T
            given, held = self._on_device(stream, b)
            for k in range(columns):
                self._commands.solve_column(stream, given, self._device.pointer(x), k, columns, trans)
            self._leave(stream, held)
            if not on_host:
                return x
            stream.synchronize()
            return np.ascontiguousarray(x.get())

    def report(self) -> np.ndarray:
        """Of every system, type REPORTED; waits."""
        given = self._read("factoring", REPORT, self.count)
        found = np.zeros(self.count, REPORTED)
        largest, upper = (real_of(given[name], self._dtype) for name in ("entry", "upper"))
        found["multiplier"] = real_of(given["multiplier"], self._dtype)
        found["growth"] = np.where(largest > 0, upper / np.where(largest > 0, largest, 1), 0)
        found["n_perturbed"], found["n_tiny"] = given["n_perturbed"], given["n_tiny"]
        position = self.n - given["failed"]
        perm = self._program.core.col_perm
        found["failed"] = np.where(given["failed"] > 0, perm[np.minimum(position, self.n - 1)], -1)
        found["not_finite"] = given["not_finite"] > 0
        return found

    def errors(self) -> np.ndarray:
        """Normwise backward errors of the last solve, shape (count,); waits."""
        errors: np.ndarray = self._read("outcomes", OUTCOME, self.count)["error"]
        return errors

    @property
    def steps(self) -> np.ndarray:
        """Of refinement in the last solve, shape (count,); waits."""
        steps: np.ndarray = self._read("outcomes", OUTCOME, self.count)["steps"]
        return steps

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign and logarithm of the modulus of every determinant; waits."""
        program, device, systems = self._program, self._device, self._groups * LANES
        wide = np.dtype("D" if self._dtype.kind == "c" else "d")
        with device, self._lock:
            program.load(DETERMINANTS)
            diagonal, out = program.diagonal, device.empty(systems * (8 + wide.itemsize))
            device.own_stream().synchronize()
            stream = self._begin()
            kernel = program.kernel(DETERMINANTS, "lane_determinants")
            args = record(
                kernel.arguments,
                factor=self._memory["factor"].pointer,
                diagonal=address(diagonal),
                factor_size=program.core.factor_size,
                n=self.n,
                logs=out.pointer,
                signs=out.pointer + 8 * systems,
            )
            stream.launch(kernel, self._groups, THREADS, 2 * THREADS * wide.itemsize, args)
            self._leave(stream)
        raw = self._read_buffer(out, systems * (8 + wide.itemsize))
        logs, signs = raw[: 8 * systems].view("d"), raw[8 * systems :].view(wide)
        sign, shift = outer_determinant(program.core)
        return sign * signs[: self.count].astype(self._dtype), logs[: self.count] + shift

    def values(self, system: int) -> np.ndarray:
        """Canonical values of one system that were factored last, on the host; waits."""
        group, lane = divmod(system, LANES)
        whole = self.nnz * LANES * self._dtype.itemsize
        found = self._read_buffer(self._memory["values"], whole, group * whole).view(self._dtype)
        return np.ascontiguousarray(found[lane::LANES])

    # ---- commands

    def _begin(self) -> Stream:
        """The caller's stream, behind everything that was asked before."""
        stream: Stream = self._device.caller_stream()
        if self._event is not None and stream != self._stream:
            stream.wait(self._event)
        self._stream = stream
        return stream

    def _leave(self, stream: Stream, held: Buffer | None = None) -> None:
        """The host goes on without waiting; `_begin` on another stream will. `held`: read until then."""
        if held is not None:
            stream.synchronize()
        self._event = stream.record()

    def _on_device(self, stream: Stream, array: Any) -> tuple[int, Buffer | None]:
        """Where a C-contiguous array is on the device, and the copy of one on the host."""
        if type(array) is self._device.array_class:
            return self._device.pointer(array), None
        copy: Buffer = self._device.upload(array)
        return copy.pointer, copy

    def _source(self, source: np.ndarray | None) -> Buffer | None:
        if source is None:
            return None
        if self._sources[0] is not source:
            self._sources = source, self._device.upload(np.ascontiguousarray(source, np.int64))
        return self._sources[1]

    # ---- what is read

    def _read(self, name: str, dtype: np.dtype, count: int) -> np.ndarray:
        return self._read_buffer(self._memory[name], count * dtype.itemsize).view(dtype)

    def _read_buffer(self, buffer: Buffer, nbytes: int, offset: int = 0) -> np.ndarray:
        """Bytes of a buffer, after all that was asked for."""
        with self._device, self._lock:
            stream, found = self._begin(), np.empty(nbytes, np.uint8)
            stream.copy(found.ctypes.data, buffer.pointer + offset, nbytes)
            stream.synchronize()
        return found


def real_of(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers whose leading bits these are (kernels/common/pivots.cuh)."""
    if dtype.char in "fF":
        return bits.view(np.float32).astype(float)
    return (bits.astype(np.uint64) << np.uint64(32)).view(float)


def make_batch(problem: Problem, analysis: Analysis, device: Any, count: int) -> LockstepBatch | None:
    """Memory and kernels for `count` systems; None where pivots cannot be fixed or a front is too large.

    Raises
    ------
    DeviceMemoryError
    """
    core, dtype, groups = analysis.core, problem.dtype, -(-count // LANES)
    fixed = problem.cholesky or problem.options.matching
    if not fixed or not 0 < problem.n == core.structural_rank:
        return None

    def made() -> LockstepProgram:
        return LockstepProgram(device, core.with_scales_of(dtype.char), problem.pattern, dtype, groups)

    try:
        program: LockstepProgram = problem.once(("supernodal.lockstep", dtype, groups), made)
    except ValueError:  # a front has too many rows
        return None
    return LockstepBatch(program, count, problem.request.device_memory)
