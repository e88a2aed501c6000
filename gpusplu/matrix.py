"""Any matrix a caller may pass -> canonical CSC, and the map that takes the caller's values there.

Canonical means sorted rows without duplicates, int64 column pointers, int32 row indices and one of the four dtypes that
the core knows. The caller's matrix is never modified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import NonFiniteError, NotHermitianError, PatternMismatchError

FLOATS = tuple(np.dtype(char) for char in "fdFD")

# Relative difference between A[i, j] and conj(A[j, i]) up to which cholesky takes A for Hermitian: assembled matrices
# differ by rounding. In units of the precision.
HERMITIAN_TOLERANCE = 1e3


def is_pydata(A: Any) -> bool:
    """Whether `A` is a pydata/sparse array, found without importing that package."""
    return type(A).__module__.partition(".")[0] == "sparse" and hasattr(A, "to_scipy_sparse")


def is_cupy(A: Any) -> bool:
    """Whether `A` lives on a CUDA device, found without importing CuPy."""
    return type(A).__module__.partition(".")[0] in ("cupy", "cupyx")


def to_host(A: Any) -> Any:
    """Bring CuPy and pydata/sparse input to NumPy and SciPy; return anything else as it is."""
    if is_cupy(A):
        return A.get()
    if is_pydata(A):
        return A.to_scipy_sparse()
    return A


def to_device(x: Any) -> Any:
    """Move a NumPy or SciPy result to the current CUDA device and stream."""
    if sp.issparse(x):
        import cupyx.scipy.sparse

        return getattr(cupyx.scipy.sparse, f"{x.format}_matrix")(x)
    import cupy

    return cupy.asarray(x)


def float_dtype(dtype: np.dtype) -> np.dtype:
    """The smallest of float32, float64, complex64 and complex128 that holds `dtype`.

    Raises
    ------
    TypeError
        None does; SciPy's message.
    """
    for candidate in FLOATS:
        if np.can_cast(dtype, candidate):
            return candidate
    raise TypeError(f"cannot upcast [{dtype.name}] to a floating point format")


@dataclass(frozen=True, slots=True, eq=False)
class Canonical:
    """A square sparse pattern in canonical CSC and where its values come from.

    Attributes
    ----------
    n : int
    ptr : ndarray of int64, shape (n + 1,)
    ind : ndarray of int32, shape (nnz,)
    size : int
        Length of the caller's values.
    source : ndarray of int64 or None
        Canonical entry k is ``values[source[k]]``; None is the identity. With duplicates (`starts` is not None)
        canonical entry k is the sum of ``values[source[starts[k]:starts[k + 1]]]``.
    starts : ndarray of int64, shape (nnz + 1,), or None
    mirrored : ndarray of bool, shape (nnz,), or None
        Entries that are the complex conjugate of what `source` says (Cholesky of one triangle).
    """

    n: int
    ptr: np.ndarray
    ind: np.ndarray
    size: int
    source: np.ndarray | None = None
    starts: np.ndarray | None = None
    mirrored: np.ndarray | None = None

    @property
    def nnz(self) -> int:
        return self.ind.size

    @property
    def columns(self) -> np.ndarray:
        """Column of every entry, int32."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.ptr))

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Canonical values from the caller's, a new array unless nothing moves."""
        if self.source is None:
            return values
        moved: np.ndarray = values[self.source]
        if self.starts is not None:
            moved = np.add.reduceat(moved, self.starts[:-1]) if self.nnz else moved[:0]
        if self.mirrored is not None and moved.dtype.kind == "c":
            np.conjugate(moved, out=moved, where=self.mirrored)
        return moved

    def same_pattern(self, other: Canonical) -> bool:
        return self.n == other.n and np.array_equal(self.ptr, other.ptr) and np.array_equal(self.ind, other.ind)


def read_matrix(A: Any) -> Any:
    """Return `A` as a square SciPy matrix in CSC, CSR or COO format whose ``data`` is what refactor(values) refers to.

    Raises
    ------
    ValueError
        Not two-dimensional or not square; SciPy's messages.
    """
    if not sp.issparse(A) or A.ndim != 2 or A.format not in ("csc", "csr", "coo", "bsr"):
        A = sp.csc_array(A)
    if A.format == "bsr":
        A = A.tocoo(copy=False)  # whole blocks, in the order of A.data.ravel()
    if A.shape[0] != A.shape[1]:
        raise ValueError("can only factor square matrices")
    if A.shape[0] > np.iinfo(np.int32).max:
        raise ValueError(f"indices values too large for gpusplu: A has {A.shape[0]} columns, at most 2**31 - 1 work")
    return A


