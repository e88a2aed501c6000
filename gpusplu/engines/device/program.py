"""A plan on a device, and the launches that it stands for.

`Program` is what the programs of all engines share: the plan's memory, the way of values into a factor, the residual of
a solve. Subclasses say how to factor and to solve. A program holds what all factors on one pattern and of one dtype
have in common; what one factor writes is in buffers.py.

Uploads are a step of their own: `ready_to_factor`, `ready_to_solve` and `ready_to_measure` bring to the device what the
commands of that name need, and load its kernels. Every method with a stream then only adds commands to it, so that
graphs can be made of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...common.matrix import Pattern
from ...cuda.layout import constant, record
from ...cuda.stream import Buffer, Stream
from .buffers import GROUP, Buffers, Memory, Vectors
from .part import COMMON, RESIDUAL, SHARED, THREADS, VALUES, WARP, MatrixPart, Part, address

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
        Predicted [s]; -1 where nothing is.
    growth_bound : float
        Multipliers beyond are taken for a sign of bad pivots.
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
        """What `stats` says about this engine's plan besides."""
        return {}

    def missing_bytes(self, usable: int) -> int:
        """Bytes that are needed beyond these."""
        return max(0, self.needed_bytes - usable)

    def prepare(self) -> None:
        """Compile what a factorization and a solve need and the cache has not, several files at a time."""
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
        """What `factor` writes and `solve` reads, besides the values."""

    @abstractmethod
    def vector_memory(self, capacity: int) -> Memory:
        """Work memory of solves with up to `capacity` right-hand sides."""

    def factor_beside(self) -> Any:
        """What a factor has on other devices than the program's; allocated now."""
        return None

    def vectors_beside(self, capacity: int) -> Any:
        """The same of the work memory of solves."""
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
        """Sign and logarithm of the modulus of the determinant of what is factored; waits. None: unknown."""
        return None

    def factor_solve(
        self, stream: Stream, buffers: Buffers, values: Buffer, vectors: Vectors, trans: int, nrhs: int
    ) -> None:
        """Factor canonical values, and solve for the right-hand sides in the vectors."""
        self.factor(stream, buffers, values)
        self.solve(stream, buffers, vectors, trans, nrhs, vectors.b, vectors.x)

    def signs_of_pivots(self, stream: Stream, buffers: Buffers) -> tuple[int, int, int] | None:
        """How many eigenvalues of D are positive, negative, and too small to tell, of LDL^T; waits. None: unknown."""
        return None

    # ---- commands

    def take_values(self, stream: Stream, buffers: Buffers, new: bool) -> None:
        """Check the canonical values; `new`: those that the input buffer stands for, the ones before being kept."""
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
        """The status to the host, and cleared for the next factorization."""
        kernel = self.kernel(VALUES, "move_status")
        args = record(kernel.arguments, status=buffers.device_status.pointer, report=buffers.host.status_address)
        stream.launch(kernel, 1, WARP, 0, args)

    def add_up(self, stream: Stream, buffers: Buffers, tally: int, factored: bool, solved: bool) -> None:
        """The status to a tally, and cleared for the next call; without a backward error."""
        kernel = self.kernel(VALUES, "tally_status")
        status = buffers.device_status.pointer
        args = record(kernel.arguments, status=status, tally=tally, factored=factored, solved=solved)
        stream.launch(kernel, 1, WARP, 0, args)

    def residual(
        self,
        stream: Stream,
        buffers: Buffers,
        vectors: Vectors,
        trans: int,
        nrhs: int,
        tally: int | None = None,
        factored: bool = False,
    ) -> None:
        """r = b - op(A) x and the norms of its backward error.

        They go to the host with the status. With a `tally` they are added up there, `factored`: after a factorization;
        with a null pointer they go nowhere.
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
            report=buffers.host.status_address if tally is None else 0,
            tally=tally or 0,
            factored=factored,
        )
        stream.launch(kernel, self.blocks(n << lanes_log2, THREADS, 8), THREADS, RESIDUAL_BYTES, args)

    def add_step(self, stream: Stream, buffers: Buffers, vectors: Vectors, nrhs: int) -> None:
        """x += step"""
        kernel, n = self.kernel(RESIDUAL, "add_step"), self.n
        args = record(kernel.arguments, x=vectors.x.pointer, step=vectors.step.pointer, ld=n, n=n, nrhs=nrhs)
        stream.launch(kernel, self.blocks(n * nrhs, THREADS, 8), THREADS, 0, args)
