"""Schur complements: a factor of the interior unknowns, and the complement on the interface unknowns.

With the unknowns of the interface, S, last,

    A = [A_II  A_IS]      S = A_SS - A_SI A_II^-1 A_IS,
        [A_SI  A_SS],

and ``A x = b`` splits into the first half of a solve with the interior, a solve with S by the caller, and the second
half with the interior (B. F. Smith, P. Bjorstad and W. Gropp, "Domain Decomposition", 1996).

Fronts eliminate the interior and leave S as their last front, at the cost of one factorization (`Eliminated`). On a
device only S is taken from the fronts, and the interior has a separate factor (`Solved`). If the interior needs other
pivots than fronts provide, or is so sparse that a few solves are faster, this factor solves for the columns of A_IS.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from math import prod
from threading import local
from typing import Any, Generic, NamedTuple, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from ..common import matrix
from ..common.counting import FACTORIZATIONS
from ..common.memo import Memo
from ..common.rhs import cast, check_array, check_rhs, complex_dtype
from ..common.scipy_names import warn
from ..cost.calibration import costs_of, for_core
from ..cost.features import predict
from ..engines import registry
from ..typing import ArrayT, FactorT
from .symbolic import Symbolic

# ---- A matrix divided by an interface: the unknowns and the four blocks


class Block(NamedTuple):
    """A block of the matrix: its pattern, and the positions of its values in the canonical values of the whole."""

    pattern: sp.csc_array
    entries: np.ndarray

    def of(self, canonical: np.ndarray) -> sp.csc_array:
        return self.with_values(canonical[self.entries])

    def with_values(self, values: np.ndarray) -> sp.csc_array:
        return sp.csc_array((values, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)


def divided(pattern: matrix.Pattern, indices: np.ndarray) -> tuple[np.ndarray, list[list[Block]]]:
    """The other unknowns, ascending, and the blocks of both: ``[[A_II, A_IS], [A_SI, A_SS]]``."""
    inside = np.ones(pattern.n, bool)
    inside[indices] = False
    inner = np.flatnonzero(inside)
    shape = (pattern.n, pattern.n)
    rows = sp.csc_array((np.arange(pattern.nnz), pattern.ind, pattern.ptr), shape=shape).tocsr()
    sets = (inner, indices)
    parts = [[rows[one].tocsc()[:, other] for other in sets] for one in sets]
    for part in (*parts[0], *parts[1]):
        part.sort_indices()
    return inner, [[Block(part, part.data) for part in row] for row in parts]


def read_indices(indices: Any, n: int) -> np.ndarray:
    """Numbers of unknowns, or a mask of them, as an array of intp.

    Raises
    ------
    ValueError
        Indices repeat, lie outside of ``range(n)``, or include all unknowns.
    TypeError
        Indices are not integers.
    """
    given = np.asarray(matrix.to_host(indices))
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        given = given.astype(np.intp)
    if given.dtype.kind not in "iu":
        raise TypeError(f"schur: indices must be integers or a mask, got {given.dtype.name}")
    if given.ndim != 1 or ((given < 0) | (given >= n)).any():
        raise ValueError(f"schur: indices must be a list of numbers in range({n})")
    if np.unique(given).size != given.size:
        values, counts = np.unique(given, return_counts=True)
        raise ValueError(f"schur: index {int(values[counts > 1][0])} occurs more than once")
    if given.size == n:
        raise ValueError("schur: indices are all unknowns, so that nothing is left to factor")
    return given.astype(np.intp)


# ---- Computation of a Schur complement by fronts or by solves, and the two halves of solves with it

COLUMNS_PER_SOLVE = 64  # columns of the interface per solve
MOST_STEPS = 10  # of refinement


class Eliminated:
    """Schur complement by a partial factorization with fronts (core/numeric/partial_factor.hpp).

    `condense` gives an intermediate result for `expand`, and the right-hand sides of the interface. All right-hand
    sides are (n, k) and Fortran-contiguous, of the dtype of the factor.
    """

    eliminated = True  # by fronts

    def __init__(self, core: Any, complement: np.ndarray, m: int):
        self.schur, self._core, self._m = complement.reshape((m, m), order="F"), core, m

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        halfway = np.empty_like(b)
        self._core.condense(b, halfway)
        return halfway, halfway[len(b) - self._m :]

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray:
        whole, x = halfway.copy(order="F"), np.empty_like(b)
        whole[len(b) - self._m :] = y
        self._core.expand(b, whole, x)
        return x


class Solved:
    """Schur complement by solves with a factor of the interior, except for a complement that fronts have computed.

    Errors of solves are small relative to the largest entries of a solution. The rows of the interface may depend on
    the small entries only, so solutions are refined until their product with these rows no longer changes.
    """

    def __init__(
        self, symbolic: SchurSymbolic, interior: Any, canonical: Any, left: Any = None, border: np.ndarray | None = None
    ):
        """`canonical` and the complement `left` by fronts may be on a device; `border`: values of A_IS, A_SI and A_SS,
        by default those of `canonical`."""
        self._symbolic, self._interior, self._canonical, self._given = symbolic, interior, canonical, border
        self.eliminated = left is not None and self._is_fit(left)
        self.schur = left if left is not None and self.eliminated else self._solved()

    @cached_property
    def _inner(self) -> sp.csc_array:
        return self._symbolic.blocks[0][0].of(matrix.to_host(self._canonical))

    @cached_property
    def _border(self) -> tuple[sp.csc_array, sp.csc_array, sp.csc_array]:
        """A_IS, A_SI and A_SS."""
        (_, right), row = self._symbolic.blocks
        blocks = right, *row
        if self._given is None:
            parts = [matrix.to_host(self._canonical)[block.entries] for block in blocks]
        else:
            parts = np.split(self._given, np.cumsum([block.entries.size for block in blocks[:-1]]))
        found = [block.with_values(part) for block, part in zip(blocks, parts, strict=True)]
        return found[0], found[1], found[2]

    @cached_property
    def _moduli(self) -> tuple[sp.csc_array, sp.csc_array]:
        """Moduli of the entries of A_II and A_SI."""
        return abs(self._inner), abs(self._border[1])

    def _solved(self) -> np.ndarray:
        """The complement by solves for the columns of A_IS."""
        right, _, corner = self._border
        schur = np.asfortranarray(corner.toarray())
        filled = np.flatnonzero(np.diff(right.indptr))
        for first in range(0, filled.size, COLUMNS_PER_SOLVE):
            columns = filled[first : first + COLUMNS_PER_SOLVE]
            schur[:, columns] -= self._taken(right[:, columns].toarray(order="F"), schur[:, columns])[1]
        return schur

    def _is_fit(self, left: Any) -> bool:
        """Whether a complement by fronts agrees with a solve with the interior for unknowns of equal size, within the
        bounds of core/numeric/partial_factor.cpp."""
        problem = self._symbolic.interior.parts()[0]
        if problem.cholesky or problem.options.pivoting == "static":
            return True
        right, below, corner = self._border
        y = known_answer(below, left.shape[0])
        product = np.einsum("ij,j", matrix.to_host(left), y)  # BLAS would wake its threads
        found = corner @ y - below @ self._interior.solve(right @ y) - product
        size = abs(below).sum(axis=1) * abs(y) + abs(corner) @ abs(y)
        rowwise = (abs(found)[size > 0] / size[size > 0]).max(initial=0)
        policy = _core.AccuracyPolicy(y.dtype.char, pivoting=problem.options.pivoting)
        return policy.is_accurate(float(abs(found).max() / (size.max() or 1)), float(rowwise))

    def _taken(self, b: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``x = A_II^-1 b`` and ``A_SI x``, accurate relative to itself and to the array `reference`.

        Refined if a row of ``A_II x - b`` is not small relative to its terms, until a step does not change ``A_SI x``
        (R. D. Skeel, Math. Comp. 35 (1980), pages 817-832).
        """
        inner, below = self._inner, self._border[1]
        x = self._interior.solve(b)
        taken, before = below @ x, np.inf
        if self._symbolic.interior.parts()[0].options.refine == "never":
            return x, taken
        eps, (of_inner, of_below) = np.finfo(b.dtype).eps, self._moduli
        for _ in range(MOST_STEPS):
            residual = b - inner @ x
            if (abs(residual) <= _core.REFINE_ABOVE * eps * (of_inner @ abs(x) + abs(b))).all():
                return x, taken
            step = self._interior.solve(np.asfortranarray(residual))
            correction = abs(below @ step)
            largest = correction.max(initial=0)
            if not largest < before / 2:
                break
            x, before = x + step, largest
            taken = below @ x
            if (correction <= _core.REFINE_ABOVE * eps * (of_below @ abs(x))).all():
                return x, taken
        size = max(abs(taken).max(initial=0), abs(reference).max(initial=0))
        if not before <= np.sqrt(eps) * size and np.isfinite(b).all():
            warn(_core.INACCURATE_SOLVE, RuntimeWarning)
        return x, taken

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_interface = b[self._symbolic.indices]
        inner, taken = self._taken(np.asfortranarray(b[self._symbolic.inner]), of_interface)
        return inner, of_interface - taken

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray:
        x = np.empty_like(b)
        x[self._symbolic.indices] = y
        x[self._symbolic.inner] = halfway - self._interior.solve(np.asfortranarray(self._border[0] @ y))
        return x


