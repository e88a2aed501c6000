"""A plan on a device, and its launches.

`Program` is what the programs of all engines share: the plan's memory, the path of values into a factor, the residual
of a solve. Subclasses define how to factor and to solve. A program holds what all factors on one pattern and of one
dtype have in common; `Buffers` has what one factor writes.

Uploads are a separate step: `ready_to_factor`, `ready_to_solve` and `ready_to_measure` upload what the commands of that
name need, and load its kernels. Every method with a stream then only adds commands to it, so that graphs can be made of
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...common.matrix import EPS, Pattern
from ...cuda.devices import usable_bytes
from ...cuda.layout import constant, record, struct
from ...cuda.stream import Buffer, Stream
from ...errors import DeviceMemoryError
from .part import COMMON, RESIDUAL, SHARED, THREADS, VALUES, WARP, MatrixPart, Part, address

# ---- Page-locked host memory that a factor's values and vectors pass through, at addresses that graphs contain

STATUS = struct("shared/values.hpp", "Status")
STAGED = 1 << 26  # most bytes of an array; larger ones go in chunks (cuda/chunked_copies.py)


class Status(NamedTuple):
    """Status of a factorization and a measured solve: ``struct Status`` of kernels/shared/values.hpp."""

    n_perturbed: int
    n_tiny: int
    not_finite: int
    largest: float
    asymmetry: float
    growth: float
    residual: float
    x_norm: float
    b_norm: float
    a_norm: float


NOTHING = Status(*([0] * 3), *([0.0] * 7))


def is_asymmetric(found: Status, dtype: np.dtype) -> bool:
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

    def __init__(self, program: Program):
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

    @cached_property
    def values(self) -> np.ndarray:
        return self._pinned(self._program.pattern.size)

    @cached_property
    def b(self) -> np.ndarray:
        return self._pinned(self._program.n)

    @cached_property
    def x(self) -> np.ndarray:
        return self._pinned(self._program.n)

    def _pinned(self, count: int) -> np.ndarray:
        array: np.ndarray = self._device.pinned(self._program.dtype, count)
        return array

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

    def __init__(self, program: Program, capacity: int):
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
    def bytes_for(program: Program, capacity: int) -> int:
        """Device memory that vectors of this capacity take [bytes]."""
        own = program.vector_memory(capacity).nbytes
        return int(sum(vector_sizes(program.n, capacity, program.dtype.itemsize)) + own)


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


RESIDUAL_BYTES = constant(SHARED, "RESIDUAL_SHARED_BYTES")


class Program(MatrixPart, ABC):
    """A plan in the memory of a device.

    Parameters
    ----------
    device : cuda.devices.Device
    pattern : Pattern
    dtype : dtype
    kind : int, optional

    Attributes
    ----------
    devices : tuple of cuda.devices.Device
    parts : tuple of Part
        That it is composed of.
    nnz : int
        Entries of the factors, explicit zeros included.
    needed_bytes : int
        Device memory of the plan and of a factor with one right-hand side at a time [bytes].
    flops : float
        Of one factorization [flop].
    factor_seconds, solve_seconds : float
        Predicted [s]; -1 without a prediction.
    growth_bound : float
        Larger multipliers are taken as a sign of bad pivots.
    n_windows, host_bytes : int
        Parts of the factor that pass through the device one after another, and their size [bytes].
    """

    parts: tuple[Part, ...] = ()
    nnz: int
    needed_bytes: int
    flops: float
    factor_seconds: float = -1.0
    solve_seconds: float = -1.0
    growth_bound: float = np.inf
    n_windows: int = 0
    host_bytes: int = 0

    def __init__(self, device: Any, pattern: Pattern, dtype: np.dtype, kind: int = 0):
        super().__init__(device, dtype, kind)
        self.devices: tuple[Any, ...] = (device,)
        self.pattern, self.n = pattern, pattern.n

    @property
    def plan_bytes(self) -> int:
        """Device memory of the plan so far [bytes]."""
        return self.nbytes + sum(part.nbytes for part in self.parts)

    @property
    def details(self) -> dict[str, Any]:
        """Further entries of `stats` about this engine's plan."""
        return {}

    def missing_bytes(self, usable: int) -> int:
        """Bytes that are needed beyond these."""
        return max(0, self.needed_bytes - usable)

    def prepare(self) -> None:
        """Compile the kernels of a factorization and a solve that are not in the cache, several files at a time."""
        files = {*COMMON, *self.files}.union(*(part.files for part in self.parts))
        self.device.prepare(sorted(files), self.dtype.char, self.kind)

    def has_pivots_of(self, cpu: Any) -> bool:
        """Whether its pivots are those of the CPU engine's factor `cpu`."""
        return False

    @abstractmethod
    def ready_to_factor(self) -> None:
        """Upload what `factor` reads of the plan, and load its kernels."""

    @abstractmethod
    def ready_to_solve(self, trans: int, nrhs: int) -> None:
        """The same for `solve`."""

    def ready_to_measure(self, trans: int) -> None:
        """The same for `residual`."""
        self.rows_of(trans)
        self.load(RESIDUAL)

    def ready_to_take_values(self) -> None:
        """The same for `take_values`, `move`, `report` and `add_up`."""
        self._map, self._other  # noqa: B018
        self.load(VALUES)

    @abstractmethod
    def factor_memory(self) -> Memory:
        """Arrays that `factor` writes and `solve` reads, besides the values."""

    @abstractmethod
    def vector_memory(self, capacity: int) -> Memory:
        """Work memory of solves with up to `capacity` right-hand sides."""

    def factor_peers(self) -> Any:
        """Memory of a factor on devices other than the program's; allocated now."""
        return None

    def vector_peers(self, capacity: int) -> Any:
        """The same for the work memory of solves."""
        return None

    def free_bytes(self) -> int:
        """Memory that an allocation could get [bytes]."""
        return int(self.device.free_bytes())

    @abstractmethod
    def factor(self, stream: Stream, buffers: Buffers, values: Buffer) -> None:
        """Factor canonical values."""

    @abstractmethod
    def solve(
        self, stream: Stream, buffers: Buffers, vectors: Vectors, trans: int, nrhs: int, b: Buffer, x: Buffer
    ) -> None:
        """op(A) X = B for columns that are n apart."""

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        """Sign and logarithm of the modulus of the determinant of the current factor; waits. None: unknown."""
        return None

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        """Factor canonical values, and solve for the right-hand sides in the vectors."""
        self.factor(stream, buffers, values)
        self.solve(stream, buffers, vectors, trans, nrhs, vectors.b, vectors.x)

    def signs_of_pivots(self, stream: Stream, buffers: Buffers) -> tuple[int, int, int] | None:
        """How many eigenvalues of D of LDL^T are positive, negative, and too small to tell; waits. None: unknown."""
        return None

    # ---- commands

    def take_values(self, stream: Stream, buffers: Buffers, new: bool) -> None:
        """Check the canonical values; `new`: gather them from the input buffer first, and keep the previous ones."""
        arrays = (buffers.input, buffers.values, buffers.previous, buffers.device_status)
        name = "gather_values" if new else "check_values"
        self.launch_values(stream, name, *(array.pointer for array in arrays))

    def move(self, stream: Stream, first: tuple[int, int, int], second: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Copy one or two arrays, to, from and scalars each, between the device and page-locked memory."""
        kernel, count = self.kernel(VALUES, "move_arrays"), max(first[2], second[2])
        args = record(
            kernel.arguments,
            to_first=first[0],
            first=first[1],
            first_count=first[2],
            to_second=second[0],
            second=second[1],
            second_count=second[2],
        )
        stream.launch(kernel, self.blocks(count, THREADS, 8), THREADS, 0, args)

    def report(self, stream: Stream, buffers: Buffers) -> None:
        """Copy the status to the host, and clear it for the next factorization."""
        kernel = self.kernel(VALUES, "move_status")
        args = record(kernel.arguments, status=buffers.device_status.pointer, report=buffers.host.status_address)
        stream.launch(kernel, 1, WARP, 0, args)

    def add_up(self, stream: Stream, buffers: Buffers, accumulated: int, factored: bool, solved: bool) -> None:
        """Accumulate the status on the device, and clear it for the next call; without a backward error."""
        kernel = self.kernel(VALUES, "accumulate_status")
        status = buffers.device_status.pointer
        args = record(kernel.arguments, status=status, accumulated=accumulated, factored=factored, solved=solved)
        stream.launch(kernel, 1, WARP, 0, args)

    def residual(
        self,
        stream: Stream,
        buffers: Buffers,
        vectors: Vectors,
        trans: int,
        nrhs: int,
        accumulated: int | None = None,
        factored: bool = False,
    ) -> None:
        """r = b - op(A) x and the norms of its backward error.

        They go to the host with the status. With an `accumulated` they are added up there, `factored`: after a
        factorization; with a null pointer they go nowhere.
        """
        columns = 1 if nrhs == 1 else GROUP
        arrays = self.rows_of(trans)
        conjugate = trans != 1 if self.hermitian else trans == 2  # rows of Hermitian A: the conjugates of its columns
        kernel = self.kernel(RESIDUAL, f"measure_residual_{columns}")
        n, nnz = self.n, self.pattern.nnz
        lanes_log2 = min(5, max(0, (-(-nnz // max(n, 1)) - 1).bit_length()))
        args = record(
            kernel.arguments,
            ptr=address(arrays[0]),
            ind=address(arrays[1]),
            source=address(arrays[2]),
            values=buffers.values.pointer,
            x=vectors.x.pointer,
            b=vectors.b.pointer,
            r=vectors.residual.pointer,
            ld=n,
            n=n,
            nrhs=nrhs,
            conjugate=conjugate,
            lanes_log2=lanes_log2,
            norms=vectors.norms.pointer,
            done=vectors.done.pointer,
            status=buffers.device_status.pointer,
            report=buffers.host.status_address if accumulated is None else 0,
            accumulated=accumulated or 0,
            factored=factored,
        )
        stream.launch(kernel, self.blocks(n << lanes_log2, THREADS, 8), THREADS, RESIDUAL_BYTES, args)

    def add_step(self, stream: Stream, buffers: Buffers, vectors: Vectors, nrhs: int) -> None:
        """x += step"""
        kernel, n = self.kernel(RESIDUAL, "add_step"), self.n
        args = record(kernel.arguments, x=vectors.x.pointer, step=vectors.step.pointer, ld=n, n=n, nrhs=nrhs)
        stream.launch(kernel, self.blocks(n * nrhs, THREADS, 8), THREADS, 0, args)
