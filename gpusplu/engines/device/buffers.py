"""Memory of one factor: arrays on its device that graphs read and write, and page-locked host memory that they copy to.

`Buffers` has what every factor needs and what its program asks for; `Vectors` the work memory of solves; `Staging` the
host's side; `AccumulatedBuffer` the status of deferred calls. Everything lies at fixed addresses, since graphs
contain them.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...common.matrix import EPS
from ...cuda.devices import usable_bytes
from ...cuda.layout import constant, struct
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError

# ---- Page-locked host memory that a factor's values and vectors pass through, at addresses that graphs contain

STATUS = struct("shared/values.hpp", "Status")
STAGED = 1 << 26  # most bytes of an array; larger ones go in chunks (cuda/chunked_copies.py)


#: Status of a factorization and a measured solve, with the members of the struct.
Status: Any = namedtuple("Status", STATUS.names or ())  # type: ignore[misc]


def is_asymmetric(found: Any, dtype: np.dtype) -> bool:
    """Whether new values of `dtype` differed by more than rounding from those that they must equal."""
    return bool(found.asymmetry > _core.SYMMETRY_UNITS * EPS[dtype] * found.largest)


class Staging:
    """The status of one factor and, from first use on, staging arrays for the caller's arrays on the host.

    Attributes
    ----------
    status : ndarray of STATUS, shape ()
        Written by the device.
    values : ndarray, shape (pattern.size,)
    b, x : ndarray, shape (n,)
        One right-hand side and its solution.
    """

    def __init__(self, program: Any):
        self._program, self._device = program, program.device
        self.status = self._device.pinned(STATUS, 1)[0:1].reshape(())
        self.status_address = int(self.status.ctypes.data)  # page-locked, so kernels use the same address
        self._largest = self.status["largest"]
        self._some: np.ndarray | None = None

    def forget(self) -> None:
        """Make `status_arrived` report whether the device has written the status after this call."""
        self._largest[()] = 0

    @property
    def status_arrived(self) -> bool:
        """Whether the device has written it; the caller has waited. Undecidable for a matrix with only zeros."""
        return bool(self._largest[()] > 0)

    @cached_property
    def small(self) -> bool:
        """Whether graphs may pass values and a right-hand side through here."""
        most = max(self._program.pattern.size, self._program.n)
        return bool(most * self._program.dtype.itemsize <= STAGED)

    values = cached_property(lambda self: self._pinned(self._program.pattern.size))
    b = cached_property(lambda self: self._pinned(self._program.n))
    x = cached_property(lambda self: self._pinned(self._program.n))

    def _pinned(self, count: int) -> np.ndarray:
        return self._device.pinned(self._program.dtype, count)

    def take(self, values: np.ndarray | None = None, b: np.ndarray | None = None) -> None:
        """Copy the arguments to the arrays that graphs copy from."""
        if values is not None:
            _core.copy(self.values, values)
        if b is not None:
            self.b[...] = b.reshape(-1)

    def some(self, nbytes: int) -> np.ndarray:
        """Memory for other arrays, used until the next call; pageable if it is large [bytes]."""
        if nbytes > STAGED:
            return np.empty(nbytes, np.uint8)
        if self._some is None or self._some.size < nbytes:
            self._some = self._device.pinned(np.dtype(np.uint8), nbytes)
        return self._some[:nbytes]

    def stage(self, array: np.ndarray) -> np.ndarray:
        """`array`, column by column, in memory that copies can read."""
        staged = self.values if self._is_values(array) else self.some(array.nbytes).view(array.dtype)
        staged[...] = array.reshape(-1, order="F")
        return staged

    def _is_values(self, array: np.ndarray) -> bool:
        return array.ndim == 1 and array.size == self._program.pattern.size != self._program.n


# ---- Device memory that factors write, and how much of it they need

GROUP = constant("shared/values.hpp", "RHS_GROUP")  # right-hand sides that a kernel takes together if there are several
MOST_RHS = constant("shared/values.hpp", "MOST_RHS")  # solved at a time


class Memory(NamedTuple):
    """Bytes of the arrays that a program requests by name: with any contents, set to zero once, and on the host."""

    empty: dict[str, int]
    zeros: dict[str, int]
    host: dict[str, int] = {}  # noqa: RUF012 (never changed)

    @property
    def nbytes(self) -> int:
        """On the device [bytes]."""
        return sum(self.empty.values()) + sum(self.zeros.values())

    def allocate(self, device: Any) -> dict[str, Buffer]:
        empty = {name: device.empty(nbytes) for name, nbytes in self.empty.items()}
        host = {name: device.host(nbytes) for name, nbytes in self.host.items() if nbytes}
        return empty | host | {name: device.zeros(nbytes) for name, nbytes in self.zeros.items()}


class Buffers:
    """Arrays that one factor writes on the device, all allocated here or, for right-hand sides, on first use.

    Attributes
    ----------
    values, previous, input : Buffer
        Canonical values that are factored, those before them, and the caller's.
    own : dict of Buffer
        Requested by the program.
    device_status : Buffer
        ``struct Status``.
    peers : object
        The program's memory on other devices.
    host : Staging
        Staging memory on the host.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    def __init__(self, program: Any, limit: int | None = None):
        self._program, self._limit, device = program, limit, program.device
        pattern, itemsize = program.pattern, program.dtype.itemsize
        free = usable_bytes(device, limit)
        if missing := program.missing_bytes(free + program.plan_bytes):
            raise DeviceMemoryError(free + missing, free)
        self.values, self.previous = device.empty(pattern.nnz * itemsize), device.empty(pattern.nnz * itemsize)
        self.input = device.empty(pattern.size * itemsize)
        memory = program.factor_memory()
        self.own = memory.allocate(device)
        self.device_status = device.zeros(STATUS.itemsize)
        self.peers = program.factor_peers()
        self.host = Staging(program)
        self._vectors: dict[bool, Vectors] = {}
        self.nbytes = 2 * self.values.nbytes + self.input.nbytes + memory.nbytes + self.device_status.nbytes
        device.own_stream().synchronize()

    def vectors(self, nrhs: int) -> Vectors:
        """Buffers for that many right-hand sides."""
        several = nrhs > 1
        if several not in self._vectors:
            self._vectors[several] = Vectors(self._program, self.rhs_per_solve(MOST_RHS) if several else 1)
            self.nbytes += self._vectors[several].nbytes
        return self._vectors[several]

    def chunks(self, nrhs: int) -> list[tuple[int, int]]:
        """Ranges of several right-hand sides that are solved together."""
        return chunks(nrhs, self.rhs_per_solve(min(max(nrhs, 1), MOST_RHS)))

    def rhs_per_solve(self, nrhs: int) -> int:
        """Right-hand sides that are solved for together if `nrhs` are given: fewer if memory is short."""
        if nrhs == 1:
            return 1  # asking the driver for free memory at every solve is slow
        if True in self._vectors:
            return min(nrhs, self._vectors[True].capacity)
        capacity, available = MOST_RHS, self._program.free_bytes() // 2
        if self._limit is not None:
            available = min(available, self._limit - self._program.needed_bytes)
        while capacity > GROUP and Vectors.bytes_for(self._program, capacity) > available:
            capacity //= 2
        if self._limit is not None and Vectors.bytes_for(self._program, capacity) > available:
            return 1
        return min(nrhs, capacity)


