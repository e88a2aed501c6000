"""Exceptions. Each inherits twice: from GpuspluError and from the built-in or NumPy class a caller would catch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from .typing import BuiltIn

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

#: Argument that selects the engine without a device, for messages.
ON_HOST = f"engine={get_args(BuiltIn)[0]!r}"


class GpuspluError(Exception):
    """Base of every exception that gpusplu defines.

    Examples
    --------
    >>> try:
    ...     gs.splu(sp.csc_array([[np.nan]]))
    ... except gs.GpuspluError as error:
    ...     print(type(error).__name__)
    NonFiniteError
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Without `__init__`, which takes other arguments than the text."""
        return Exception.__new__, (type(self), *self.args), self.__dict__


class NotPositiveDefiniteError(GpuspluError, np.linalg.LinAlgError):
    """Cholesky found a pivot that is not positive.

    Attributes
    ----------
    column : int
        Column of A, in the caller's numbering; -1 if an external solver does not report it.
    pivot : float
        The pivot found there; NaN if an external solver does not report it.

    Examples
    --------
    >>> A = sp.csc_array([[1.0, 2.0], [2.0, 1.0]])
    >>> try:
    ...     gs.cholesky(A)
    ... except gs.NotPositiveDefiniteError as error:
    ...     factor = gs.ldlt(A)
    ...     print(error.column, factor.inertia())
    1 Inertia(positive=1, negative=1, zero=0)
    """

    def __init__(self, column: int = -1, pivot: float = np.nan) -> None:
        self.column = int(column)
        self.pivot = float(pivot)
        found = f"column {self.column} of A has pivot {self.pivot:.3g}, so " if column >= 0 else ""
        super().__init__(f"cholesky: {found}A is not positive definite; if A is Hermitian indefinite use ldlt(A)")


class NotHermitianError(GpuspluError, ValueError):
    """cholesky or ldlt was given both triangles and they differ.

    Examples
    --------
    >>> gs.cholesky(sp.csc_array([[2.0, 1.0], [0.5, 2.0]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpusplu.errors.NotHermitianError: ...
    """


class NoSymmetricFactorError(GpuspluError, RuntimeError):
    """The factor of ldlt has no L and D: LU had to choose the pivots again, and solves use its factor.

    Examples
    --------
    >>> print(gs.NoSymmetricFactorError())  # doctest: +ELLIPSIS
    ldlt: symmetric pivots inside the fronts were not accurate enough for these values...
    """

    def __init__(self) -> None:
        super().__init__(
            "ldlt: symmetric pivots inside the fronts were not accurate enough for these values, so LU with partial "
            "pivoting replaced LDL^T; L, D and the inertia do not exist"
        )


class NonFiniteError(GpuspluError, ValueError, RuntimeError):
    """A matrix value is NaN or Inf.

    A RuntimeError, as SciPy raises of such matrices: loops that halve a step catch it.

    Examples
    --------
    >>> gs.cholesky(sp.csc_array([[np.inf]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpusplu.errors.NonFiniteError: ...
    """


class PatternMismatchError(GpuspluError, ValueError):
    """The matrix given to refactor has another sparsity pattern than the one that was factored.

    Examples
    --------
    >>> lu = gs.splu(gs.gallery.poisson(10, 10))
    >>> lu.refactor(sp.eye_array(100, format="csc"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpusplu.errors.PatternMismatchError: ...
    """


class AccuracyError(GpuspluError, RuntimeError):
    """Solutions of deferred calls, ``check="later"``, cannot be trusted.

    Examples
    --------
    >>> lu = gs.splu(gs.gallery.poisson(10, 10))
    >>> x = lu.solve(np.ones(100), check="later")
    >>> try:
    ...     error = lu.check()
    ... except gs.AccuracyError:
    ...     x = lu.solve(np.ones(100))  # refined, and with other pivots if need be
    """


class EngineUnavailableError(GpuspluError, RuntimeError):
    """The named engine is unavailable.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> try:
    ...     lu = gs.splu(A, engine="supernodal")
    ... except gs.EngineUnavailableError:
    ...     lu = gs.splu(A, engine="cpu")  # without a GPU
    """


class DeviceMemoryError(GpuspluError, MemoryError):
    """The device, or one of several, has too little free memory.

    Attributes
    ----------
    needed, free : int
        Device memory, the sum over several devices [bytes].
    short : list of (int, int, int)
        With several devices: those with too little memory, the needed and the free memory of each [bytes].

    Examples
    --------
    >>> print(gs.DeviceMemoryError(needed=3_000_000, free=1_000_000))
    the factorization needs 3,000,000 bytes of device memory and 1,000,000 are free; free memory, or pass engine='cpu'
    """

    def __init__(self, needed: int, free: int, short: Sequence[tuple[int, int, int]] = ()) -> None:
        self.needed = int(needed)
        self.free = int(free)
        self.short = [(int(device), int(wanted), int(available)) for device, wanted, available in short]
        each = ", ".join(f"device {k}: {wanted:,} of {available:,}" for k, wanted, available in self.short)
        more = "more devices, or " if self.short else ""
        super().__init__(
            f"the factorization needs {self.needed:,} bytes of device memory and {self.free:,} are free"
            f"{f' ({each})' if each else ''}; free memory, or pass {more}{ON_HOST}"
        )


class DeviceFailedError(GpuspluError, RuntimeError):
    """One of several devices, or a copy between them, failed.

    Attributes
    ----------
    devices : list of int
        Devices that were used together.

    Examples
    --------
    >>> print(gs.DeviceFailedError([0, 1], "cudaErrorPeerAccessUnsupported"))
    a command on devices 0, 1 failed: cudaErrorPeerAccessUnsupported
    """

    def __init__(self, devices: Sequence[int], what: str) -> None:
        self.devices = [int(device) for device in devices]
        named = ", ".join(map(str, self.devices))
        super().__init__(f"a command on devices {named} failed: {what}")


class HostMemoryError(GpuspluError, MemoryError):
    """The host, or a rank of a distributed factorization, has too little memory.

    Factorizations by the CPU engine raise it before they allocate memory, if they are predicted to need more than is
    free.

    Attributes
    ----------
    needed, free : int
        Memory of the factorization and of the host. With ranks: of the rank that needs most, 0 if the solver does not
        report it, and of the rank with least [bytes].

    Examples
    --------
    >>> gs.HostMemoryError(needed=3_000_000, free=1_000_000).needed
    3000000
    """

    def __init__(self, needed: int, free: int, distributed: bool = True) -> None:
        self.needed = int(needed)
        self.free = int(free)
        if not distributed:
            super().__init__(
                f"the factorization needs about {self.needed:,} bytes of memory and {self.free:,} bytes are free on "
                "this host; free memory, or try precision='mixed', another ordering, a GPU (device=0), which may "
                "stream factors, or several machines (gpusplu.distributed)"
            )
            return
        wanted = f"about {self.needed:,} bytes of" if self.needed else "more"
        super().__init__(
            f"the factorization needs {wanted} memory on a rank and {self.free:,} bytes are free; use more "
            "machines, or fewer ranks on each"
        )


class SolverError(GpuspluError, RuntimeError):
    """An external solver of a distributed factorization stopped for a reason without a separate class.

    Attributes
    ----------
    engine : str
    code, detail : int
        As that solver reports them: INFOG(1) and INFOG(2) of MUMPS, else PETSc's reason.

    Examples
    --------
    >>> print(gs.SolverError("mumps", code=-9, detail=20))
    mumps stopped with code -9 (20): its manual says why
    """

    def __init__(self, engine: str, code: int, detail: int = 0, meaning: str = "its manual says why") -> None:
        self.engine, self.code, self.detail = str(engine), int(code), int(detail)
        super().__init__(f"{engine} stopped with code {code} ({detail}): {meaning}")


class IllConditionedUpdateError(GpuspluError, np.linalg.LinAlgError):
    """``A + U V^H`` is singular, or solves with it by the factor of A would lose half of the digits.

    Attributes
    ----------
    rcond : float
        Reciprocal condition number of the capacitance matrix ``I + V^H A^-1 U``.

    Examples
    --------
    >>> lu = gs.splu(sp.eye_array(2, format="csc"))
    >>> try:
    ...     lu.updated([1.0, 0.0], [-1.0, 0.0])  # the matrix becomes singular
    ... except gs.IllConditionedUpdateError as error:
    ...     print(error.rcond)
    0.0
    """

    def __init__(self, rcond: float) -> None:
        self.rcond = float(rcond)
        super().__init__(
            f"updated: the capacitance matrix has a reciprocal condition number of {self.rcond:.1e}; "
            "factor A + U V^H itself"
        )


class BatchError(GpuspluError, RuntimeError):
    """Systems of a batch have no factor, or solutions of deferred calls that cannot be trusted.

    Attributes
    ----------
    indices : ndarray of int
        Numbers of the systems.
    status : list of BatchStatus
        Status of each of them.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 0 * A.data])
    >>> try:
    ...     gs.splu_batch(A, values, errors="raise")
    ... except gs.BatchError as error:
    ...     print(error)
    1 systems of the batch have failed: singular: 1
    """

    def __init__(self, indices: Any, status: Any) -> None:
        self.indices, self.status = np.asarray(indices), list(status)
        of_kind = {
            kind: [i for i, s in zip(self.indices, self.status, strict=True) if s is kind] for kind in self.status
        }
        what = "; ".join(f"{kind.name.lower().replace('_', ' ')}: {shorten(of_kind[kind])}" for kind in sorted(of_kind))
        super().__init__(f"{self.indices.size} systems of the batch have failed: {what}")


def is_singular(error: RuntimeError) -> bool:
    """Whether an error is SciPy's error for a singular matrix."""
    return str(error) == "Factor is exactly singular"


def shorten(numbers: Any) -> str:
    """Text of a list of numbers, truncated if it is long."""
    few = 8
    shown = ", ".join(str(int(number)) for number in numbers[:few])
    return f"{shown} and {len(numbers) - few} more" if len(numbers) > few else shown


def require(holds: bool, what: str) -> None:
    """Refuse a damaged pickle unless a condition holds.

    Raises
    ------
    ValueError
    """
    if not holds:
        raise ValueError(f"the pickle is damaged: {what}")
