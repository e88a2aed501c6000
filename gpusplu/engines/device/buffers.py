"""Device memory that factors write, and how much of it they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...cuda.devices import usable_bytes
from ...cuda.layout import constant
from ...cuda.stream import Buffer
from ...errors import DeviceMemoryError
from .staging import STATUS, Staging

if TYPE_CHECKING:
    from .program import Program

GROUP = constant("shared/values.hpp", "RHS_GROUP")  # right-hand sides that a kernel takes together if there are several
MOST_RHS = constant("shared/values.hpp", "MOST_RHS")  # solved at a time


class Memory(NamedTuple):
    """Bytes of the arrays that a program asks for by name: with any contents, set to zero once, and on the host."""

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
    """What one factor writes on the device, all of it allocated here or, for right-hand sides, on first use.

    Attributes
    ----------
    values, previous, input : Buffer
        Canonical values that are factored, those before them, and the caller's.
    own : dict of Buffer
        What the program asked for.
    device_status : Buffer
        ``struct Status``.
    beside : object
        What the program has on other devices.
    host : Staging
        What passes through memory of the host.

    Raises
    ------
    DeviceMemoryError
        Before anything is allocated, if it cannot fit.
    """

    def __init__(self, program: Program, limit: int | None = None):
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
        self.beside = program.factor_beside()
        self.host = Staging(program)
        self._vectors: dict[bool, Vectors] = {}
        self.nbytes = 2 * self.values.nbytes + self.input.nbytes + memory.nbytes + self.device_status.nbytes
        device.own_stream().synchronize()

    def vectors(self, nrhs: int) -> Vectors:
        """Buffers for that many right-hand sides."""
        several = nrhs > 1
        if several not in self._vectors:
            self._vectors[several] = Vectors(self._program, self.rhs_at_once(MOST_RHS) if several else 1)
            self.nbytes += self._vectors[several].nbytes
        return self._vectors[several]

    def chunks(self, nrhs: int) -> list[tuple[int, int]]:
        """Ranges of several right-hand sides that are solved together."""
        return chunks(nrhs, self.rhs_at_once(min(max(nrhs, 1), MOST_RHS)))

    def rhs_at_once(self, nrhs: int) -> int:
        """Right-hand sides that are solved for together if `nrhs` are given: fewer where memory is short."""
        if nrhs == 1:
            return 1  # the driver is not asked for free memory at every solve
        if True in self._vectors:
            return min(nrhs, self._vectors[True].capacity)
        capacity, spare = MOST_RHS, self._program.free_bytes() // 2
        if self._limit is not None:
            spare = min(spare, self._limit - self._program.needed_bytes)
        while capacity > GROUP and Vectors.bytes_for(self._program, capacity) > spare:
            capacity //= 2
        if self._limit is not None and Vectors.bytes_for(self._program, capacity) > spare:
            return 1
        return min(nrhs, capacity)


class Vectors:
    """Work memory of solves with up to `capacity` right-hand sides: that of refinement, and the program's `own`."""

    def __init__(self, program: Program, capacity: int):
        device = program.device
        self.capacity = capacity
        self.groups = -(-capacity // (1 if capacity == 1 else GROUP))
        *dense, norms, done = vector_sizes(program.n, capacity, program.dtype.itemsize)
        self.b, self.x, self.residual, self.step, self.kept = map(device.empty, dense)
        self.own = program.vector_memory(capacity).allocate(device)
        self.beside = program.vectors_beside(capacity)
        self.norms, self.done = device.zeros(norms), device.zeros(done)
        self.nbytes = Vectors.bytes_for(program, capacity)
        device.own_stream().synchronize()

    @staticmethod
    def bytes_for(program: Program, capacity: int) -> int:
        """Device memory that vectors of this capacity take [bytes]."""
        own = program.vector_memory(capacity).nbytes
        return int(sum(vector_sizes(program.n, capacity, program.dtype.itemsize)) + own)


def vector_sizes(n: int, capacity: int, itemsize: int) -> list[int]:
    """Of the arrays of `Vectors` that are not the program's: five of right-hand sides, then norms, of A and three of
    every right-hand side, and the counter of blocks (kernels/common/residual.cu) [bytes]."""
    return [n * capacity * itemsize] * 5 + [8 * (1 + 3 * capacity), 4]


def chunks(nrhs: int, at_once: int) -> list[tuple[int, int]]:
    """Ranges of several right-hand sides that are solved together: never one alone, which other kernels solve."""
    found, begin = [], 0
    while begin < nrhs:
        end = min(begin + at_once, nrhs)
        end -= nrhs - end == 1 and end - begin > 2
        found.append((begin, end))
        begin = end
    return found