class Vectors:
    """Work memory of solves with up to `capacity` right-hand sides: that of refinement, and the program's `own`."""

    def __init__(self, program: Any, capacity: int):
        device = program.device
        self.capacity = capacity
        self.groups = -(-capacity // (1 if capacity == 1 else GROUP))
        *dense, norms, done = vector_sizes(program.n, capacity, program.dtype.itemsize)
        self.b, self.x, self.residual, self.step, self.kept = map(device.empty, dense)
        self.own = program.vector_memory(capacity).allocate(device)
        self.peers = program.vector_peers(capacity)
        self.norms, self.done = device.zeros(norms), device.zeros(done)
        self.nbytes = Vectors.bytes_for(program, capacity)
        device.own_stream().synchronize()

    @staticmethod
    def bytes_for(program: Any, capacity: int) -> int:
        """Device memory that vectors of this capacity take [bytes]."""
        own = program.vector_memory(capacity).nbytes
        return int(sum(vector_sizes(program.n, capacity, program.dtype.itemsize)) + own)


class Solve(NamedTuple):
    """op(A) X = B for columns that are n apart.

    Attributes
    ----------
    vectors : Vectors
        Work memory.
    trans, nrhs : int
    b, x : Buffer
    """

    vectors: Any
    trans: int
    nrhs: int
    b: Buffer
    x: Buffer


def vector_sizes(n: int, capacity: int, itemsize: int) -> list[int]:
    """Of the arrays of `Vectors` that are not the program's: five of right-hand sides, then norms, of A and three of
    every right-hand side, and the counter of blocks (kernels/common/residual.cu) [bytes]."""
    return [n * capacity * itemsize] * 5 + [8 * (1 + 3 * capacity), 4]


def chunks(nrhs: int, width: int) -> list[tuple[int, int]]:
    """Ranges of several right-hand sides that are solved together: never a single one, for which other kernels
    exist."""
    found, begin = [], 0
    while begin < nrhs:
        end = min(begin + width, nrhs)
        end -= nrhs - end == 1 and end - begin > 2
        found.append((begin, end))
        begin = end
    return found


# ---- Status of deferred calls

ACCUMULATED = struct("shared/values.hpp", "AccumulatedStatus")


#: Accumulated status of deferred calls, with the members of the struct.
AccumulatedStatus: Any = namedtuple("AccumulatedStatus", ACCUMULATED.names or ())  # type: ignore[misc]


def accumulated_status(read: Any) -> Any:
    """From a record of ACCUMULATED."""
    last, worst, *numbers = read.item()
    return AccumulatedStatus._make((Status(*last), Status(*worst), *numbers))


#: Of no calls.
NO_CALLS = accumulated_status(np.zeros((), ACCUMULATED))


class AccumulatedBuffer:
    """Accumulated status on the device, and page-locked memory that it is read into.

    Attributes
    ----------
    pointer : int
    """

    def __init__(self, device: Any):
        self._memory = device.zeros(ACCUMULATED.itemsize)
        self.pointer = self._memory.pointer
        self._read = device.pinned(ACCUMULATED, 1)
        device.own_stream().synchronize()

    def read(self, stream: Stream) -> Any:
        """Wait until the status of all earlier commands of this stream is accumulated, and return it. A signal loses
        nothing."""
        stream.copy(self._read.ctypes.data, self.pointer, ACCUMULATED.itemsize)
        stream.synchronize()
        return accumulated_status(self._read[0])

    def clear(self, stream: Stream) -> None:
        stream.clear(self.pointer, ACCUMULATED.itemsize)
