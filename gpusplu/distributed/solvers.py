"""The solvers of PETSc: their settings, their errors, and the data that they report about factors."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import structural_rank

from ..common.installed import install_hint
from ..errors import EngineUnavailableError, HostMemoryError, NotPositiveDefiniteError, SolverError
from .rows import Rows
from .system import PREFIX, System


@cache
def load_petsc() -> Any:
    """The module petsc4py.PETSc, initialized.

    Raises
    ------
    EngineUnavailableError
        It is not installed, or cannot be loaded.
    """
    try:
        if find_spec("dolfinx_solver"):
            import dolfinx_solver  # noqa: F401 - has to come first where it is what brings petsc4py
        import petsc4py

        petsc4py.init(["gpusplu", "-no_signal_handler"])  # does nothing where a program has done so before
        from petsc4py import PETSc
    except (ImportError, RuntimeError) as error:
        raise EngineUnavailableError(
            f"distributed factorizations need petsc4py: {install_hint('distributed')}, or a cluster's own; {error}"
        ) from error
    return PETSc


#: MUMPS estimates its memory and allocates this much more [%]; if that is too little, this factor more, up to a limit.
RELAXATION, MORE, MOST = 30, 4, 2000
# INFOG(1) of MUMPS.
NO_PIVOT = (-6, -10, -40)  # structurally or numerically singular, or not definite at ScaLAPACK's root
SHORT_BY_ESTIMATE = (-8, -9, -11, -14, -15, -17, -18, -20)
NO_MEMORY = {-5: 8, -7: 4, -13: 0, -19: 0, -22: 1}  # bytes of what INFOG(2) counts; 0: those of a number
MEGABYTE = 1_000_000
# MUMPS' thresholds of pivots, from its own default to the largest: of LU, and of symmetric pivots.
LARGEST_THRESHOLD = {"lu": 1.0, "ldlt": 0.5}
# PETSc's reasons of failed factorizations: a pivot of zero, too little memory.
PETSC_ZERO_PIVOT, PETSC_NO_MEMORY = (1, 2), 3


def singular() -> RuntimeError:
    return RuntimeError("Factor is exactly singular")


def require_real(petsc: Any, what: str) -> None:
    """Refuse features that MUMPS has for real numbers only: a PETSc built for complex numbers converts real ones.

    Raises
    ------
    EngineUnavailableError
    """
    if np.dtype(petsc.ScalarType).kind == "c":
        raise EngineUnavailableError(
            f"{what}: this PETSc is built for complex numbers, for which MUMPS gives no signs of pivots; install "
            "dolfinx-solver-real, or use splu"
        )


class Solver(ABC):
    """A factorization by one of PETSc's packages.

    `factor` factors the values that the system's matrix has, with the analysis that was made for its pattern. Where it
    raises, there is no factor until it succeeds.
    """

    name: str
    needs_rows = False  # on every rank
    needs_communicator = False  # that nothing else uses
    advice = ""  # where solutions are not accurate

    def __init__(self, petsc: Any, system: System, rows: Rows, kind: str, memory: int | None):
        self._petsc, self._system, self._rows = petsc, system, rows
        self.kind, self._memory = kind, memory
        self._pc: Any = None

    @abstractmethod
    def factor(self) -> None:
        """Factor, after an analysis if there is none.

        Raises
        ------
        RuntimeError
            ``Factor is exactly singular``.
        NotPositiveDefiniteError
        HostMemoryError
        SolverError
        """

    def factor_if_missing(self) -> None:
        """Factor if the last attempt left no factor, with values that were factored successfully before."""
        if self._pc is None:
            self.factor()

    def harder(self) -> bool:
        """Choose pivots more carefully in later factorizations; returns whether that is possible."""
        return False

    def determinant(self) -> tuple[complex, int]:
        """The determinant as a mantissa and a power of two."""
        raise EngineUnavailableError(f"slogdet: {self.name} does not compute determinants; use engine='mumps'")

    def negative_pivots(self) -> int:
        """Of a factorization of a symmetric matrix."""
        raise EngineUnavailableError(
            f"inertia: {self.name} has no factorization of symmetric matrices; use engine='mumps'"
        )

    def figures(self) -> dict[str, Any]:
        """For stats."""
        return {}

    def _begin(self) -> None:
        """A new factorization, not analysed."""
        self.destroy()
        self._pc = self._factorization_of(self._system)

    def _factorization_of(self, system: System) -> Any:
        """PETSc's object for a factorization of a matrix, not yet analysed."""
        pc = self._petsc.PC().create(comm=system.comm)
        pc.setOptionsPrefix(PREFIX)
        pc.setType("lu" if self.kind == "lu" else "cholesky")
        pc.setOperators(system.matrix)
        pc.setFactorSolverType(self.name)
        return pc

    @abstractmethod
    def solve(self, b: Any, x: Any, transposed: bool) -> None:
        """Without measuring or refining."""

    def free_memory(self) -> int:
        """The caller's limit, else the least free memory per rank of all machines [bytes]."""
        if self._memory is not None:
            return self._memory
        from mpi4py import MPI

        comm = self._rows.comm
        machine = comm.Split_type(MPI.COMM_TYPE_SHARED)
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // machine.size
        machine.Free()
        return int(min(comm.allgather(free)))

    def destroy(self) -> None:
        if self._pc is not None:
            self._pc.destroy()
        self._pc = None


