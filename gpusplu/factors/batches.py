"""splu_batch and cholesky_batch: many matrices with one pattern, factored side by side."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..common import matrix
from ..common.arrays import takes_arrays
from ..common.options import cholesky_options, one_of
from ..common.progress import seen
from ..dispatch.pipeline import ReadOptions, analysis_for_batch, within_memory
from ..dispatch.request import AUTO, read_request
from ..engines.problem import Request
from ..typing import Engine, Errors, Ordering, Pivoting, Progress, Refine, Verbose
from .analysis import own_lu_options
from .batch import ERRORS, BatchedCholeskyFactor, BatchedFactor, BatchedLUFactor
from .symbolic import Symbolic

Batch = TypeVar("Batch", bound=BatchedFactor)


@takes_arrays
def splu_batch(
    A: Any,
    values: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    ordering: Ordering = "auto",
    pivoting: Pivoting = "auto",
    refine: Refine = "auto",
    errors: Errors = "flag",
    verbose: Verbose = 0,
    progress: Progress = None,
) -> BatchedLUFactor:
    """Factor many square sparse matrices with one pattern.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Has the pattern; its values, which should be like those of the systems, guide matching and scaling.
    values : array_like, shape (nbatch, size)
        A system a row, in the order of ``A.data``; on the host or on the device.
    engine, device, device_memory, ordering, pivoting, refine : optional
        As in :func:`splu`. "auto" works where `values` are.
    errors : {"flag", "raise"}, optional
        Systems that cannot be factored are flagged, or raise.
    verbose, progress : optional
        As in :func:`splu`.

    Returns
    -------
    BatchedLUFactor

    Raises
    ------
    ValueError
        As :func:`splu`; or `values` have another shape.
    BatchError
        Systems are singular or not finite, with ``errors="raise"``; says which.

    See Also
    --------
    splu : one matrix.
    cholesky_batch : definite matrices.
    BatchStatus : what `status` says.

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.splu_batch(A, values)
    >>> x = batch.solve(np.ones(100))
    >>> x.shape
    (3, 100)
    >>> np.allclose(x[0], 3 * x[2])
    True
    >>> batch.status
    array([0, 0, 0], dtype=int8)
    """
    options = partial(own_lu_options, ordering=ordering, pivoting=pivoting, refine=refine)
    request = read_batch(engine, device, device_memory, values, errors)
    work = seen(made_batch, verbose, progress)
    return work(A, values, request, BatchedLUFactor, options, errors)


@takes_arrays
def cholesky_batch(
    A: Any,
    values: Any,
    *,
    engine: Engine = "auto",
    device: Any = None,
    device_memory: int | None = None,
    ordering: Ordering = "auto",
    refine: Refine = "auto",
    errors: Errors = "flag",
    verbose: Verbose = 0,
    progress: Progress = None,
) -> BatchedCholeskyFactor:
    """Factor many Hermitian positive definite matrices with one pattern.

    Parameters
    ----------
    A : sparse array or matrix, shape (n, n)
        Has the pattern, of both triangles or of one of them.
    values, engine, device, device_memory, ordering, refine, errors, verbose, progress : optional
        As in :func:`splu_batch`. Where both triangles are given, `values` are taken to be Hermitian.

    Returns
    -------
    BatchedCholeskyFactor

    Raises
    ------
    NotHermitianError, ValueError
        As :func:`cholesky`; or `values` have another shape.
    BatchError
        Systems are not positive definite, not finite or not Hermitian, with ``errors="raise"``; says which.

    See Also
    --------
    cholesky, splu_batch

    Examples
    --------
    >>> A = gs.gallery.poisson(10, 10)
    >>> values = np.stack([A.data, 2 * A.data, 3 * A.data])
    >>> batch = gs.cholesky_batch(A, values)
    >>> batch.logdet().shape
    (3,)
    >>> np.allclose(batch(np.ones(100)) @ np.ones(100) * [1, 2, 3], batch(np.ones(100))[0].sum())
    True
    """
    options = partial(cholesky_options, ordering=ordering, refine=refine)
    request = read_batch(engine, device, device_memory, values, errors)
    work = seen(made_batch, verbose, progress)
    batch: BatchedCholeskyFactor = work(A, values, request, BatchedCholeskyFactor, options, errors)
    return batch


def read_batch(engine: str, device: Any, device_memory: int | None, values: Any, errors: str) -> Request:
    """The request for systems with these values: on the device where they are, if nothing else is said."""
    one_of("errors", errors, ERRORS)
    if engine == AUTO and device is None and matrix.is_cupy_array(values):
        device = values.device.id
    request = read_request(engine, device, device_memory)
    systems = (*np.shape(values), 1)[0]
    return request._replace(systems=max(1, systems), on_device=matrix.is_cupy(values), may_migrate=False)


def made_batch(A: Any, values: Any, request: Request, made: type[Batch], options: ReadOptions, errors: Errors) -> Batch:
    """Analyse the pattern and factor the batch."""
    kind = "cholesky" if made is BatchedCholeskyFactor else "lu"

    def work() -> Batch:
        return made(Symbolic.of(analysis_for_batch(A, request, kind, options)), values, errors)

    batch: Batch = within_memory(work)
    return batch
