"""Exceptions. Each inherits twice: from GpuspluError and from the built-in or NumPy class a caller would catch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "AccuracyError",
    "BatchError",
    "DeviceFailedError",
    "DeviceMemoryError",
    "EngineUnavailableError",
    "GpuspluError",
    "HostMemoryError",
    "IllConditionedUpdateError",
    "NoSymmetricFactorError",
    "NonFiniteError",
    "NotHermitianError",
    "NotPositiveDefiniteError",
    "PatternMismatchError",
    "SolverError",
]


class GpuspluError(Exception):
    """Base of every exception that gpusplu defines."""


class NotPositiveDefiniteError(GpuspluError, np.linalg.LinAlgError):
    """Cholesky met a pivot that is not positive.

    Attributes
    ----------
    column : int
        Column of A, in the caller's numbering; -1 where a solver of others does not tell.
    pivot : float
        The pivot found there; NaN where a solver of others does not tell.
    """

    def __init__(self, column: int = -1, pivot: float = np.nan) -> None:
        self.column = int(column)
        self.pivot = float(pivot)
        found = f"column {self.column} of A has pivot {self.pivot:.3g}, so " if column >= 0 else ""
        super().__init__(f"cholesky: {found}A is not positive definite; if A is Hermitian indefinite use ldlt(A)")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.pivot)


class NotHermitianError(GpuspluError, ValueError):
    """cholesky or ldlt was given both triangles and they differ."""


class NoSymmetricFactorError(GpuspluError, RuntimeError):
    """The factor of ldlt has no L and D: its pivots were chosen anew by LU, which solves go by."""

    def __init__(self) -> None:
        super().__init__(
            "ldlt: no symmetric pivots inside the fronts were accurate for these values, so that they were factored by "
            "LU with partial pivoting, which solves go by; there are no L, D and inertia"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class NonFiniteError(GpuspluError, ValueError, RuntimeError):
    """A matrix value is NaN or Inf.

    A RuntimeError, as SciPy raises of such matrices: loops that halve a step catch it.
    """


class PatternMismatchError(GpuspluError, ValueError):
    """The matrix given to refactor has another sparsity pattern than the one that was factored."""


class AccuracyError(GpuspluError, RuntimeError):
    """Solutions that nobody waited for, ``check="later"``, cannot be trusted."""


class EngineUnavailableError(GpuspluError, RuntimeError):
    """The engine asked for by name cannot run here."""


class DeviceMemoryError(GpuspluError, MemoryError):
    """The device, or one of several, has too little free memory.

    Attributes
    ----------
    needed, free : int
        Device memory, of several devices together [bytes].
    short : list of (int, int, int)
        Of several: the devices that have too little, what each needs and has [bytes].
    """

    def __init__(self, needed: int, free: int, short: Sequence[tuple[int, int, int]] = ()) -> None:
        self.needed = int(needed)
        self.free = int(free)
        self.short = [(int(device), int(wanted), int(there)) for device, wanted, there in short]
        each = ", ".join(f"device {k}: {wanted:,} of {there:,}" for k, wanted, there in self.short)
        more = "more devices, or " if self.short else ""
        super().__init__(
            f"the factorization needs {self.needed:,} bytes of device memory and {self.free:,} are free"
            f"{f' ({each})' if each else ''}; free memory, or pass {more}engine='cpu'"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.needed, self.free, self.short)


class DeviceFailedError(GpuspluError, RuntimeError):
    """One of several devices, or a copy between them, failed.

    Attributes
    ----------
    devices : list of int
        That were used together.
    """

    def __init__(self, devices: Sequence[int], what: str) -> None:
        self.devices = [int(device) for device in devices]
        self._what = what
        named = ", ".join(map(str, self.devices))
        super().__init__(f"a command on devices {named} failed: {what}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.devices, self._what)


class HostMemoryError(GpuspluError, MemoryError):
    """A rank of a distributed factorization has too little memory.

    Attributes
    ----------
    needed, free : int
        Memory of the rank that needs most, 0 where its solver does not tell, and of the one that has least [bytes].
    """

    def __init__(self, needed: int, free: int) -> None:
        self.needed = int(needed)
        self.free = int(free)
        wanted = f"about {self.needed:,} bytes of" if self.needed else "more"
        super().__init__(
            f"the factorization needs {wanted} memory on a rank and {self.free:,} bytes are free; use more "
            "machines, or fewer ranks on each"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.needed, self.free)


class SolverError(GpuspluError, RuntimeError):
    """A solver of others, which distributed factorizations go by, stopped for a reason that has no class here.

    Attributes
    ----------
    engine : str
    code, detail : int
        As that solver reports them; of MUMPS INFOG(1) and INFOG(2), else PETSc's reason.
    """

    def __init__(self, engine: str, code: int, detail: int = 0, meaning: str = "its manual says why") -> None:
        self.engine, self.code, self.detail = str(engine), int(code), int(detail)
        self._meaning = str(meaning)
        super().__init__(f"{engine} stopped with code {code} ({detail}): {meaning}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.engine, self.code, self.detail, self._meaning)


class IllConditionedUpdateError(GpuspluError, np.linalg.LinAlgError):
    """``A + U V^H`` is singular, or solves with it by the factor of A would lose half of the digits.

    Attributes
    ----------
    rcond : float
        Of the capacitance matrix ``I + V^H A^-1 U``.
    """

    def __init__(self, rcond: float) -> None:
        self.rcond = float(rcond)
        super().__init__(
            f"updated: the capacitance matrix has a reciprocal condition number of {self.rcond:.1e}; "
            "factor A + U V^H itself"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rcond,)


class BatchError(GpuspluError, RuntimeError):
    """Systems of a batch have no factor, or solutions that nobody waited for and that cannot be trusted.

    Attributes
    ----------
    indices : ndarray of int
        Which systems.
    status : list of BatchStatus
        What is wrong with each of them.
    """

    def __init__(self, indices: Any, status: Any) -> None:
        self.indices, self.status = np.asarray(indices), list(status)
        of_kind = {
            kind: [i for i, s in zip(self.indices, self.status, strict=True) if s is kind] for kind in self.status
        }
        what = "; ".join(f"{kind.name.lower().replace('_', ' ')}: {shorten(of_kind[kind])}" for kind in sorted(of_kind))
        super().__init__(f"{self.indices.size} systems of the batch have failed: {what}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.indices, self.status)


def shorten(numbers: Any, most: int = 8) -> str:
    """A list of numbers, the first few of them where there are many."""
    shown = ", ".join(str(int(number)) for number in numbers[:most])
    return f"{shown} and {len(numbers) - most} more" if len(numbers) > most else shown


def require(holds: bool, what: str) -> None:
    """Refuse a pickle of which something does not hold.

    Raises
    ------
    ValueError
    """
    if not holds:
        raise ValueError(f"the pickle is damaged: {what}")
