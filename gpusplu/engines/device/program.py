"""A plan on a device, and its launches.

`Program` is what the programs of all engines share: the plan's memory, the path of values into a factor, the residual
of a solve. Subclasses define how to factor and to solve. A program holds what all factors on one pattern and of one
dtype have in common; `Buffers` (buffers.py) has what one factor writes. Programs are composed of parts: a `Part` has
arrays of a plan on the device, and launches the kernels that read them.

Methods with a stream only add commands to it, so that graphs can be made of them. The first time they upload what the
commands read, and load the kernels; while a caller captures the stream, only commands that were added before may be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...common.matrix import Pattern
from ...cuda.layout import constant, record
from ...cuda.nvrtc import CHOLESKY, HERMITIAN, LU
from ...cuda.stream import Buffer, Kernel, Stream
from .buffers import GROUP, Buffers, Memory, Solve

#: Kernel files of every engine.
RESIDUAL, VALUES = COMMON = "common/residual.cu", "common/values.cu"
SHARED = "shared/values.hpp"
NOT_COMPARED, COMPARED_WITH_ZERO = constant(SHARED, "NOT_COMPARED"), constant(SHARED, "COMPARED_WITH_ZERO")
THREADS, VALUE_BYTES = constant(SHARED, "VALUE_THREADS"), constant(SHARED, "VALUE_SHARED_BYTES")
RESIDUAL_BYTES, WARP = constant(SHARED, "RESIDUAL_SHARED_BYTES"), constant(SHARED, "WARP_SIZE")


Shape = tuple[int, int, int]
Known = Sequence[Mapping[str, Any]]


class Launch(NamedTuple):
    """A kernel, its blocks, threads of each, dynamic shared memory [bytes], and the record of its arguments."""

    kernel: Kernel
    blocks: int
    threads: int
    shared_bytes: int
    arguments: np.ndarray


def launch_all(stream: Stream, launches: Iterable[Launch]) -> None:
    for launch in launches:
        stream.launch(*launch)


class Part:
    """Arrays of one plan on a device, and kernels for one dtype and kind of factorization.

    Parameters
    ----------
    device : cuda.devices.Device
    dtype : dtype
    kind : int, optional
        As cuda/nvrtc.py numbers kinds.

    Attributes
    ----------
    nbytes : int
        Device memory of what was uploaded so far [bytes].
    """

    def __init__(self, device: Any, dtype: np.dtype, kind: int = LU):
        self.device, self.dtype, self.kind = device, np.dtype(dtype), int(kind)
        self.nbytes = 0

    @property
    def one_triangle(self) -> bool:
        """One triangle is factored, and stands for both."""
        return self.kind != LU

    @property
    def hermitian(self) -> bool:
        """A equals its conjugate transpose, by its kind."""
        return self.kind in (CHOLESKY, HERMITIAN)

    def solves_conjugated(self, trans: int) -> bool:
        """Whether op(A) X = B is solved, for conjugated vectors, with A or, for LU, its transpose."""
        return trans == (1 if self.hermitian else 2)

    @property
    def files(self) -> tuple[str, ...]:
        """Kernel files that a factorization and a solve need."""
        return ()

    def upload(self, array: np.ndarray | None) -> Buffer | None:
        """A copy on the device; None for an empty array."""
        if array is None or array.size == 0:
            return None
        self.nbytes += array.nbytes
        return self.device.upload(array)

    def upload_all(self, arrays: Mapping[str, np.ndarray | None]) -> dict[str, Buffer | None]:
        """`upload` of each."""
        return {name: self.upload(array) for name, array in arrays.items()}

    def upload_orders(self, plan: Any) -> list[tuple[Buffer | None, Buffer | None]]:
        """Permutation and scales of rows, of columns."""
        sides = ("row_perm", "row_scale"), ("col_perm", "col_scale")
        return [(self.upload(getattr(plan, perm)), self.upload(getattr(plan, scale))) for perm, scale in sides]

    def kernel(self, file: str, name: str) -> Kernel:
        return self.device.kernel(file, name, self.dtype.char, self.kind)

    def prepared(self, file: str, name: str, shape: Shape, known: Known = (), /, **fields: Any) -> Launch:
        """A launch of a kernel of a file; `shape`: blocks, threads of each, and dynamic shared memory [bytes]; `known`
        and `fields`: its arguments, as `record` takes them."""
        kernel = self.kernel(file, name)
        return Launch(kernel, *shape, record(kernel.arguments, *known, **fields))

    def launch(
        self,
        stream: Stream,
        file: str,
        name: str,
        shape: Shape,
        known: Known = (),
        early: bool = False,
        /,
        **fields: Any,
    ) -> None:
        """Launch a kernel as `prepared` takes it; `early`: a programmatic dependent launch."""
        stream.launch(*self.prepared(file, name, shape, known, **fields), early)

    def blocks(self, work: int, threads: int, resident: int) -> int:
        """Blocks for `work` threads of work: no more than the device holds at once."""
        return max(1, min(-(-work // threads), resident * int(self.device.multiprocessors)))


def counterparts(pairs: Any) -> np.ndarray:
    """The second entry of each pair as kernels read it, shape (number of pairs,), int32."""
    second: np.ndarray = pairs.second.astype(np.int32)
    second[pairs.second == _core.NO_ENTRY] = COMPARED_WITH_ZERO
    return second


class MatrixPart(Part):
    """A part that takes values on the pattern `pattern`, and reads the rows of the matrix and of its transpose."""

    pattern: Pattern

    @cached_property
    def _map(self) -> tuple[Buffer | None, Buffer | None]:
        """Source and source_ptr that map the caller's values to canonical ones."""
        core = self.pattern.core
        return (None, None) if core.identity else (self.upload(core.source), self.upload(core.source_ptr))

    def launch_values(self, stream: Stream, name: str, given: int, to: int, previous: int, status: int) -> None:
        """A kernel of common/values.cu that checks or gathers canonical values, over arrays at these addresses.

        The latter also compares both triangles of what has to be symmetric.
        """
        self.launch_gather(stream, name, (given, to, previous, status), self._map, self.pattern.nnz, self._other)

    @cached_property
    def _other(self) -> Buffer | None:
        """For each canonical value that has a counterpart to equal, and comes first of the two, that counterpart."""
        if not self.one_triangle:
            return None
        pairs = self.pattern.pairs(self.hermitian, self.dtype)
        if not pairs.first.size:
            return None
        other = np.full(self.pattern.nnz, NOT_COMPARED, np.int32)
        other[pairs.first] = counterparts(pairs)
        return self.upload(other)

    def launch_gather(
        self,
        stream: Stream,
        name: str,
        arrays: tuple[int, int, int, int],
        sources: tuple[Buffer | None, Buffer | None],
        count: int,
        other: Buffer | None = None,
    ) -> None:
        """The same for any entries: `arrays` are from, to, previous and the status; `sources` where entries are."""
        self.launch(
            stream,
            VALUES,
            name,
            (self.blocks(count, THREADS, 8), THREADS, VALUE_BYTES),
            **dict(zip(("from", "to", "previous", "status"), arrays, strict=True)),
            source=sources[0],
            source_ptr=sources[1],
            count=count,
            other=other,
            conjugate=self.hermitian,
        )

    @cached_property
    def _columns(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """Canonical A as it is: the rows of its transpose."""
        return self.upload(self.pattern.ptr), self.upload(self.pattern.ind), None

    @cached_property
    def _rows(self) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """The rows of A: pointers, columns, and which canonical value an entry is."""
        n, nnz = self.pattern.n, self.pattern.nnz
        rows = sp.csc_array((np.arange(nnz, dtype=np.int32), self.pattern.ind, self.pattern.ptr), shape=(n, n)).tocsr()
        arrays = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        ptr, ind, source = map(self.upload, arrays)
        return ptr, ind, source

    def launch_rows(self, stream: Stream, name: str, trans: int, **fields: Any) -> None:
        """A kernel of common/residual.cu in which some lanes of a warp take a row of op(A) each."""
        ptr, ind, source = self.rows_of(trans)
        n, conjugate = self.pattern.n, trans != 1 if self.hermitian else trans == 2  # by the columns if A is Hermitian
        lanes_log2 = min(5, max(0, (-(-self.pattern.nnz // max(n, 1)) - 1).bit_length()))
        shape = self.blocks(n << lanes_log2, THREADS, 8), THREADS, RESIDUAL_BYTES
        rows = {"ptr": ptr, "ind": ind, "source": source, "conjugate": conjugate, "lanes_log2": lanes_log2}
        self.launch(stream, RESIDUAL, name, shape, ld=n, n=n, **rows, **fields)

    def rows_of(self, trans: int) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """The rows of op(A) or, for Hermitian A, what they are the conjugates of; one set of rows for one triangle."""
        return self._columns if trans or self.one_triangle else self._rows


def address(buffer: Buffer | None, offset: int = 0) -> int:
    """Address of a byte; of no buffer the offset."""
    return offset if buffer is None else buffer.pointer + offset


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
    def solve(self, stream: Stream, buffers: Buffers, solve: Solve) -> None:
        """Solve by the factor."""

    def slogdet(self, stream: Stream, buffers: Buffers) -> tuple[Any, float] | None:
        """Sign and logarithm of the modulus of the determinant of the current factor; waits. None: unknown."""
        return None

    def factor_solve(self, stream: Stream, buffers: Buffers, values: Buffer, solve: Solve) -> None:
        """Factor canonical values, and solve."""
        self.factor(stream, buffers, values)
        self.solve(stream, buffers, solve)

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
        names = "to_first", "first", "first_count", "to_second", "second", "second_count"
        grid = self.blocks(max(first[2], second[2]), THREADS, 8)
        self.launch(stream, VALUES, "move_arrays", (grid, THREADS, 0), **dict(zip(names, first + second, strict=True)))

    def report(self, stream: Stream, buffers: Buffers) -> None:
        """Copy the status to the host, and clear it for the next factorization."""
        fields = {"status": buffers.device_status, "report": buffers.host.status_address}
        self.launch(stream, VALUES, "move_status", (1, WARP, 0), **fields)

    def add_up(self, stream: Stream, buffers: Buffers, accumulated: int, factored: bool, solved: bool) -> None:
        """Accumulate the status on the device, and clear it for the next call; without a backward error."""
        fields = {"status": buffers.device_status, "accumulated": accumulated, "factored": factored, "solved": solved}
        self.launch(stream, VALUES, "accumulate_status", (1, WARP, 0), **fields)

    def residual(
        self, stream: Stream, buffers: Buffers, solve: Solve, accumulated: int | None = None, factored: bool = False
    ) -> None:
        """r = b - op(A) x and the norms of its backward error.

        They go to the host with the status. With an `accumulated` they are added up there, `factored`: after a
        factorization; with a null pointer they go nowhere.
        """
        vectors = solve.vectors
        self.launch_rows(
            stream,
            f"measure_residual_{1 if solve.nrhs == 1 else GROUP}",
            solve.trans,
            nrhs=solve.nrhs,
            values=buffers.values,
            x=solve.x,
            b=solve.b,
            r=vectors.residual,
            sizes=None,
            norms=vectors.norms,
            done=vectors.done,
            status=buffers.device_status,
            report=buffers.host.status_address if accumulated is None else 0,
            accumulated=accumulated or 0,
            factored=factored,
        )

    def add_step(self, stream: Stream, solve: Solve) -> None:
        """x += step"""
        shape = self.blocks(self.n * solve.nrhs, THREADS, 8), THREADS, 0
        fields = {"x": solve.x, "step": solve.vectors.step, "ld": self.n, "n": self.n, "nrhs": solve.nrhs}
        self.launch(stream, RESIDUAL, "add_step", shape, **fields)


def outer_determinant(plan: Any) -> tuple[float, float]:
    """Sign and logarithm of the contribution of a plan's, or an analysis's, permutations and scales to the
    determinant."""
    sign = float(_core.parity(plan.row_perm) * _core.parity(plan.col_perm))
    scales = (scale for scale in (plan.row_scale, plan.col_scale) if scale.size)
    return sign, -sum(float(np.log(scale).sum()) for scale in scales)


def joined(signs: np.ndarray) -> Any:
    """The product of numbers of modulus 1, normalized to modulus 1."""
    sign = signs.prod()
    return sign / abs(sign)
