"""Conversion of a caller's matrix to canonical CSC, and the map from the caller's values to canonical ones.

Canonical means sorted rows without duplicates, int64 column pointers, int32 row indices and one of the four dtypes that
the core knows. The caller's matrix is never modified.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..errors import NonFiniteError, NotHermitianError, PatternMismatchError
from .arrays import is_compressed_on_device as is_compressed_on_device
from .arrays import is_cupy as is_cupy
from .arrays import is_cupy_array as is_cupy_array
from .arrays import is_on_device as is_on_device
from .arrays import is_pydata as is_pydata

FLOATS = tuple(np.dtype(char) for char in "fdFD")
#: The single precision of a double one.
SINGLE = {np.dtype("d"): np.dtype("f"), np.dtype("D"): np.dtype("F")}
EMPTY = {dtype: np.empty(0, dtype) for dtype in FLOATS}
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in FLOATS}


class Columns:
    """A matrix in compressed columns with arrays of another library; cheaper to make than SciPy's matrices.

    Attributes
    ----------
    shape : (int, int)
    data, indices, indptr : ndarray
        C-contiguous.
    """

    __slots__ = ("data", "indices", "indptr", "shape")
    format, ndim = "csc", 2

    def __init__(self, n: int, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray):
        self.shape, self.data, self.indices, self.indptr = (n, n), data, indices, indptr

    dtype = property(lambda self: self.data.dtype)
    nnz = property(lambda self: self.data.size)


def is_sparse(A: Any) -> bool:
    """Whether `A` is a sparse matrix of SciPy or a `Columns`."""
    return isinstance(A, Columns) or sp.issparse(A)


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
    if dtype in FLOATS:
        return dtype
    for candidate in FLOATS:
        if np.can_cast(dtype, candidate):
            return candidate
    raise TypeError(f"cannot upcast [{dtype.name}] to a floating point format")


class Pattern:
    """A square sparse pattern in canonical CSC and where its values come from. Immutable.

    Attributes
    ----------
    core : _core.Canonical
        The pattern and the map, as core/matrix/canonical.hpp describes them.
    n, nnz, size : int
        Order, entries, and length of the caller's values.
    ptr : ndarray of int64, shape (n + 1,)
    ind : ndarray of int32, shape (nnz,)
    """

    __slots__ = ("_pairs", "core")

    def __init__(self, core: Any) -> None:
        self.core = core
        self._pairs: dict[tuple[bool, bool], _core.SymmetricPairs] = {}

    n = property(lambda self: self.core.n)
    nnz = property(lambda self: self.core.nnz)
    size = property(lambda self: self.core.nvalues)
    ptr = property(lambda self: self.core.ptr)
    ind = property(lambda self: self.core.ind)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self.core,)

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Canonical values from the caller's; `values` itself if nothing moves."""
        return values if self.core.identity else self.core.gather(values)

    def direct_map(self, dtype: np.dtype) -> tuple[bool, np.ndarray | None]:
        """Whether canonical value k of `dtype` is ``values[source[k]]`` for all k, and that source (None: identity)."""
        if self.core.identity:
            return True, None
        source = self.core.source
        if self.core.source_ptr.size:
            return False, None
        if (source < 0).any():  # conjugates
            return (False, None) if dtype.kind == "c" else (True, np.where(source < 0, ~source, source))
        return True, source

    def pairs(self, hermitian: bool, dtype: np.dtype) -> _core.SymmetricPairs:
        """Entries that have to be conjugates of each other, or equal, where values of `dtype` are given again."""
        key = hermitian, dtype.kind == "c"
        if key not in self._pairs:
            self._pairs[key] = _core.SymmetricPairs(self.core, *key)
        return self._pairs[key]

    def matches(self, other: Pattern) -> bool:
        """Whether the two patterns are the same, wherever their values come from."""
        return self.n == other.n and np.array_equal(self.ptr, other.ptr) and np.array_equal(self.ind, other.ind)


