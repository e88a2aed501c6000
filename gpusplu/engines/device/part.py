"""Arrays of a part of a program on a device, and the kernels that the part launches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...common.matrix import Pattern
from ...cuda.layout import constant, record
from ...cuda.nvrtc import CHOLESKY, HERMITIAN, LU
from ...cuda.stream import Buffer, Kernel, Stream

#: Kernel files of every engine.
RESIDUAL, VALUES = COMMON = "common/residual.cu", "common/values.cu"
SHARED = "shared/values.hpp"
NOT_COMPARED, COMPARED_WITH_ZERO = constant(SHARED, "NOT_COMPARED"), constant(SHARED, "COMPARED_WITH_ZERO")
THREADS, VALUE_BYTES = constant(SHARED, "VALUE_THREADS"), constant(SHARED, "VALUE_SHARED_BYTES")
WARP = constant(SHARED, "WARP_SIZE")


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
        buffer: Buffer = self.device.upload(array)
        return buffer

    def upload_all(self, arrays: Mapping[str, np.ndarray | None]) -> dict[str, Buffer | None]:
        """`upload` of each."""
        return {name: self.upload(array) for name, array in arrays.items()}

    def load(self, *files: str) -> None:
        """Load kernel files, so that `kernel` finds its kernels there."""
        for file in files:
            self.device.load(file, self.dtype.char, self.kind)

    def kernel(self, file: str, name: str) -> Kernel:
        kernel: Kernel = self.device.kernel(file, name, self.dtype.char, self.kind)
        return kernel

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
        kernel = self.kernel(VALUES, name)
        args = record(
            kernel.arguments,
            **dict(zip(("from", "to", "previous", "status"), arrays, strict=True)),
            source=address(sources[0]),
            source_ptr=address(sources[1]),
            count=count,
            other=address(other),
            conjugate=self.hermitian,
        )
        stream.launch(kernel, self.blocks(count, THREADS, 8), THREADS, VALUE_BYTES, args)

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

    def rows_of(self, trans: int) -> tuple[Buffer | None, Buffer | None, Buffer | None]:
        """The rows of op(A) or, for Hermitian A, what they are the conjugates of; one set of rows for one triangle."""
        return self._columns if trans or self.one_triangle else self._rows


def address(buffer: Buffer | None) -> int:
    """Null for None."""
    return 0 if buffer is None else buffer.pointer


def addresses(buffers: Mapping[str, Buffer | None]) -> dict[str, int]:
    """`address` of each."""
    return {name: address(buffer) for name, buffer in buffers.items()}
