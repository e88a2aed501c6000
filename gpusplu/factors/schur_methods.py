"""How a Schur complement is made, by fronts or by solves, and the two halves of solves with it."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..common import matrix
from ..common.rhs import complex_dtype
from ..common.scipy_names import warn

if TYPE_CHECKING:
    from .schur import SchurSymbolic

AT_ONCE = 64  # columns of the interface that are solved for together
MOST_STEPS = 10  # of refinement, as long as they help


class Way(Protocol):
    """How a Schur complement was made, and the two halves of solves with it.

    Right-hand sides are (n, k) and Fortran-contiguous, of the dtype of the factor.
    """

    schur: np.ndarray
    eliminated: bool  # fronts left it

    def condense(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `expand` goes on from, and the right-hand sides of the interface."""

    def expand(self, b: np.ndarray, halfway: np.ndarray, y: np.ndarray) -> np.ndarray: ...


class Eliminated:
    """By fronts that left the interface (core/numeric/partial_factor.hpp)."""

    eliminated = True

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
    """By solves with a factor of the interior, but for the complement where fronts have left that.

    Errors of solves are small beside the largest entries of a solution. The rows of the interface may take the small
    ones alone, so solutions for them are refined until what these rows take stays as it is.
    """

    def __init__(
        self, symbolic: SchurSymbolic, interior: Any, canonical: Any, left: Any = None, border: np.ndarray | None = None
    ):
        """`canonical` and what was `left` may be on a device; `border`: values of A_IS, A_SI and A_SS, of `canonical`
        unless given."""
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
        """Of the entries of A_II and A_SI."""
        return abs(self._inner), abs(self._border[1])

    def _solved(self) -> np.ndarray:
        """The complement by solves for the columns of A_IS."""
        right, _, corner = self._border
        schur = np.asfortranarray(corner.toarray())
        filled = np.flatnonzero(np.diff(right.indptr))
        for first in range(0, filled.size, AT_ONCE):
            columns = filled[first : first + AT_ONCE]
            schur[:, columns] -= self._taken(right[:, columns].toarray(order="F"), schur[:, columns])[1]
        return schur

    def _is_fit(self, left: Any) -> bool:
        """Whether a complement that fronts have left does to unknowns of one size what a solve with the interior does,
        by the bounds that core/numeric/partial_factor.cpp has for its own."""
        problem = self._symbolic.interior.parts()[0]
        if problem.cholesky or problem.options.pivoting == "static":
            return True
        right, below, corner = self._border
        y = known_answer(below, left.shape[0])
        product = np.einsum("ij,j", matrix.to_host(left), y)  # BLAS would wake its threads
        found = corner @ y - below @ self._interior.solve(right @ y) - product
        size = abs(below).sum(axis=1) * abs(y) + abs(corner) @ abs(y)
        rowwise = (abs(found)[size > 0] / size[size > 0]).max(initial=0)
        ladder = _core.Ladder(y.dtype.char, pivoting=problem.options.pivoting)
        return ladder.is_accurate(float(abs(found).max() / (size.max() or 1)), float(rowwise))

    def _taken(self, b: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``x = A_II^-1 b`` and ``A_SI x``, which is to be accurate beside itself and the array `beside`.

        Refined where a row of ``A_II x - b`` is not small beside its own terms, until a step leaves ``A_SI x`` as it is
        (R. D. Skeel, Math. Comp. 35 (1980), pages 817-832).
        """
        inner, below = self._inner, self._border[1]
        x = self._interior.solve(b)
        taken, before = below @ x, np.inf
        if self._symbolic.never_refines:
            return x, taken
        eps, (of_inner, of_below) = np.finfo(b.dtype).eps, self._moduli
        for _ in range(MOST_STEPS):
            residual = b - inner @ x
            if (abs(residual) <= _core.REFINE_ABOVE * eps * (of_inner @ abs(x) + abs(b))).all():
                return x, taken
            step = self._interior.solve(np.asfortranarray(residual))
            moved = abs(below @ step)
            largest = moved.max(initial=0)
            if not largest < before / 2:
                break
            x, before = x + step, largest
            taken = below @ x
            if (moved <= _core.REFINE_ABOVE * eps * (of_below @ abs(x))).all():
                return x, taken
        size = max(abs(taken).max(initial=0), abs(beside).max(initial=0))
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
    """Unknowns of one size and signs without a pattern, as core/numeric/known_answer.hpp has them for a matrix with
    these values."""
    extreme, largest = np.finfo(A.dtype).maxexp // 2, abs(A.data).max(initial=0)
    exponent = int(np.frexp(largest)[1]) - 1 if largest else 0
    entry = np.ldexp(1.0, -exponent // 2 if abs(exponent) > extreme else 0)
    signs = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B9) >> np.uint32(31)
    known: np.ndarray = np.where(signs, -entry, entry).astype(A.dtype)
    return known


class Condensed(NamedTuple):
    """Of the right-hand sides that a thread condensed last: their shape and dtype, themselves, half of their solve."""

    shape: tuple[int, ...]
    dtype: np.dtype
    b: np.ndarray
    halfway: np.ndarray

    def as_complex(self) -> Condensed:
        """The same of real right-hand sides whose imaginary parts are zero."""
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