def read_matrix(A: Any) -> Any:
    """Return `A` as a square SciPy matrix in CSC, CSR or COO format with the ``data`` that refactor(values) refers to.

    Raises
    ------
    TypeError
        A dtype without a floating-point counterpart; SciPy's message.
    ValueError
        Not two-dimensional or not square; SciPy's messages.
    """
    if not is_sparse(A) or A.ndim != 2 or A.format not in ("csc", "csr", "coo", "bsr"):
        A = sp.csc_array(A)
    if A.format == "bsr":
        A = A.tocoo(copy=False)  # whole blocks, in the order of A.data.ravel()
    float_dtype(A.dtype)
    if A.shape[0] != A.shape[1]:
        raise ValueError("can only factor square matrices")
    if A.shape[0] >= 2**31:
        raise ValueError(f"indices values too large for gpusplu: A has {A.shape[0]} columns, at most 2**31 - 1 work")
    return A


def canonicalize(A: Any, indices: tuple[np.ndarray, np.ndarray] | None = None) -> tuple[Pattern, np.ndarray]:
    """Canonical pattern of `A` (from `read_matrix`) and the caller's values in floating point, in the caller's order.

    `indices`: its `index_arrays`, if the caller has them.

    Raises
    ------
    ValueError
        Indices outside the matrix, decreasing pointers, or arrays with an invalid shape or length.
    """
    n = A.shape[0]
    pattern = Pattern(_core.canonical(A.format, n, *(indices or index_arrays(A))))
    return pattern, values_on(pattern, A)


def values_on(pattern: Pattern, A: Any) -> np.ndarray:
    """The values of `A` that belong to its pattern, in floating point, in the caller's order."""
    values = one_dimensional(A, "data")
    if values.size < pattern.size:
        raise ValueError(f"A.data has {values.size} entries, but A has indices of {pattern.size}")
    return in_floating_point(pattern, values[: pattern.size])


def in_floating_point(pattern: Pattern, values: np.ndarray) -> np.ndarray:
    """The caller's values, shape (..., size). Duplicates are summed in their own type, as in SciPy:
    booleans by or, integers modulo a power of 2. The first duplicate then has the sum."""
    starts = pattern.core.source_ptr
    if values.dtype.kind in "biu" and starts.size and pattern.size:
        places = np.where((source := pattern.core.source) < 0, ~source, source)
        summed = np.zeros_like(values)
        kind = np.logical_or if values.dtype.kind == "b" else np.add
        summed[..., places[starts[:-1]]] = kind.reduceat(values[..., places], starts[:-1], axis=-1, dtype=values.dtype)
        values = summed
    return np.ascontiguousarray(values, dtype=float_dtype(values.dtype))


def one_dimensional(A: Any, name: str) -> np.ndarray:
    """The array `name` of `A`; checked because callers may have replaced it."""
    array: np.ndarray = getattr(A, name)
    if array.ndim != 1:
        raise ValueError(f"A.{name} must be one-dimensional, got an array of shape {array.shape}")
    return array


