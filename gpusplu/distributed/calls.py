"""splu, cholesky and ldlt over the ranks of a communicator."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import EngineUnavailableError
from .agreement import agreed, check_communicator
from .factor import (
    DistributedCholeskyFactor,
    DistributedFactor,
    DistributedLDLFactor,
    DistributedLUFactor,
    Parts,
    collect,
)
from .rows import Rows, read_rows
from .solvers import SOLVERS, load_petsc, require_real
from .system import System

F = TypeVar("F", bound=DistributedFactor)


def splu(A: Any, comm: Any, *, engine: str = "mumps", memory: int | None = None) -> DistributedLUFactor:
    """Factor a square matrix with rows spread over ranks; collective.

    Parameters
    ----------
    A : sparse array or matrix, shape (rows of this rank, n)
        SciPy CSR, or what can be converted to it; columns are those of the whole matrix. The rows of lower ranks come
        first. A rank may have none. Never modified.
    comm : mpi4py.MPI.Intracomm
    engine : {"mumps", "superlu_dist"}, optional
        MUMPS pivots while it factors. SuperLU_DIST chooses pivots before, which fails for some matrices.
    memory : int, optional
        Memory limit of a rank [bytes]; MUMPS stops if it needs more.

    Returns
    -------
    DistributedLUFactor

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    ValueError
        A is not square, not finite (`NonFiniteError`), too large for PETSc's integers, or ranks differ in arguments.
    TypeError
        A is complex and PETSc is built for real numbers, or `comm` is not a communicator.
    EngineUnavailableError
        petsc4py or the solver is not installed.
    HostMemoryError
        A rank has too little memory, if the solver reports it.
    """
    return factored(A, comm, "lu", DistributedLUFactor, memory, engine=engine)


def cholesky(A: Any, comm: Any, *, memory: int | None = None) -> DistributedCholeskyFactor:
    """Factor a symmetric positive definite matrix with rows spread over ranks, by MUMPS; collective.

    Parameters
    ----------
    A : sparse array or matrix, shape (rows of this rank, n)
        As for :func:`splu`; both triangles, or one of them on all ranks. Real, and PETSc built for real numbers: MUMPS
        has no complex Cholesky.
    comm, memory
        As for :func:`splu`.

    Returns
    -------
    DistributedCholeskyFactor

    Raises
    ------
    NotPositiveDefiniteError
        Without the column, which MUMPS does not report.
    NotHermitianError
        Both triangles are stored and they differ.
    ValueError, TypeError, EngineUnavailableError, HostMemoryError
        As :func:`splu`.
    """
    return factored(A, comm, "cholesky", DistributedCholeskyFactor, memory)


def ldlt(A: Any, comm: Any, *, memory: int | None = None) -> DistributedLDLFactor:
    """Factor a symmetric matrix, definite or not, with rows spread over ranks, by MUMPS; collective.

    Parameters
    ----------
    A : sparse array or matrix, shape (rows of this rank, n)
        As for :func:`cholesky`. A complex one is symmetric, not Hermitian: MUMPS has no LDL^H.
    comm, memory
        As for :func:`splu`.

    Returns
    -------
    DistributedLDLFactor

    Raises
    ------
    RuntimeError
        ``Factor is exactly singular``.
    NotHermitianError
        Both triangles are stored and they differ.
    ValueError, TypeError, EngineUnavailableError, HostMemoryError
        As :func:`splu`.
    """
    return factored(A, comm, "ldlt", DistributedLDLFactor, memory, hermitian=False)


def factored(
    A: Any, comm: Any, kind: str, made: type[F], memory: int | None, engine: str = "mumps", hermitian: bool = True
) -> F:
    """The factor, of the class `made`; on failure its memory is freed at once."""
    check_communicator(comm)
    call = ("splu" if kind == "lu" else kind, f"engine={engine!r}", None if memory is None else f"memory={memory}")
    library = agreed(comm, call, lambda: (None, checked_library(kind, engine, memory)))
    collect(comm)
    rows: Rows = read_rows(comm, call, A, library.IntType, library.ScalarType)
    both = kind == "lu" or rows.mirror_triangle()
    solver = SOLVERS[engine]
    if solver.needs_rows and min(comm.allgather(rows.count)) == 0:
        raise EngineUnavailableError(f"{engine} needs rows on every rank; spread them, or use engine='mumps'")
    system = System(library, rows, hermitian, own_communicator=solver.needs_communicator)
    parts = Parts(system, solver(library, system, rows, kind, memory))
    try:
        return made(rows, parts, both)
    except Exception:
        parts.destroy()
        raise


def checked_library(kind: str, engine: str, memory: int | None) -> Any:
    """PETSc, with the requested solver."""
    if engine not in SOLVERS:
        raise ValueError(f"engine={engine!r} is not one of {', '.join(map(repr, SOLVERS))}")
    if memory is not None and (isinstance(memory, bool) or int(memory) <= 0):
        raise ValueError(f"memory={memory!r} must be a positive number of bytes")
    library = load_petsc()
    if not library.Sys.hasExternalPackage(engine):
        raise EngineUnavailableError(f"this PETSc was built without {engine}")
    if kind == "cholesky":
        require_real(library, "cholesky")
    return library
