"""Factor objects of distributed factorizations."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, Self

import numpy as np

from ..common.accuracy import CERTAIN_DISTANCE, INERTIA_SAMPLES
from ..common.counting import FACTORIZATIONS
from ..common.results import Inertia, SlogDet
from ..common.rhs import check_trans, solve_as_given
from ..common.scipy_names import warn
from ..common.stats import Explanation, Stats, durations, show
from .agreement import agreed
from .refinement import Certified
from .rows import Rows
from .solvers import Solver
from .system import System


class Parts:
    """Parts of a factor on all ranks. `destroy` is collective."""

    def __init__(self, system: System, solver: Solver):
        self.system, self.solver = system, solver
        self.is_open = True

    def destroy(self) -> None:
        if self.is_open:
            self.is_open = False
            self.solver.destroy()
            self.system.destroy()


class Dropped:
    """For a communicator: number of factors made, and the parts of factors that are no longer referenced here."""

    def __init__(self) -> None:
        self.made = 0
        self.parts: dict[int, Parts] = {}


@cache
def key() -> int:
    """By which MPI finds the `Dropped` of a communicator, whatever Python object stands for that."""
    from mpi4py import MPI

    return int(MPI.Comm.Create_keyval())


def dropped(comm: Any) -> Dropped:
    found = comm.Get_attr(key())
    if found is None:
        found = Dropped()
        comm.Set_attr(key(), found)
    return found


def watch(factor: Any, comm: Any, parts: Parts) -> None:
    """Let a later `collect` destroy the parts once the factor is no longer referenced."""
    kept = dropped(comm)
    kept.made += 1
    weakref.finalize(factor, kept.parts.__setitem__, kept.made, parts).atexit = False


def collect(comm: Any) -> None:
    """Destroy the parts of factors that no rank holds any more; collective."""
    kept = dropped(comm)
    everywhere = set.intersection(*map(set, comm.allgather(list(kept.parts))))
    for number in sorted(everywhere):
        kept.parts.pop(number).destroy()


class DistributedFactor:
    """Common base of distributed LU, Cholesky and LDL^T factors.

    All ranks of the communicator call every method, each with its part, and get the same exceptions. The memory
    of a deleted factor is freed when the next one is made; `close` or the end of a ``with`` block frees it immediately.
    """

    def __init__(self, rows: Rows, parts: Parts, both: bool = True):
        """`both`: both triangles were given."""
        self._rows, self._parts, self._has_both = rows, parts, both
        self._system, self._solver = parts.system, parts.solver
        self._certified = Certified(parts.system, parts.solver)
        self._seconds = {"factor": 0.0, "refactor": 0.0, "solve": 0.0}
        with self._timed("factor"):
            self._check_values()
            self._solver.factor()
        watch(self, rows.comm, parts)
        FACTORIZATIONS.add()

    comm = property(lambda self: self._rows.comm, doc="The communicator.")
    shape = property(lambda self: (self._rows.n, self._rows.n), doc="Shape of A.")
    dtype = property(lambda self: self._rows.dtype, doc="Of the solutions: float64 or complex128.")
    engine = property(lambda self: self._solver.name, doc="Name of the solver.")

    @property
    def rows(self) -> tuple[int, int]:
        """First row of this rank, and the first row after its last."""
        return self._rows.first, self._rows.first + self._rows.count

    @property
    def backward_error(self) -> float | None:
        """Normwise backward error of the last solve, the largest over its columns; None before one."""
        return self._certified.error

    def solve(self, rhs: Any, trans: str = "N", *, root: int | None = None) -> Any:
        """Solve ``op(A) x = rhs``.

        Parameters
        ----------
        rhs : ndarray, shape (rows of this rank,) or (rows of this rank, k)
            Must cast safely to the dtype of the factor; complex right-hand sides of a real factor are fine.
        trans : {"N", "T", "H"}, optional
            A, its transpose, or its conjugate transpose.
        root : int, optional
            The rank that has all of `rhs`, of shape (n,) or (n, k); the arguments of the others are ignored.

        Returns
        -------
        x : ndarray
            The part of this rank; with `root`, the whole solution on that rank and None on the others.

        Raises
        ------
        TypeError, ValueError
            As :meth:`gpusplu.LUFactor.solve`, and where ranks differ in `trans`, `root` or the number of columns.

        Warns
        -----
        RuntimeWarning
            The solution is not accurate, whatever pivots were tried.
        """
        self._require_open()

        def checked() -> tuple[Any, Any]:
            check_trans(trans)
            if root is not None and not 0 <= root < self.comm.size:
                raise ValueError(f"root={root} is none of the {self.comm.size} ranks")
            if root is not None and root != self.comm.rank:
                return None, rhs
            n = self._rows.count if root is None else self._rows.n
            probe = solve_as_given(lambda b, op: b, rhs, trans, n, self.dtype)
            return (probe.shape[1:], probe.dtype.kind) if root is None else None, rhs

        rhs = agreed(self.comm, ("solve", trans, root), checked)
        with self._timed("solve"):
            part = rhs if root is None else self._rows.scatter(rhs, root)
            self._certified.error = None
            x = solve_as_given(self._solve_columns, part, trans, self._rows.count, self.dtype)
            if self._certified.must_warn():
                wrong, error = "the solution is not finite, or not accurate", self._certified.error
                warn(f"solve: {wrong}: its backward error is {error:.1e}{self._solver.advice}", RuntimeWarning)
            return x if root is None else self._rows.gather(x, root)

    def _solve_columns(self, b: np.ndarray, op: int) -> np.ndarray:
        if b.ndim == 1:
            return self._certified.solve(b, op)
        x = np.empty_like(b)
        for k in range(b.shape[1]):
            x[:, k] = self._certified.solve(b[:, k], op)
        return x

    def refactor(self, values: Any) -> None:
        """Factor new values on the same pattern, reusing the analysis.

        If this raises, the factor still holds the previous values.

        Parameters
        ----------
        values : array_like, shape (A.data.size,), or sparse matrix
            Of this rank's rows: in the order of ``A.data``, or a matrix with the same pattern.

        Raises
        ------
        PatternMismatchError
        NonFiniteError
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
        HostMemoryError
        SolverError
        """
        self._require_open()
        new = agreed(self.comm, ("refactor",), lambda: (None, self._rows.read_values(values)))
        with self._timed("refactor"):
            old, self._rows.values = self._rows.values, new
            self._system.fill()
            try:
                self._check_values()
                self._solver.factor()
            except Exception:
                self._rows.values = old
                self._system.fill()
                self._solver.factor()
                raise
        FACTORIZATIONS.add()

    def _check_values(self) -> None:
        """Refuse values of both triangles that have to be symmetric, and are not."""
        if self._has_both and self._solver.kind != "lu":
            self._system.check_symmetry(self._solver.kind)

    def slogdet(self) -> SlogDet[float]:
        """Sign (or phase) and logarithm of the modulus of the determinant of A.

        Raises
        ------
        EngineUnavailableError
            SuperLU_DIST does not provide it.
        """
        self._require_open()
        mantissa, exponent = self._solver.determinant()
        size = abs(mantissa)
        sign = mantissa / size if size else 0.0
        return SlogDet(
            self.dtype.type(sign if self.dtype.kind == "c" else sign.real), float(np.log(size) + exponent * np.log(2))
        )

    @property
    def stats(self) -> Stats:
        """Seconds per phase, sizes, and counts of pivoting and refinement; the same on all ranks except seconds.

        Bytes are the sum over all ranks.
        """
        self._require_open()
        return Stats(
            {
                "engine": self.engine,
                "kind": self._solver.kind,
                "ranks": self.comm.size,
                "n": self._rows.n,
                "nnz": self._rows.nnz,
                **self._solver.figures(),
                "n_repivoted": self._certified.n_repivoted,
                "n_refinement": self._certified.n_refinement,
                "backward_error": self.backward_error,
                "seconds": dict(self._seconds),
            }
        )

    def explain(self) -> Explanation:
        """The factorization and its costs as a few lines of text."""
        stats = self.stats
        size = f"{show(stats['n'])} x {show(stats['n'])}, {show(stats['nnz'])} entries"
        figures = ("ordering", "nnz_factor", "flops", "bytes", "n_delayed", "n_repivoted", "n_refinement")
        error = self.backward_error
        rows = [
            ("matrix", f"{size}, on {stats['ranks']} ranks"),
            ("engine", f"{self.engine}: {self._solver.kind}"),
            ("factor", ", ".join(f"{name} {show(stats[name])}" for name in figures if name in stats)),
            ("accuracy", "measured at every solve" if error is None else f"backward error {error:.1e}"),
            ("seconds", durations(stats["seconds"])),
        ]
        return Explanation(rows)

    def close(self) -> None:
        """Free the memory now; the factor cannot solve afterwards."""
        self._parts.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if not self._parts.is_open:
            raise ValueError("the factor was closed")

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self._seconds[phase] = perf_counter() - start

    def __repr__(self) -> str:
        n = self._rows.n
        return (
            f"<{type(self).__name__} of {n} x {n}, {self.dtype.name}, on {self.comm.size} ranks, engine {self.engine}>"
        )


class DistributedLUFactor(DistributedFactor):
    """LU factors of a matrix on the ranks of a communicator; made by :func:`gpusplu.distributed.splu`."""


class DistributedSymmetricFactor(DistributedFactor):
    """Factor of a symmetric matrix, passed as both triangles or as one."""

    def __call__(self, rhs: Any) -> Any:
        """Solve ``A x = rhs``."""
        return self.solve(rhs)


class DistributedCholeskyFactor(DistributedSymmetricFactor):
    """Cholesky factor on the ranks of a communicator; made by :func:`gpusplu.distributed.cholesky`."""

    def logdet(self) -> float:
        """Logarithm of the determinant of A."""
        return self.slogdet().logabsdet


class DistributedLDLFactor(DistributedSymmetricFactor):
    """LDL^T factors on the ranks of a communicator; made by :func:`gpusplu.distributed.ldlt`."""

    inertia_doubt = ""  #: Why the last call of `inertia` returned None; empty if it did not.

    def inertia(self) -> Inertia | None:
        """Numbers of positive, negative and zero eigenvalues of A, or None if they are not certain.

        Certified as by :meth:`gpusplu.LDLFactor.inertia`; costs eight solves.

        Raises
        ------
        TypeError
            A is complex symmetric, so that its eigenvalues are not real.
        EngineUnavailableError
            PETSc is built for complex numbers.
        """
        self._require_open()
        if self.dtype.kind == "c":
            raise TypeError("inertia: A is complex symmetric, not Hermitian, and its eigenvalues are not real")
        negative = self._solver.negative_pivots()
        distance = self._certified.distance_of_factors(INERTIA_SAMPLES)
        self.inertia_doubt = ""
        if not distance < CERTAIN_DISTANCE:
            self.inertia_doubt = (
                f"A is too close to a singular matrix: ||I - A (L D L^H)^-1|| is {distance:.1e}, "
                f"not below {CERTAIN_DISTANCE}"
            )
            return None
        return Inertia(self._rows.n - negative, negative, 0)