def index_arrays(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """The two index arrays of a CSC, CSR or COO matrix: (indptr, indices) or (rows, columns)."""
    return (A.row, A.col) if A.format == "coo" else (A.indptr, A.indices)


def canonicalize(A: Any) -> tuple[Canonical, np.ndarray]:
    """Canonical pattern of `A` (from `read_matrix`) and the caller's values in floating point, in the caller's order.

    Raises
    ------
    TypeError
        A dtype without a floating-point counterpart; SciPy's message.
    ValueError
        Indices outside the matrix.
    """
    values = np.ascontiguousarray(A.data, dtype=float_dtype(A.dtype))
    n = A.shape[0]
    if A.format == "coo":
        check_range(A.row, n)
        check_range(A.col, n)
        order = np.lexsort((A.row, A.col))
        return merge(n, A.row[order], A.col[order], order, values.size), values
    check_pointers(A.indptr, A.indices, n)
    indices = A.indices[: A.indptr[-1]]
    check_range(indices, n)
    if A.format == "csc" and is_sorted(A.indptr, indices):
        return Canonical(n, A.indptr.astype(np.int64), np.array(indices, dtype=np.int32), values.size), values
    # transposing sorts: once for rows, twice for columns
    tagged = (np.arange(indices.size), indices, A.indptr)
    by_rows = sp.csc_array(tagged, shape=A.shape).tocsr() if A.format == "csc" else sp.csr_array(tagged, shape=A.shape)
    by_columns = by_rows.tocsc()
    columns = np.repeat(np.arange(n), np.diff(by_columns.indptr))
    return merge(n, by_columns.indices, columns, by_columns.data, values.size), values


def check_range(indices: np.ndarray, n: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"A is not a valid sparse matrix: it has an index outside 0 .. {n - 1}")


def check_pointers(indptr: np.ndarray, indices: np.ndarray, n: int) -> None:
    if indptr.size != n + 1 or indptr[0] != 0 or indptr[-1] > indices.size or (np.diff(indptr) < 0).any():
        raise ValueError("A is not a valid sparse matrix: indptr must start at 0, never fall, and end inside indices")


def is_sorted(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the rows of every column ascend without duplicates."""
    rises = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    return bool(rises.all())


def merge(n: int, rows: np.ndarray, columns: np.ndarray, order: np.ndarray, size: int) -> Canonical:
    """Canonical pattern of entries that are sorted by column and row but may repeat."""
    first = np.ones(rows.size, dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = None
    if not first.all():
        starts = np.append(np.flatnonzero(first), rows.size).astype(np.int64)
        rows, columns = rows[first], columns[first]
    return Canonical(n, pointers(columns, n), rows.astype(np.int32), size, order.astype(np.int64), starts)


def pointers(columns: np.ndarray, n: int) -> np.ndarray:
    """Column pointers of ascending `columns`."""
    return np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=n)))).astype(np.int64)


def hermitian(pattern: Canonical, values: np.ndarray) -> Canonical:
    """Pattern of the full Hermitian matrix that `pattern` and the caller's `values` hold in full or as one triangle.

    Raises
    ------
    NotHermitianError
        Both triangles are there and differ by more than rounding, or the diagonal is not real.
    """
    columns = pattern.columns
    below, above = pattern.ind > columns, pattern.ind < columns
    canonical = pattern.gather(values)
    full = below.any() and above.any()
    check_hermitian(pattern, canonical if full else np.where(below | above, 0, canonical))
    if full:
        transposed = sp.csc_array((np.arange(pattern.nnz), pattern.ind, pattern.ptr), shape=(pattern.n,) * 2).tocsr()
        if np.array_equal(transposed.indptr, pattern.ptr) and np.array_equal(transposed.indices, pattern.ind):
            return pattern
        keep = np.flatnonzero(~above)  # equal values, but zeros are stored on one side only
    else:
        keep = np.arange(pattern.nnz)
    off_diagonal = keep[pattern.ind[keep] != columns[keep]]
    rows = np.concatenate((pattern.ind[keep], columns[off_diagonal]))
    cols = np.concatenate((columns[keep], pattern.ind[off_diagonal]))
    entries = np.concatenate((keep, off_diagonal))
    order = np.lexsort((rows, cols))
    source, starts = follow(pattern, entries[order])
    mirrored = order >= keep.size
    return Canonical(pattern.n, pointers(cols, pattern.n), rows[order], pattern.size, source, starts, mirrored)


def follow(pattern: Canonical, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Where canonical `entries` of `pattern` come from, as `source` and `starts` of a new pattern."""
    if pattern.source is None:
        return entries.astype(np.int64), None
    if pattern.starts is None:
        return pattern.source[entries], None
    lengths = np.diff(pattern.starts)[entries]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return pattern.source[np.repeat(pattern.starts[entries], lengths) + within], starts.astype(np.int64)


def check_hermitian(pattern: Canonical, canonical: np.ndarray) -> None:
    A = sp.csc_array((canonical, pattern.ind, pattern.ptr), shape=(pattern.n,) * 2)
    difference = abs(A - A.conj().T).tocoo()
    worst = int(difference.data.argmax()) if difference.nnz else 0
    tolerance = HERMITIAN_TOLERANCE * np.finfo(canonical.dtype).eps * max(abs(canonical).max(initial=0), 0)
    if difference.nnz and difference.data[worst] > tolerance:
        i, j = int(difference.row[worst]), int(difference.col[worst])
        raise NotHermitianError(
            f"cholesky: A[{i}, {j}] and the conjugate of A[{j}, {i}] differ by {difference.data[worst]:.3g}, so A is "
            "not Hermitian; pass one triangle only, or use splu(A)"
        )


def check_finite(pattern: Canonical, canonical: np.ndarray) -> None:
    """Refuse NaN and Inf.

    Raises
    ------
    NonFiniteError
        With the row and column of the first one.
    """
    bad = ~np.isfinite(canonical)
    if bad.any():
        raise non_finite(pattern, int(bad.argmax()), canonical)


def non_finite(pattern: Canonical, entry: int, canonical: np.ndarray) -> NonFiniteError:
    """The error about canonical `entry`."""
    column = int(np.searchsorted(pattern.ptr, entry, side="right")) - 1
    return NonFiniteError(f"A[{pattern.ind[entry]}, {column}] is {canonical[entry]}; all values of A must be finite")


def pattern_mismatch(old: Canonical, new: Canonical) -> PatternMismatchError:
    """The error about the first place where two patterns differ."""
    if old.n != new.n:
        return PatternMismatchError(
            f"refactor: the matrix is {new.n} x {new.n}, the factored one {old.n} x {old.n}; call splu for a new matrix"
        )
    old_key, new_key = (p.columns.astype(np.int64) * p.n + p.ind for p in (old, new))
    key = int(np.setxor1d(old_key, new_key)[0])
    column, row = divmod(key, old.n)
    where = "is not in the factored pattern" if key in new_key else "of the factored pattern is missing"
    return PatternMismatchError(
        f"refactor: entry ({row}, {column}) {where} ({new.nnz} entries against {old.nnz}); keep explicit zeros, or "
        "call splu for a new pattern"
    )


def values_for(pattern: Canonical, values: Any, cholesky: bool) -> np.ndarray:
    """Canonical values from what a caller hands to refactor: values in the order of A.data, or a matrix.

    Raises
    ------
    PatternMismatchError
        A matrix with another pattern.
    ValueError
        As many values as A.data had are needed.
    """
    values = to_host(values)
    if sp.issparse(values) or np.ndim(values) == 2:
        new, data = canonicalize(read_matrix(values))
        if cholesky:
            new = hermitian(new, data)
        if not pattern.same_pattern(new):
            raise pattern_mismatch(pattern, new)
        return new.gather(data)
    data = np.asarray(values)
    if data.size != pattern.size:
        raise ValueError(
            f"refactor: values has {data.size} entries, A.data had {pattern.size}; pass as many, in the order of "
            "A.data, or a matrix"
        )
    return pattern.gather(np.ascontiguousarray(data.reshape(-1), dtype=float_dtype(data.dtype)))