class Mumps(Solver):
    """MUMPS: LU, Cholesky and LDL^T by fronts, with threshold pivoting across ranks."""

    name = "mumps"

    def __init__(self, petsc: Any, system: System, rows: Rows, kind: str, memory: int | None):
        super().__init__(petsc, system, rows, kind, memory)
        self._relaxation, self._threshold = RELAXATION, 0.0
        self._matrix: Any = None  # of the factors, which the factorization owns
        if kind != "lu":
            options = petsc.Mat.Option
            system.matrix.setOption(options.SPD if kind == "cholesky" else options.SYMMETRIC, True)

    def _begin(self) -> None:
        super()._begin()
        self._pc.setFactorSetUpSolverType()
        self._matrix = self._pc.getFactorMatrix()
        settings = {14: self._relaxation, 33: 1}  # 33: the determinant
        if self.kind == "ldlt":
            settings[13] = 1  # no root by ScaLAPACK, because MUMPS does not count the pivots there
        if self._memory is not None:
            settings[23] = max(self._memory // MEGABYTE, 1)
        for number, value in settings.items():
            self._matrix.setMumpsIcntl(number, value)
        if self._threshold:
            self._matrix.setMumpsCntl(1, self._threshold)

    def factor(self) -> None:
        while True:
            if self._pc is None:
                self._begin()
            self._pc.setUp()
            code, detail = self._info(1), self._info(2)
            if code >= 0:
                break
            estimate = self._info(16) * MEGABYTE
            self.destroy()
            if code not in SHORT_BY_ESTIMATE or self._memory is not None or self._relaxation > MOST:
                raise self._error(code, detail, estimate)
            self._relaxation *= MORE
        if self.kind == "cholesky" and self._info(12):
            self.destroy()
            raise NotPositiveDefiniteError

    def _info(self, number: int) -> int:
        """INFOG, the same on every rank."""
        return self._matrix.getMumpsInfog(number)

    def _error(self, code: int, detail: int, estimate: int) -> Exception:
        """Of a negative INFOG(1); `estimate`: what the analysis said that a rank needs [bytes]."""
        if code in NO_PIVOT:
            return NotPositiveDefiniteError() if self.kind == "cholesky" else singular()
        if code in NO_MEMORY or code in SHORT_BY_ESTIMATE:
            size = NO_MEMORY.get(code, 0) or np.dtype(self._petsc.ScalarType).itemsize
            missing = size * (detail if detail >= 0 else -detail * MEGABYTE)
            return HostMemoryError(max(estimate, missing), self.free_memory())
        return SolverError(self.name, code, detail)

    def solve(self, b: Any, x: Any, transposed: bool) -> None:
        (self._matrix.solveTranspose if transposed else self._matrix.solve)(b, x)

    def destroy(self) -> None:
        if self._matrix is not None:
            self._matrix.destroy()  # else PETSc keeps it for a time when all ranks let it go together
        self._matrix = None
        super().destroy()

    def harder(self) -> bool:
        threshold = LARGEST_THRESHOLD.get(self.kind, 0.0)
        if self._threshold == threshold:
            return False
        self._threshold = threshold
        self.destroy()
        return True

    def determinant(self) -> tuple[complex, int]:
        return complex(self._matrix.getMumpsRinfog(12), self._matrix.getMumpsRinfog(13)), self._info(34)

    def negative_pivots(self) -> int:
        require_real(self._petsc, "inertia")
        return self._info(12)

    def figures(self) -> dict[str, Any]:
        ordering = {0: "amd", 2: "amf", 3: "scotch", 4: "pord", 5: "metis", 6: "qamd"}
        return {
            "ordering": ordering.get(self._info(7), "by the solver"),
            "nnz_factor": in_units(self._info(29)),
            "flops": self._matrix.getMumpsRinfog(3),
            "bytes": self._info(19) * MEGABYTE,
            "bytes_of_largest_rank": self._info(18) * MEGABYTE,
            "n_delayed": self._info(13),
        }


def in_units(count: int) -> int:
    """MUMPS gives what does not fit into its integers in millions, negative."""
    return count if count >= 0 else -count * MEGABYTE


class SuperLUDist(Solver):
    """SuperLU_DIST: LU with static pivots from a matching; faster on devices, if built with CUDA.

    PETSc's solves with the transpose are wrong with it, so the first such solve makes a separate factorization of the
    transpose.
    """

    name = "superlu_dist"
    needs_rows = True  # else it reads out of bounds
    needs_communicator = True  # PETSc keeps its grid of processes there, and two factors on one end in a crash
    advice = "; engine='mumps' chooses pivots while it factors"
    _other: System | None = None  # the transpose
    _of_transpose: Any = None

    def factor(self) -> None:
        self._forget_transpose()
        if self._pc is None or self._rows.have_zeros():
            self._check_structure()
        if self._pc is None:
            options = self._petsc.Options(PREFIX)
            chosen = {"rowperm": "LargeDiag_MC64", "fact": "SamePattern_SameRowPerm"}
            for name, value in chosen.items():
                if not options.hasName(f"mat_superlu_dist_{name}"):
                    options[f"mat_superlu_dist_{name}"] = value
            self._begin()
        self._set_up(self._pc)

    def _set_up(self, pc: Any) -> None:
        pc.setUp()
        reason = max(self._rows.comm.allgather(int(pc.getFailedReason())))
        if reason:
            self.destroy()
            if reason == PETSC_NO_MEMORY:
                raise HostMemoryError(0, self.free_memory())
            zero = "a pivot of its fixed order is zero, so A may be singular; engine='mumps' detects singular matrices"
            raise SolverError(
                self.name, reason, meaning=zero if reason in PETSC_ZERO_PIVOT else "PETSc gives no details"
            )

    def solve(self, b: Any, x: Any, transposed: bool) -> None:
        if not transposed:
            self._pc.getFactorMatrix().solve(b, x)
            return
        if self._other is None:
            self._other = System(self._petsc, self._rows, False, transposed=True, own_communicator=True)
            self._of_transpose = self._factorization_of(self._other)
            self._set_up(self._of_transpose)
        self._other.b.setArray(b.getArray())
        self._of_transpose.getFactorMatrix().solve(self._other.b, self._other.x)
        x.setArray(self._other.x.getArray())

    def _forget_transpose(self) -> None:
        if self._other is not None:
            self._of_transpose.destroy()
            self._other.destroy()
        self._other = self._of_transpose = None

    def destroy(self) -> None:
        self._forget_transpose()
        super().destroy()

    def _check_structure(self) -> None:
        """It ends the process where no permutation of rows puts entries that are not zero on the whole diagonal.

        Its own matching needs the whole matrix on one rank too.
        """
        comm, n = self._rows.comm, self._rows.n
        parts = comm.gather(self._rows.nonzero_coordinates())
        full = True
        if parts is not None:
            i, j = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            full = structural_rank(sp.csr_array((np.ones(i.size, dtype=np.int8), (i, j)), shape=(n, n))) == n
        if not comm.bcast(full):
            raise singular()


SOLVERS = {solver.name: solver for solver in (Mumps, SuperLUDist)}
