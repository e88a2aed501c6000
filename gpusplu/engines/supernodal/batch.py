"""Many systems of one pattern in lockstep on a device: one lane of a warp each
(docs/internals/engines/supernodal.md); distributed over several devices, each has some of them.

The caller's arrays on a device are then on the first one. The parts that the other devices need are copied to them
after the earlier commands of the caller's stream, and their results are copied back; through the host, with a wait, if
the devices have no peer access. Arrays on the host go to all devices concurrently, one thread each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ...common.matrix import EPS
from ...cuda.devices import usable_bytes
from ...cuda.layout import struct
from ...cuda.several import failures
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError
from ..device.call import StreamOrder
from ..device.interrupted import Interrupted, outliving
from ..device.program import outer_determinant
from ..interface import Accumulated, Batch, Given, HostWork
from .lockstep import ACCUMULATED, DETERMINANTS, LANES, OUTCOME, REPORT, THREADS, LaneCommands, LockstepProgram

if TYPE_CHECKING:
    from ..interface import Analysis
    from ..problem import Problem

HALF = (
    "a refactorization of this batch was interrupted, so some systems have new values and others old ones: refactor it"
)
#: Fields of `report` for every system.
REPORTED = struct("shared/lockstep.hpp", "LockstepReport")


class LockstepBatch(Batch):
    """Factors of `count` systems on a device.

    Commands go to the caller's stream, and only `report`, `errors`, `steps`, `slogdet`, `values`, `accumulated`
    and calls with arrays of the host wait.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    overlaps = True

    def __init__(self, program: LockstepProgram, count: int, limit: int | None = None):
        self.count, self.n, self.nnz = count, program.n, program.pattern.nnz
        self._program, self._device = program, program.device
        self._dtype, self._groups = program.dtype, -(-count // LANES)
        self._lock, self._interrupted = RLock(), Interrupted([program.device])
        self._half = False  # a refactorization did not complete
        self._order = StreamOrder(program.device)
        self._busy = False  # there was no wait for the last commands
        self._unchecked = False  # calls were made without a check
        self._in_graphs = False  # graphs of the caller's have commands of this batch, and may run at any time
        self._known: set[str] = set()  # kinds of calls with kernels that have run
        self._taken: Any = None  # event after which the values of the last refactorization are in lanes
        self._copies: SystemCopies | None = None
        device = self._device
        self.device_array = device.array_class
        with device:
            program.prepare()
            sizes, usable = program.sizes(self._groups), usable_bytes(device, limit)
            self.nbytes = sum(sizes.values())
            if self.nbytes > usable:
                raise DeviceMemoryError(self.nbytes, usable)
            self._memory = {name: device.empty(size) for name, size in sizes.items()}
            self._sources: tuple[Any, Buffer | None] = (None, None)
            self._commands = LaneCommands(program, self._memory, count)
            device.own_stream().clear(self._memory["accumulated"].pointer, sizes["accumulated"])
            device.own_stream().synchronize()

    def __del__(self) -> None:
        try:
            self._interrupted.keep((self._memory, self._copies))
            if self._busy:  # its memory must not be freed before
                with self._device:
                    self._order.begin().synchronize()
        except Exception:  # at the end of the process there may be no CUDA any more, nor `suppress`
            pass

    # ---- what the facade calls

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        if wait:
            self._refactor(values, source)
        else:
            self._enqueue(values, source)

    def _refactor(
        self, values: Any, source: np.ndarray | None, between: Callable[[Stream], None] | None = None
    ) -> None:
        """`between`: adds commands that need the values in lanes, but not the factors."""
        with self._device, self._lock, self._interrupted:
            stream = self._order.begin()
            pointer, held = self._on_device(stream, values)
            from_where = self._source(source)
            self._half = True
            self._commands.take(stream, pointer, values.shape[1], from_where)
            self._taken = stream.record()
            if between is not None:
                between(stream)
            self._commands.factor(stream)
            self._leave(stream, held)
            self._half = False

    def _solve_overlapped(self, given: Given | None, b: Any, trans: int, host_work: HostWork) -> Any:
        """`solve` while the host works on some of the systems.

        Systems with replaced pivots are not refined: they need other pivots.
        """
        with self._device, self._lock, self._interrupted:
            copies = self._copies = self._copies or SystemCopies(self._device, self._dtype, self.nnz)
            stream = self._order.begin()
            copies.take_rhs(b, host_work.systems, stream.record())
            if given is not None:
                self._refactor(*given, lambda stream: copies.take_values(self._commands, host_work.stale, stream))
            elif host_work.stale:
                copies.stream.wait(stream.record() if self._taken is None or self._in_graphs else self._taken)
                copies.take_values(self._commands, host_work.stale, copies.stream)

            def work() -> None:
                copies.stream.synchronize()
                host_work.work(copies.values[: len(host_work.stale)], copies.rhs)

            stream.wait(copies.stream.record())  # later commands of the stream may overwrite what is copied
            return self._solve(b, trans, None, work)

    def solve(
        self,
        b: Any,
        trans: int = 0,
        given: Given | None = None,
        *,
        out: Any = None,
        wait: bool = True,
        host_work: HostWork | None = None,
    ) -> Any:
        """As `Batch.solve`; `out`: also where the solutions go if `b` is on the host."""
        if not wait:
            values, source = given or (None, None)
            return self._enqueue(values, source, b, trans, out)
        if host_work:
            return self._solve_overlapped(given, b, trans, host_work)
        if given is not None:
            self._refactor(*given)
        return self._solve(b, trans, out)

    def _solve(self, b: Any, trans: int, out: np.ndarray | None, host_work: Callable[[], None] | None = None) -> Any:
        """`host_work`: called meanwhile."""
        with self._device, self._lock, self._interrupted:
            stream = self._order.begin()
            self._must_be_whole()
            columns = 1 if b.ndim == 2 else b.shape[2]
            on_host = type(b) is not self._device.array_class
            x = self._device.array(b.shape[::-1], self._dtype).T
            given, held = self._on_device(stream, b)
            self._commands.solve(stream, given, self._device.pointer(x), columns, trans, host_work is None)
            if host_work is not None:
                host_work()
            self._leave(stream, held)
            if not on_host:
                return x
            found = np.empty(b.shape, self._dtype) if out is None else out
            self._device.fetch(stream, found, self._device.pointer(x))
            return found

    def report(self) -> np.ndarray:
        """Status of every system, type REPORTED; waits."""
        return self._reported(self._read("factoring", REPORT, self.count))

    def _reported(self, given: np.ndarray) -> np.ndarray:
        """The status that the kernels wrote, as type REPORTED."""
        found = np.zeros(self.count, REPORTED)
        largest, upper = (real_of(given[name], self._dtype) for name in ("entry", "upper"))
        found["multiplier"] = real_of(given["multiplier"], self._dtype)
        np.divide(upper, largest, out=found["growth"], where=(largest > 0) & np.isfinite(largest))
        found["n_perturbed"], found["n_tiny"] = given["n_perturbed"], given["n_tiny"]
        position = self.n - given["failed"]
        perm = self._program.core.col_perm
        found["failed"] = np.where(given["failed"] > 0, perm[np.minimum(position, self.n - 1)], -1)
        found["not_finite"] = given["not_finite"] > 0
        most = _core.SYMMETRY_UNITS * EPS[self._dtype] * given["largest"]
        found["not_symmetric"] = (given["asymmetric"] > 0) | (given["asymmetry"] > most)
        return found

    def errors(self) -> np.ndarray:
        """Normwise backward errors of the last solve, shape (count,); waits."""
        return self._read("outcomes", OUTCOME, self.count)["error"]

    @property
    def steps(self) -> np.ndarray:  # type: ignore[override]
        """Of refinement in the last solve, shape (count,); waits."""
        return self._read("outcomes", OUTCOME, self.count)["steps"]

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign and logarithm of the modulus of every determinant; waits."""
        program, device, systems = self._program, self._device, self._groups * LANES
        wide = np.dtype("D" if self._dtype.kind == "c" else "d")
        with device, self._lock, self._interrupted:
            self._must_be_whole()
            diagonal, out = program.diagonal, device.empty(systems * (8 + wide.itemsize))
            device.own_stream().synchronize()
            stream = self._order.begin()
            shape = self._groups, THREADS, 2 * THREADS * wide.itemsize
            fields = {"factor": self._memory["factor"], "factor_size": program.core.factor_size, "n": self.n}
            fields |= {"diagonal": diagonal, "logs": out, "signs": out.pointer + 8 * systems}
            with outliving(device, out):
                program.launch(stream, DETERMINANTS, "lane_determinants", shape, **fields)
                self._leave(stream)
                raw = self._read_buffer(out, systems * (8 + wide.itemsize))
        logs, signs = raw[: 8 * systems].view("d"), raw[8 * systems :].view(wide)
        sign, shift = outer_determinant(program.core)
        return sign * signs[: self.count].astype(self._dtype), logs[: self.count] + shift

    def values(self, system: int) -> np.ndarray:
        """Canonical values of one system that were factored last, on the host; waits."""
        with self._device, self._lock, self._interrupted:
            nbytes = self.nnz * self._dtype.itemsize
            to, number = self._device.empty(nbytes), self._device.upload(np.array([system], np.int32))
            with outliving(self._device, (to, number)):
                self._commands.copy_systems(self._order.begin(), number, 1, to.pointer)
                return self._read_buffer(to, nbytes).view(self._dtype)

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries of every system's inverse on the pattern, and their errors, computed on the host; waits."""
        program, groups = self._program, range(self._groups)
        found = [self._inverse_of_group(program.core, program.pattern, group) for group in groups]
        entries, errors = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return entries, errors

    def _inverse_of_group(self, core: Any, pattern: Any, group: int) -> tuple[np.ndarray, np.ndarray]:
        systems, arrays = min(LANES, self.count - group * LANES), []
        for name, size in (("factor", core.factor_size), ("values", self.nnz)):
            whole = size * LANES * self._dtype.itemsize
            entries = self._read_buffer(self._memory[name], whole, group * whole).view(self._dtype)
            arrays.append(np.ascontiguousarray(entries.reshape(size, LANES)[:, :systems].T))
        return core.inverse_on_pattern(pattern.ptr, pattern.ind, *arrays)

    # ---- deferred calls: their status accumulates on the device

    def _enqueue(
        self, values: Any = None, source: np.ndarray | None = None, b: Any = None, trans: int = 0, x: Any = None
    ) -> Any:
        """`refactor` with `values`, `solve` with `b` and to `x`, or both; may become part of a graph of the caller's.

        Arrays are on the device, in the layout of the kernels; `x` may be `b`.
        """
        kind = "refactor" if b is None else "solve" if values is None else "refactor_solve"
        with self._device, self._lock, self._interrupted:
            for name, array in (("values", values), ("rhs", b), ("out", x)):
                if array is not None and not self._device.can_read(array):
                    raise ValueError(f"check='later' copies nothing: {name} is on another device, or not aligned")
            if b is not None and x is None:
                x = self._device.array(b.shape[::-1], self._dtype).T
            if not self._device.caller_stream().captured:
                stream = self._order.begin()
                if values is None:
                    self._must_be_whole()
                from_where = self._source(source)
                self._half, self._unchecked = values is not None, True
                self._taken = None if values is not None else self._taken
                self._add_commands(stream, values, from_where, b, trans, x)
                self._leave(stream)
                self._half = False
                self._known.add(kind)
            elif kind not in self._known or (source is not None and self._sources[0] is not source):
                raise RuntimeError(
                    "nothing can be allocated or compiled while a stream is captured; make the same call once before"
                )
            else:
                self._in_graphs = True
                with self._device.captured() as stream:
                    self._add_commands(stream, values, self._source(source), b, trans, x)
            self._unchecked = True
            return x

    def _add_commands(self, stream: Stream, values: Any, source: Buffer | None, b: Any, trans: int, x: Any) -> None:
        commands, pointer = self._commands, self._device.pointer
        if values is not None:
            commands.take(stream, pointer(values), values.shape[1], source)
            commands.factor(stream)
        columns = 0 if b is None else 1 if b.ndim == 2 else b.shape[2]
        if columns:
            commands.solve(stream, pointer(b), pointer(x), columns, trans)
        commands.add_up(stream, values is not None, pointer(x) if columns else 0, columns)

    def accumulated(self) -> Accumulated | None:
        """Accumulated status of such calls for every system, then reset; None if there was none. Waits if there was.

        Raises
        ------
        RuntimeError
            The caller's stream is captured.
        """
        with self._device, self._lock, self._interrupted:
            stream = self._order.begin()
            if not (self._unchecked or self._in_graphs):
                return None
            if self._in_graphs:  # graphs of the caller's add to it, in whatever stream they are launched
                self._device.synchronize()
            found = self._read("accumulated", ACCUMULATED, self.count)
            stream.clear(self._memory["accumulated"].pointer, self._memory["accumulated"].nbytes)
            self._leave(stream)
            self._unchecked = False
        n_factored, n_solved = int(found["n_factored"][0]), int(found["n_solved"][0])
        if not (n_factored or n_solved):
            return None
        return Accumulated(self._reported(found["worst"]), found["error"], n_factored, n_solved)

    # ---- commands

    def _must_be_whole(self) -> None:
        if self._half:
            raise RuntimeError(HALF)

    def _leave(self, stream: Stream, held: Buffer | None = None) -> None:
        """The host continues without waiting, unless `held` is read until then."""
        if held is not None:
            with outliving(self._device, held):
                stream.synchronize()
        self._order.leave(stream)
        self._busy = held is None

    def _on_device(self, stream: Stream, array: Any) -> tuple[int, Buffer | None]:
        """Address of a C-contiguous array on the device, and the copy if the array was on the host."""
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
        """Bytes of a buffer, after all submitted commands."""
        with self._device, self._lock, self._interrupted:
            self._must_be_whole()
            stream, found = self._order.begin(), np.empty(nbytes, np.uint8)
            self._device.fetch(stream, found, buffer.pointer + offset)
            self._busy = False
        return found


class SystemCopies:
    """Copies of some systems' values and right-hand sides in page-locked memory of the host.

    Parameters
    ----------
    device : cuda.devices.Device
    dtype : dtype
    nnz : int

    Attributes
    ----------
    stream : Stream
        Of the copies; concurrent with the caller's.
    values, rhs : ndarray
        Shapes (systems, nnz) and (systems, n) or (systems, n, k); complete after the stream is synchronized.
    """

    def __init__(self, device: Any, dtype: np.dtype, nnz: int):
        self._device, self._dtype, self._nnz = device, dtype, nnz
        self.stream: Stream = device.new_stream()
        self.values = self.rhs = np.empty((0, nnz), dtype)
        self._systems: list[int] | None = None
        self._numbers: Buffer | None = None
        self._gathered: Buffer | None = None

    def take_rhs(self, b: Any, systems: list[int], ready: Any) -> None:
        """Copy right-hand sides of these systems, after the event `ready` if `b` is on the device."""
        if type(b) is not self._device.array_class:
            self.rhs = b[systems]
            return
        self.rhs = self._pinned(self.rhs, (len(systems), *b.shape[1:]))
        self.stream.wait(ready)
        for row, system in zip(self.rhs, systems, strict=True):
            self.stream.copy(row.ctypes.data, self._device.pointer(b) + system * row.nbytes, row.nbytes)

    def take_values(self, commands: LaneCommands, systems: list[int], stream: Stream) -> None:
        """Copy values of these systems, gathered by `stream`."""
        if systems != self._systems:
            self._reserve(systems)
        if self._numbers is not None and self._gathered is not None:
            commands.copy_systems(stream, self._numbers, len(systems), self._gathered.pointer)
            if stream is not self.stream:
                self.stream.wait(stream.record())
            self.stream.copy(self.values.ctypes.data, self._gathered.pointer, self.values.nbytes)

    def _reserve(self, systems: list[int]) -> None:
        """Allocate memory for the values of these."""
        self._systems, self._numbers, self._gathered = None, None, None
        self.values = self._pinned(self.values, (len(systems), self._nnz))
        if systems:
            gathered = self._device.empty(self.values.nbytes)
            self._numbers = self._device.upload(np.array(systems, np.int32))  # after the allocation
            self._gathered = gathered
        self._systems = systems

    def _pinned(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """An array of this shape, the existing one if its shape matches."""
        if array.shape == shape:
            return array
        return self._device.pinned(self._dtype, math.prod(shape)).reshape(shape)


def real_of(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers with these leading bits (kernels/common/pivots.cuh)."""
    if dtype.char in "fF":
        return bits.view(np.float32).astype(float)
    return (bits.astype(np.uint64) << np.uint64(32)).view(float)


def make_batch(problem: Problem, analysis: Analysis, device: Any, count: int) -> LockstepBatch | None:
    """Memory and kernels for `count` systems; None if pivots cannot be fixed or a front is too large.

    Raises
    ------
    DeviceMemoryError
    """
    core, dtype, groups = analysis.core, problem.dtype, -(-count // LANES)
    fixed = problem.cholesky or (problem.kind == "lu" and problem.options.matching)
    if not fixed or not 0 < problem.n == core.structural_rank:
        return None

    def made() -> LockstepProgram:
        return LockstepProgram(device, core.with_scales_of(dtype.char), problem.pattern, dtype, groups)

    try:
        program: LockstepProgram = problem.memo(("supernodal.lockstep", dtype, groups, device.index), made)
    except ValueError:  # a front has too many rows
        return None
    return LockstepBatch(program, count, problem.request.device_memory)


def shares(count: int, speeds: Sequence[float]) -> list[int]:
    """How many of `count` systems each device gets: whole groups of a warp's lanes if there are enough, and in any
    case some for the first one."""
    step = LANES if count >= LANES * len(speeds) else 1
    ends = np.cumsum(speeds) / sum(speeds) * count
    bounds = [0, *(int(np.ceil(end / step)) * step for end in ends[:-1]), count]
    return [int(some) for some in np.diff(np.minimum(bounds, count))]


class DistributedBatch(Batch):
    """A batch on several devices.

    Parameters
    ----------
    batches : list of LockstepBatch
        Of the devices that have systems, the first device's first.
    devices : list of cuda.devices.Device
    """

    def __init__(self, batches: list[LockstepBatch], devices: list[Any]):
        self._batches, self._devices = batches, devices
        self._lead = devices[0]
        self._dtype = batches[0]._dtype
        ends = np.cumsum([batch.count for batch in batches]).tolist()
        self._ranges = [slice(end - batch.count, end) for end, batch in zip(ends, batches, strict=True)]
        self.n, self.count = batches[0].n, ends[-1]
        self.nbytes = sum(batch.nbytes for batch in batches)

    # ---- what the facade calls

    def refactor(self, values: Any, source: np.ndarray | None = None, *, wait: bool = True) -> None:
        if type(values) is not self._lead.array_class:
            self._together(lambda k: self._batches[k].refactor(values[self._ranges[k]], source))
            return
        with self._spread(values) as parts:
            for batch, part in zip(self._batches, parts, strict=True):
                batch.refactor(part, source)

    def solve(self, b: Any, trans: int = 0, given: Given | None = None, **options: Any) -> Any:
        if given is not None:
            self.refactor(*given)
        if type(b) is not self._lead.array_class:
            x, ranges = np.empty(b.shape, self._dtype), self._ranges
            self._together(lambda k: self._batches[k].solve(b[ranges[k]], trans, out=x[ranges[k]]))
            return x
        with self._spread(b) as parts:
            found = [batch.solve(part, trans) for batch, part in zip(self._batches, parts, strict=True)]
        with self._lead:
            x = self._lead.array(b.shape[::-1], self._dtype).T
        for device, part, which in zip(self._devices, found, self._ranges, strict=True):
            self._copy(device, part, self._lead, x[which])
        return x

    def report(self) -> np.ndarray:
        return np.concatenate(self._together(lambda k: self._batches[k].report()))

    def errors(self) -> np.ndarray:
        return np.concatenate(self._together(lambda k: self._batches[k].errors()))

    @property
    def steps(self) -> np.ndarray:  # type: ignore[override]
        """Of refinement in the last solve, shape (count,); waits."""
        return np.concatenate([batch.steps for batch in self._batches])

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        signs, logs = zip(*self._together(lambda k: self._batches[k].slogdet()), strict=True)
        return np.concatenate(signs), np.concatenate(logs)

    def inverse_on_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        entries, errors = zip(*self._together(lambda k: self._batches[k].inverse_on_pattern()), strict=True)
        return np.concatenate(entries), np.concatenate(errors)

    def values(self, system: int) -> np.ndarray:
        k = next(k for k, which in enumerate(self._ranges) if system < which.stop)
        return self._batches[k].values(system - self._ranges[k].start)

    # ---- between the devices

    def _together(self, call: Callable[[int], Any]) -> list[Any]:
        """The results of `call` for every device; each waits for the host in its own thread."""
        with failures(self._devices):
            pool = ThreadPoolExecutor(len(self._batches))
            futures = [pool.submit(call, k) for k in range(len(self._batches))]
            try:
                wait(futures)
            finally:
                pool.shutdown(wait=False)  # only `wait` waits, which signals can interrupt
            return [one.result() for one in futures]

    @contextmanager
    def _spread(self, array: Any) -> Iterator[list[Any]]:
        """The systems' parts of an array on the first device, each on their own device. Commands that the first device
        gets meanwhile run concurrently with the copies, and before any later change of the array."""
        lead, parts, ends = self._lead, [array[which] for which in self._ranges], []
        with lead:
            begin = lead.caller_stream().record()
        for k, device in enumerate(self._devices[1:], 1):
            with device:
                copy = device.array(parts[k].shape[::-1], array.dtype).T
            ends.append(self._copy(lead, parts[k], device, copy, begin))
            parts[k] = copy
        try:
            yield parts
        finally:
            with lead:
                for end in filter(None, ends):
                    lead.caller_stream().wait(end)

    def _copy(self, source: Any, array: Any, target: Any, to: Any, begin: Any = None) -> Any:
        """Copy a C-contiguous array before later commands of the target's stream. With `begin`, the copy runs after
        that event, and its completion event is returned; else it runs after the earlier commands of the source's
        stream, and before later ones."""
        with failures(self._devices):
            if not source.reaches(target):
                with source:
                    on_host = array.get()
                with target:
                    to.set(on_host)
                return None
            with source:
                behind = begin or source.caller_stream().record()
            with target:
                stream = target.caller_stream()
                stream.wait(behind)
                stream.copy(target.pointer(to), source.pointer(array), array.nbytes)
                end = stream.record()
            if begin is None:
                with source:
                    source.caller_stream().wait(end)
            return end