def known_answer(A: sp.csc_array, n: int) -> np.ndarray:
    """Unknowns of equal size with irregular signs, as in core/numeric/error_checks.hpp for a matrix with these
    values."""
    extreme, largest = np.finfo(A.dtype).maxexp // 2, abs(A.data).max(initial=0)
    exponent = int(np.frexp(largest)[1]) - 1 if largest else 0
    entry = np.ldexp(1.0, -exponent // 2 if abs(exponent) > extreme else 0)
    signs = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B9) >> np.uint32(31)
    return np.where(signs, -entry, entry).astype(A.dtype)


class Condensed(NamedTuple):
    """The right-hand sides that a thread condensed last: shape and dtype, values, and the first half of their solve."""

    shape: tuple[int, ...]
    dtype: np.dtype
    b: np.ndarray
    halfway: np.ndarray

    def as_complex(self) -> Condensed:
        """The same for real right-hand sides, with zero imaginary parts."""
        b, halfway = (
            np.asfortranarray(np.concatenate((one, np.zeros_like(one)), axis=1)) for one in (self.b, self.halfway)
        )
        return Condensed(self.shape, complex_dtype(self.dtype), b, halfway)


def in_columns(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy of shape (n, k), Fortran-contiguous; for a real `dtype`, imaginary parts are further columns."""
    columns = array.reshape((len(array), prod(array.shape[1:])), order="F")
    if columns.dtype.kind == "c" and dtype.kind == "f":
        columns = np.concatenate((columns.real, columns.imag), axis=1)
    return np.array(columns, dtype, order="F")


def as_given(columns: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Columns that `in_columns` would make of an array of `dtype`, one of right-hand sides of `shape`, as such."""
    if dtype.kind == "c" and columns.dtype.kind == "f":
        half = columns.shape[1] // 2
        columns = columns[:, :half] + dtype.type(1j) * columns[:, half:]
    return np.asfortranarray(columns.reshape((len(columns), *shape[1:]), order="F"))


class SchurSymbolic(Generic[FactorT]):
    """The analysis of the interior of a matrix; made by ``gpusplu.analyze(A, schur=indices)``.

    Attributes
    ----------
    shape : tuple of int
        Shape of the whole matrix.
    indices : ndarray of int, shape (m,)
        The interface, in the caller's order.
    interior : Symbolic
        Analysis of the other unknowns, in ascending order.

    See Also
    --------
    analyze, SchurFactor

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
    >>> halves = symbolic.factor(A.data)
    >>> symbolic.indices
    array([90, 91, 92])
    >>> symbolic.interior.n
    97
    """

    def __init__(
        self,
        pattern: matrix.Pattern,
        canonical: np.ndarray,
        indices: Any,
        make: Callable[[Any], Symbolic[FactorT, Any]],
    ):
        self.indices, self._pattern = read_indices(indices, pattern.n), pattern
        self.indices.flags.writeable = False
        self.shape = (pattern.n, pattern.n)
        self.inner, self.blocks = divided(pattern, self.indices)
        self.interior: Symbolic[FactorT, Any] = make(self.blocks[0][0].of(canonical))
        self.whole = self._with_interface(canonical)
        self._memo = Memo()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_memo", "entries")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _memo=Memo())
        if self.whole is not None:
            _core.validate(self.whole, self._pattern.core)

    def _with_interface(self, canonical: np.ndarray) -> Any:
        """The core's analysis of the whole matrix with the interface as last front; None if fronts are not used."""
        problem, analysis = self.interior.parts()
        core = analysis.core
        name, by_columns = self.interior.engine, core.method == "column"
        if not (registry.named(name).capabilities.schur and core.structural_rank == core.n and self.indices.size):
            return None
        if by_columns and (problem.options.pivoting == "partial" or core.ordering == "natural"):
            return None
        if by_columns:
            order: dict[str, Any] = {"ordering": problem.options.ordering, "perm": problem.options.perm}
            core = _core.fronts_like(core, problem.pattern.core, for_core(), **order)
        whole = _core.with_interface(core, self._pattern.core, canonical, self.indices.astype(np.int32))
        return whole if not by_columns or self._pays(whole) else None

    def _pays(self, whole: Any) -> bool:
        """Whether elimination by fronts is predicted to be faster than factoring by columns and solving."""
        problem, analysis = self.interior.parts()
        columns, fronts = (predict(core, problem.itemsize, costs_of()) for core in (analysis.core, whole))
        return bool(fronts.factor < columns.factor + self.indices.size * columns.solve)

    def factor(self, values: Any) -> SchurFactor[FactorT]:
        """Factor the interior, and compute the Schur complement, of `values` in the order of ``A.data``, or a matrix.

        Raises
        ------
        PatternMismatchError, NonFiniteError, RuntimeError, NotPositiveDefiniteError
            As :meth:`Symbolic.factor`; singularity and definiteness are those of the interior.

        See Also
        --------
        SchurFactor.refactor

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
        >>> halves = symbolic.factor(A.data)
        >>> halves.schur.shape
        (3, 3)
        """
        return SchurFactor(self, values)

    def partial_factor(self, dtype: np.dtype) -> Any:
        """Memory for the fronts that compute the complement; None if fronts are not used."""
        if self.whole is None:
            return None
        problem, engine = self.interior.parts()[0], registry.named(self.interior.engine)
        return engine.schur(problem, self.whole, self._pattern, dtype, self._memo)

    @cached_property
    def entries(self) -> np.ndarray:
        """Canonical entries of the interior, and those of its border: A_IS, A_SI and A_SS."""
        (inner, right), row = self.blocks
        return np.concatenate([block.entries for block in (inner, right, *row)])

    @property
    def size(self) -> int:
        """Number of values of ``A.data``."""
        return int(self._pattern.size)

    def canonical(self, values: Any) -> np.ndarray:
        """Canonical values of the whole matrix."""
        problem = self.interior.parts()[0]
        canonical = matrix.values_for(self._pattern, values, problem.kind, problem.options.hermitian)
        matrix.check_finite(self._pattern, canonical)
        return canonical


class SchurFactor(Generic[FactorT]):
    """A factor of the interior and the Schur complement of the interface; made by `SchurSymbolic.factor`.

    Attributes
    ----------
    symbolic : SchurSymbolic
    shape : tuple of int
        Shape of the whole matrix.
    dtype : dtype

    See Also
    --------
    analyze, SchurSymbolic

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
    >>> halves = symbolic.factor(A.data)
    >>> b = np.ones(100)
    >>> y = np.linalg.solve(halves.schur, halves.condense(b))
    >>> x = halves.expand(y)
    >>> np.allclose(A @ x, b)
    True
    """

    def __init__(self, symbolic: SchurSymbolic[FactorT], values: Any):
        self.symbolic, self.shape = symbolic, symbolic.shape
        canonical = symbolic.canonical(values)
        self.dtype = canonical.dtype
        self._interior: Any = None
        self._interior_version = 0  # version of the values that it has to hold
        self._lost = False
        self._partial = symbolic.partial_factor(self.dtype)
        canonical = canonical.copy()  # it may be the caller's A.data
        self._hold(self._made(canonical), canonical, values)

    def _made(self, canonical: np.ndarray) -> Eliminated | Solved:
        """By fronts as long as their pivots are suitable, else by solves."""
        if self._has_halves:
            FACTORIZATIONS.add()
            complement = self._partial.factor(canonical)
            if complement is not None:
                return Eliminated(self._partial, complement, self.symbolic.indices.size)
        values = canonical[self.symbolic.blocks[0][0].entries]
        if self._interior is None or self._has_halves:
            self._interior = self.symbolic.interior.factor(values)
        else:
            self._interior.refactor(values)
        if self._partial is None or self._has_halves:
            return Solved(self.symbolic, self._interior, canonical)
        left = self._partial.factor(canonical, self._interior.stats.bytes)
        return Solved(self.symbolic, self._interior, canonical, left)

    def _inner(self) -> np.ndarray:
        """Values of the interior that are held."""
        return matrix.to_host(self._canonical)[self.symbolic.blocks[0][0].entries]

    def _made_on_device(self, values: Any) -> tuple[Eliminated | Solved, Any] | None:
        """The same for values on the device of the factor, with canonical values there; None where that is
        impossible."""
        symbolic, interior = self.symbolic, self._interior
        made = self._partial.refactor(values, symbolic.entries, interior.stats.bytes)
        if made is None:
            return None
        left, some, canonical = made
        inner = symbolic.blocks[0][0].entries.size
        interior.refactor(some[:inner])
        return Solved(symbolic, interior, canonical, left, matrix.to_host(some[inner:])), canonical

    def _stays_on_device(self, values: Any) -> bool:
        """Whether values on the device can be factored there."""
        known = matrix.is_cupy_array(values) and values.flags.c_contiguous and hasattr(self._partial, "refactor")
        return bool(known and values.shape == (self.symbolic.size,) and values.dtype == self.dtype)

    def _read(self, values: Any) -> np.ndarray:
        """An unshared copy of the canonical values on the host."""
        return self.symbolic.canonical(values).astype(self.dtype, casting="safe", copy=True)

    def _hold(self, method: Eliminated | Solved, canonical: Any, values: Any) -> None:
        self._method, self._last, self._lost = method, local(), False
        self._canonical = canonical
        self._on_device = matrix.is_cupy(values)
        if isinstance(method, Eliminated):
            self._interior = None
        else:
            self._interior_version = self._interior.version
        if not method.eliminated:
            self._partial = None  # after unsuitable pivots fronts are not tried again

    @property
    def eliminated(self) -> bool:
        """Whether fronts computed the Schur complement; else solves with the factor of the interior did."""
        return self._method.eliminated

    @property
    def _has_halves(self) -> bool:
        """Whether the fronts that compute the complement can solve."""
        return hasattr(self._partial, "condense")

    @property
    def schur(self) -> Any:
        """``A_SS - A_SI A_II^-1 A_IS`` in the order of the indices, shape (m, m), Fortran-contiguous.

        On the device if the values were there.
        """
        put = matrix.to_device if self._on_device else matrix.to_host
        return put(self._method.schur)

    @property
    def interior(self) -> FactorT:
        """Factor of the interior, LUFactor, CholeskyFactor or LDLFactor; if fronts computed the Schur complement, it is
        made on first access."""
        if self._interior is None:
            self._interior = self.symbolic.interior.factor(self._inner())
            self._interior_version = self._interior.version
        else:
            self._recover()
        return self._interior

    def refactor(self, values: Any) -> None:
        """New values on the same pattern, as ``refactor`` of any factor; if this raises, nothing has changed.

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
        >>> halves = symbolic.factor(A.data)
        >>> before = halves.schur.copy()
        >>> halves.refactor(2 * A.data)
        >>> np.allclose(halves.schur, 2 * before)
        True
        """
        stay = self._stays_on_device(values)
        canonical = None if stay else self._read(values)
        try:
            made = self._made_on_device(values) if stay else None
            if made is None:
                canonical = self._read(values) if canonical is None else canonical
                made = self._made(canonical), canonical
        except BaseException as error:
            self._lost = True
            if self._has_halves:
                self._interior = None
            if isinstance(error, Exception):  # not for Ctrl-C, which must not be delayed
                with suppress(MemoryError):
                    self._recover()
            raise
        method, held = made
        self._hold(method, held, values)

    def __reduce__(self) -> tuple[Any, ...]:
        pattern = self.symbolic._pattern
        values = sp.csc_array((matrix.to_host(self._canonical), pattern.ind, pattern.ptr), shape=self.shape)
        return SchurFactor, (self.symbolic, values)

    def _recover(self) -> None:
        """Factor the values held again. If memory is short, the next call that needs the factor does it."""
        if self._lost and self._has_halves:
            self._partial.factor(self._canonical)
            self._lost = False
        interior = self._interior  # may hold other values: the caller or an interrupted refactor may have changed them
        if interior is not None and (self._lost or interior.version != self._interior_version):
            interior.refactor(self._inner())
            self._interior_version = interior.version
            self._lost = False

    @overload
    def condense(self, rhs: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def condense(self, rhs: ArrayT) -> ArrayT: ...
    def condense(self, rhs: Any) -> Any:
        """The right-hand side of the interface, ``b_S - A_SI A_II^-1 b_I``.

        Parameters
        ----------
        rhs : ndarray, shape (n,) or (n, k)

        Returns
        -------
        ndarray, shape (m,) or (m, k)
            `expand` then takes the solution of ``schur @ y = condense(rhs)``.

        See Also
        --------
        SchurFactor.expand

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
        >>> halves = symbolic.factor(A.data)
        >>> halves.condense(np.ones(100)).shape
        (3,)
        """
        if matrix.is_cupy(rhs):
            return matrix.to_device(self.condense(rhs.get()))
        check_array(rhs)
        given = cast(rhs, complex_dtype(self.dtype) if rhs.dtype.kind == "c" else self.dtype)
        check_rhs(given, self.shape[0])
        b = in_columns(given, self.dtype)
        self._recover()
        halfway, condensed = self._method.condense(b)
        self._last.condensed = Condensed(given.shape, given.dtype, b, halfway)
        return as_given(condensed, given.shape, given.dtype)

    @overload
    def expand(self, y: NDArray[Any], rhs: NDArray[Any] | None = None) -> NDArray[Any]: ...
    @overload
    def expand(self, y: ArrayT, rhs: ArrayT | None = None) -> ArrayT: ...
    def expand(self, y: Any, rhs: Any = None) -> Any:
        """The solution of the whole system from the solution of the interface.

        Parameters
        ----------
        y : ndarray, shape (m,) or (m, k)
        rhs : ndarray, shape (n,) or (n, k), optional
            Default: the one that this thread condensed last.

        Returns
        -------
        x : ndarray, shape (n,) or (n, k)

        Raises
        ------
        RuntimeError
            This thread has not condensed a right-hand side since the values were factored.
        ValueError
            Another shape.

        See Also
        --------
        SchurFactor.condense

        Examples
        --------
        >>> A = gs.gallery.poisson(10, 10)
        >>> symbolic = gs.analyze(A, schur=[90, 91, 92])
        >>> halves = symbolic.factor(A.data)
        >>> y = np.linalg.solve(halves.schur, halves.condense(np.ones(100)))
        >>> np.allclose(A @ halves.expand(y), 1)
        True
        """
        if matrix.is_cupy(y):
            return matrix.to_device(self.expand(y.get(), rhs))
        if rhs is not None:
            self.condense(rhs)
        last, y = getattr(self._last, "condensed", None), np.asarray(y)
        if last is None:
            raise RuntimeError("expand: condense a right-hand side first, or pass it")
        wanted = (self.symbolic.indices.size, *last.shape[1:])
        if y.shape != wanted:
            raise ValueError(f"expand: y must have shape {wanted}, got {y.shape}")
        if y.dtype.kind == "c" and last.dtype.kind == "f":
            last = last.as_complex()
        self._recover()
        x = self._method.expand(last.b, last.halfway, in_columns(y.astype(last.dtype), self.dtype))
        return as_given(x, last.shape, last.dtype)
