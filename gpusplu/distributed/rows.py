"""The rows of a square matrix on a rank, checked, and converted to entries for PETSc."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import NonFiniteError, PatternMismatchError
from .agreement import agreed


class Rows:
    """Rows `first` to `first + count` of an n x n matrix: those of lower ranks come before them.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    first, count, n : int
    nnz : int
        Stored entries on all ranks.
    dtype : dtype
        float64 or complex128, the same on all ranks.
    values : ndarray, shape (size,)
        As they were given last.
    """

    def __init__(self, comm: Any, A: sp.csr_array, dtype: np.dtype):
        self.comm, self.dtype = comm, dtype
        self.count, self.n = A.shape
        self.first = sum(comm.allgather(self.count)[: comm.rank])
        self.nnz = comm.allreduce(A.nnz)
        self._indptr, self._columns = A.indptr.copy(), A.indices.copy()
        self.values = np.array(A.data, dtype=dtype)
        self._mirrored = np.empty(0, dtype=np.intp)

    @property
    def _rows(self) -> np.ndarray:
        """Of the entries, in the numbering of the whole matrix."""
        return np.repeat(np.arange(self.first, self.first + self.count), np.diff(self._indptr))

    def mirror_triangle(self) -> bool:
        """If the ranks have one triangle only, mirror it; returns whether both triangles were given."""
        rows = self._rows
        below, above = self.comm.allreduce(np.array([np.any(self._columns < rows), np.any(self._columns > rows)]) * 1)
        if not (below and above):
            self._mirrored = np.flatnonzero(self._columns != rows)
        return bool(below and above)

    def coordinates(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of `entries`."""
        rows, columns, other = self._rows, self._columns, self._mirrored
        i, j = np.append(rows, columns[other]), np.append(columns, rows[other])
        return i.astype(dtype, copy=False), j.astype(dtype, copy=False)

    def entries(self, hermitian: bool) -> np.ndarray:
        """Values of this rank's rows, and of the mirrored triangle."""
        other = self.values[self._mirrored]
        return np.append(self.values, other.conj() if hermitian else other)

    def have_zeros(self) -> bool:
        """Whether a stored value of any rank is zero."""
        return self.comm.allreduce(bool((self.values == 0).any())) > 0

    def nonzero_coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the values that are not zero."""
        found = self.values != 0
        return self._rows[found], self._columns[found]

    def scatter(self, whole: Any, root: int) -> np.ndarray:
        """The part of this rank of an array that is on `root`."""
        ends = np.cumsum(self.comm.allgather(self.count))
        parts = np.split(np.asarray(whole), ends[:-1]) if self.comm.rank == root else None
        return self.comm.scatter(parts, root=root)

    def gather(self, part: np.ndarray, root: int) -> np.ndarray | None:
        """The whole on `root`, of the parts; None elsewhere."""
        parts = self.comm.gather(part, root=root)
        return None if parts is None else np.asfortranarray(np.concatenate(parts))

    def read_values(self, values: Any) -> np.ndarray:
        """Values of this rank for the same pattern, from an array in the order of ``A.data``, or a matrix.

        Raises
        ------
        PatternMismatchError
        NonFiniteError
        ValueError
            Another number of values.
        TypeError
            Casting them would lose precision.
        """
        values = self._values_of(values) if sp.issparse(values) else np.asarray(values)
        if values.ndim != 1 or values.size != self.values.size:
            raise ValueError(
                f"refactor: values have shape {values.shape}, the rows of this rank {self.values.size} entries"
            )
        return self.checked(values.astype(self.dtype, casting="safe"))

    def _values_of(self, A: Any) -> np.ndarray:
        """Values of a matrix in the order of the first one."""
        A = sp.csr_array(A)
        if A.shape != (self.count, self.n) or not np.array_equal(A.indptr, self._indptr):
            raise PatternMismatchError(
                f"refactor: the matrix is {A.shape[0]} x {A.shape[1]} with {A.nnz} entries, the rows of this rank are "
                f"{self.count} x {self.n} with {self.values.size}, or they are in other rows; keep explicit zeros"
            )
        if np.array_equal(A.indices, self._columns):
            return np.asarray(A.data)
        mine, peer_order = (np.lexsort((columns, self._rows)) for columns in (self._columns, A.indices))
        if not np.array_equal(A.indices[peer_order], self._columns[mine]):
            raise PatternMismatchError("refactor: entries are in other columns than those of the factored matrix")
        values: np.ndarray = np.empty_like(A.data)
        values[mine] = A.data[peer_order]
        return values

    def checked(self, values: np.ndarray) -> np.ndarray:
        """The same, without NaN and Inf.

        Raises
        ------
        NonFiniteError
        """
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            row, column = self._rows[bad[0]], self._columns[bad[0]]
            raise NonFiniteError(f"A[{row}, {column}] is {values[bad[0]]}; all values of A must be finite")
        return values


def read_rows(comm: Any, call: tuple[Any, ...], A: Any, integer: type, scalar: type) -> Rows:
    """The rows of all ranks, as `Rows`; collective.

    Parameters
    ----------
    call
        For `agreed`.
    A : sparse array or matrix, shape (rows of this rank, n)
    integer, scalar : type
        Of PETSc.

    Raises
    ------
    TypeError
        Of another type than PETSc computes with.
    ValueError
        Not a matrix, not square, or too large for PETSc's integers.
    """

    def work() -> tuple[int, sp.csr_array]:
        rows = checked_rows(A, integer, scalar)
        return rows.shape[1], rows

    local = agreed(comm, call, work)
    count, n = comm.allreduce(local.shape[0]), local.shape[1]
    if count != n or n == 0:
        raise ValueError(f"can only factor square matrices: the ranks have {count} rows together and {n} columns")
    dtype = np.result_type(np.float64, *comm.allgather(local.dtype))
    rows = Rows(comm, local, dtype)
    agreed(comm, call, lambda: (None, rows.checked(rows.values)))
    return rows


def checked_rows(A: Any, integer: type, scalar: type) -> sp.csr_array:
    """`A` in compressed rows, checked for everything that would crash PETSc."""
    rows = sp.csr_array(A)  # an object of its own, which check_format may change
    if rows.ndim != 2:
        raise ValueError(f"the rows of a rank are a matrix, not of shape {rows.shape}")
    if not np.can_cast(rows.dtype, np.complex128):
        raise TypeError(f"cannot upcast [{rows.dtype.name}] to a floating point format")
    if rows.dtype.kind == "c" and np.dtype(scalar).kind != "c":
        raise TypeError("A is complex and this PETSc is built for real numbers: pip install dolfinx-solver-complex")
    most = np.iinfo(integer).max
    if rows.shape[1] > most or rows.nnz > most:
        raise ValueError(
            f"indices values too large for this PETSc: {rows.shape[1]} columns and {rows.nnz} entries on a rank, and "
            f"its integers end at {most}; use one that was built --with-64-bit-indices"
        )
    rows.check_format(full_check=True)
    return rows