def index_arrays(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of `A`, or pointers and indices."""
    return same_integers(A, *(("row", "col") if A.format == "coo" else ("indptr", "indices")))


def same_integers(A: Any, *names: str) -> tuple[np.ndarray, np.ndarray]:
    """Two index arrays of `A` as int32 both or int64 both."""
    first, second = (one_dimensional(A, name) for name in names)
    for name, array in zip(names, (first, second), strict=True):
        if array.dtype.kind not in "iu":
            raise ValueError(f"A.{name} must be an array of integers, got {array.dtype.name}")
    dtype = np.int32 if first.dtype == second.dtype == np.int32 else np.int64
    return np.ascontiguousarray(first, dtype=dtype), np.ascontiguousarray(second, dtype=dtype)


def both_triangles(pattern: Pattern, data: np.ndarray, kind: str, hermitian: bool = True) -> Pattern:
    """Pattern of the Hermitian matrix, or the symmetric one, that `pattern` and the caller's values `data` hold in full
    or as one triangle, for the factorization `kind`.

    Raises
    ------
    NotHermitianError
        Both triangles are stored and differ by more than rounding, or the diagonal of a Hermitian matrix is not real.
    """
    if pattern.core.triangle != "full":
        pattern = Pattern(pattern.core.mirrored(hermitian))
        if data.dtype.kind == "f":
            return pattern
    check_symmetry(pattern, pattern.gather(data), kind, hermitian)
    return pattern


def is_symmetric(pattern: Pattern, canonical: np.ndarray, hermitian: bool) -> bool:
    """Whether canonical values, both triangles, are of a Hermitian matrix, or a symmetric one, up to rounding."""
    return _core.are_symmetric(pattern.ptr, pattern.ind, canonical, hermitian)


def check_symmetry(pattern: Pattern, canonical: np.ndarray, kind: str, hermitian: bool = True) -> None:
    """Refuse canonical values, both triangles of them, that `kind` does not accept. Ignores NaN and Inf.

    Raises
    ------
    NotHermitianError
    """
    if not is_symmetric(pattern, canonical, hermitian) and _core.all_finite(canonical):
        raise not_hermitian(pattern, canonical, kind, hermitian)


def check_new_values(pattern: Pattern, canonical: np.ndarray, kind: str, hermitian: bool = True) -> None:
    """`check_symmetry` of values that are not a matrix, on the pattern that was analysed for `kind`; fast if repeated.
    NaN and Inf are ignored.

    Raises
    ------
    NotHermitianError
    """
    if not pattern.pairs(hermitian, canonical.dtype).hold(canonical) and _core.all_finite(canonical):
        raise not_hermitian(pattern, canonical, kind, hermitian)


def not_hermitian(pattern: Pattern, canonical: np.ndarray, kind: str, hermitian: bool) -> NotHermitianError:
    """The error about the pair of entries that differ most."""
    A = sp.csc_array((canonical, pattern.ind, pattern.ptr), shape=(pattern.n,) * 2)
    difference = abs(A - (A.conj() if hermitian else A).T).tocoo()
    worst = int(difference.data.argmax())
    i, j = int(difference.row[worst]), int(difference.col[worst])
    other, what = (f"the conjugate of A[{j}, {i}]", "Hermitian") if hermitian else (f"A[{j}, {i}]", "symmetric")
    return NotHermitianError(
        f"{kind}: A[{i}, {j}] and {other} differ by {difference.data[worst]:.3g}, so A is not {what}; pass one "
        "triangle only, or use splu(A)"
    )


def is_hermitian(A: Any) -> bool:
    """What `A`, from `read_matrix`, is for ldlt where the caller does not say: False for complex matrices that equal
    their transpose and not their conjugate transpose. One triangle means a Hermitian matrix, as for cholesky."""
    if np.dtype(A.dtype).kind != "c":
        return True
    pattern, data = canonicalize(A)
    canonical = pattern.gather(data)
    if pattern.core.triangle != "full" or is_symmetric(pattern, canonical, True):
        return True
    return not is_symmetric(pattern, canonical, False)


def check_finite(pattern: Pattern, canonical: np.ndarray) -> None:
    """Refuse NaN and Inf.

    Raises
    ------
    NonFiniteError
        With the row and column of the first one.
    """
    if not _core.all_finite(canonical):
        raise non_finite(pattern, int(np.isfinite(canonical).argmin()), canonical)


def non_finite(pattern: Pattern, entry: int, canonical: np.ndarray) -> NonFiniteError:
    """The error about canonical `entry`."""
    column = int(np.searchsorted(pattern.ptr, entry, side="right")) - 1
    return NonFiniteError(f"A[{pattern.ind[entry]}, {column}] is {canonical[entry]}; all values of A must be finite")


def pattern_mismatch(old: Pattern, new: Pattern) -> PatternMismatchError:
    """The error about the first place where two patterns differ."""
    if old.n != new.n:
        return PatternMismatchError(
            f"refactor: the matrix is {new.n} x {new.n}, the factored one {old.n} x {old.n}; call splu for a new matrix"
        )
    old_key, new_key = (np.repeat(np.arange(p.n), np.diff(p.ptr)) * p.n + p.ind for p in (old, new))
    key = int(np.setxor1d(old_key, new_key)[0])
    column, row = divmod(key, old.n)
    where = "is not in the factored pattern" if key in new_key else "of the factored pattern is missing"
    return PatternMismatchError(
        f"refactor: entry ({row}, {column}) {where} ({new.nnz} entries against {old.nnz}); keep explicit zeros, or "
        "call splu for a new pattern"
    )


def values_for(pattern: Pattern, values: Any, kind: str, hermitian: bool = True) -> np.ndarray:
    """Canonical values from what a caller hands to refactor: values in the order of A.data, or a matrix.

    `kind` is that of the factorization; what is `hermitian`, or symmetric, may be one triangle.

    Raises
    ------
    PatternMismatchError
        A matrix with another pattern.
    NotHermitianError
        Values are not what `kind` is for.
    ValueError
        As many values as A.data had are needed.
    TypeError
        `values` are no numbers.
    """
    if type(values) is np.ndarray and values.shape == (pattern.size,) and values.dtype in FLOATS:
        canonical = pattern.gather(np.ascontiguousarray(values))
        if kind != "lu":
            check_new_values(pattern, canonical, kind, hermitian)
        return canonical
    values = to_host(values)
    if isinstance(values, np.ndarray) and values.shape == (pattern.n, pattern.n) and kind == "lu":
        data = values[pattern.ind, np.repeat(np.arange(pattern.n), np.diff(pattern.ptr))]
        if np.count_nonzero(data) == np.count_nonzero(values):  # zeros may be entries
            return np.ascontiguousarray(data, dtype=float_dtype(data.dtype))
    if sp.issparse(values) or np.ndim(values) == 2:
        new, data = canonicalize(read_matrix(values))
        if kind != "lu":
            new = both_triangles(new, data, kind, hermitian)
        if not pattern.matches(new):
            raise pattern_mismatch(pattern, new)
        return new.gather(data)
    data = np.asarray(values)
    if data.dtype.kind not in "biufc":
        raise TypeError(f"refactor: values must be numbers or a matrix, not {type(values).__name__}")
    if data.size != pattern.size:
        raise wrong_size(pattern, data.size)
    return values_for(pattern, in_floating_point(pattern, data.reshape(-1)), kind, hermitian)


def batch_values(pattern: Pattern, values: Any, dtype: np.dtype | None = None) -> Any:
    """Values of many matrices, shape (nbatch, size), C-contiguous, in floating point or `dtype`, on their side.

    Raises
    ------
    ValueError
        Not two-dimensional, no system, or rows of another length than A.data had.
    TypeError
        `values` are no numbers, or `dtype` would lose precision.
    """
    data = values if is_cupy_array(values) else np.asarray(to_host(values))
    if data.dtype.kind not in "biufc":
        raise TypeError(f"values of a batch must be an array of numbers, not {type(values).__name__}")
    if data.ndim != 2 or data.shape[1] != pattern.size:
        raise ValueError(f"values of a batch must have shape (nbatch, {pattern.size}), got {data.shape}")
    if data.shape[0] == 0:
        raise ValueError("a batch needs at least one system, got values of shape " + str(data.shape))
    wanted = float_dtype(data.dtype) if dtype is None else dtype
    if data.dtype.kind in "biu" and not is_cupy_array(data):
        data = in_floating_point(pattern, data)
    if data.dtype != wanted:
        np.empty(0, data.dtype).astype(wanted, casting="safe")  # CuPy's astype has no casting
        data = data.astype(wanted)
    return data if data.flags.c_contiguous else data.copy(order="C")


def wrong_size(pattern: Pattern, size: int) -> ValueError:
    """The error about a number of values that A.data did not have."""
    return ValueError(
        f"refactor: values has {size} entries, A.data had {pattern.size}; pass as many, in the order of "
        "A.data, or a matrix"
    )
