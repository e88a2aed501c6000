"""From tensors to factors and solutions, without derivatives.

Of tensors on a CUDA device the host has one copy of a pattern's indices, and values stay on the device. The first
factorization of a pattern copies its values to the host, where pivots and an engine are chosen. A factor that is no
longer used is refactored with the next values of the pattern, directly from the device.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from ..common.arrays import Torch
from ..common.matrix import Columns
from ..common.options import DEFAULTS
from ..dispatch.selection import automatic
from ..engines.repaired_batch import BatchStatus
from ..errors import BatchError, is_singular
from ..factors.batch import splu_batch
from ..factors.gradients import Factored
from ..factors.lu import factor_lu
from ..factors.solving import factor_to_borrow, for_one_use
from ..typing import Errors
from .pattern import Pattern


class Known:
    """Cached data of a pattern with indices on a device.

    Attributes
    ----------
    versions : tuple
        Where these were, and how often they had been changed.
    pointers, indices : ndarray
    idle : dict
        Unused factors, by stream and number type.
    """

    __slots__ = ("__weakref__", "idle", "indices", "pointers", "versions")

    def __init__(self, pattern: Pattern, versions: tuple[Any, ...]) -> None:
        self.versions = versions
        self.pointers, self.indices = pattern.pointers.cpu().numpy(), pattern.indices.contiguous().cpu().numpy()
        self.idle: dict[tuple[int, np.dtype], Any] = {}


#: As long as the memory of their indices is used.
_known: WeakKeyDictionary[Any, Known] = WeakKeyDictionary()


def known_of(pattern: Pattern) -> Known:
    """Cached data of a pattern; created for new or changed indices."""
    storage = pattern.origin[0].untyped_storage()
    versions = tuple((one.data_ptr(), one.numel(), one._version) for one in pattern.origin)
    known = _known.get(storage)
    if known is None or known.versions != versions:
        known = _known[storage] = Known(pattern, versions)
    return known


def factored_on_device(pattern: Pattern, values: Tensor) -> Factored:
    """A factor of the matrix of these values; to be called in torch's stream. An idle one is refactored."""
    known, numbers = known_of(pattern), Torch().array(values.contiguous())
    key = torch.cuda.current_stream(values.device).cuda_stream, numbers.dtype
    lu = known.idle.pop(key, None)
    if lu is None:
        A = Columns(pattern.n, numbers.get(), known.indices, known.pointers)
        lu = factor_lu(A, DEFAULTS, automatic()._replace(on_device=True))
    else:
        try:
            lu.refactor(numbers)
        except Exception:
            known.idle[key] = lu  # with the values before
            raise
    return Factored(lu, partial(known.idle.__setitem__, key), pattern.by_rows)


#: Factors by their handles, while these are referenced.
_held: WeakValueDictionary[int, Factored] = WeakValueDictionary()
_numbers = count(1)


def plain(tensor: Tensor) -> Tensor:
    """The numbers of a tensor in memory order."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor


def factored(pattern: Pattern, values: Tensor, singular: bool = False) -> Factored:
    """A factor of the matrix of these values, or of each of a batch; with `singular` None stands for one that has none.

    Raises
    ------
    torch.linalg.LinAlgError
        The matrix is singular.
    """
    values = plain(values)
    try:
        if values.ndim > 1:
            return factored_batch(pattern, values.flatten(0, -2), "flag" if singular else "raise")
        if values.device.type == "cuda":
            with Torch().working(values):
                return factored_on_device(pattern, values)
        return Factored(*factor_to_borrow(columns(pattern, values), for_one_use(automatic())), pattern.by_rows)
    except RuntimeError as error:
        if singular and is_singular(error):
            return Factored(None)
        raise as_torch_has_it(error) from error


def columns(pattern: Pattern, values: Tensor) -> Columns:
    """The matrix of these values on the host; compressed rows are interpreted as columns."""
    if values.device.type == "cuda":
        known = known_of(pattern)
        return Columns(pattern.n, values.detach().cpu().numpy(), known.indices, known.pointers)
    arrays = (values, pattern.indices, pattern.pointers)
    return Columns(pattern.n, *(array.contiguous().numpy() for array in arrays))


def factored_batch(pattern: Pattern, values: Tensor, errors: Errors) -> Factored:
    """Factors of many matrices, values (nbatch, nnz).

    Raises
    ------
    ValueError
        The batch is empty.
    """
    if not values.shape[0]:
        raise ValueError(f"a batch needs at least one system, got values of shape {tuple(values.shape)}")
    with Torch().working(values):
        batch = splu_batch(columns(pattern, values[0]), Torch().array(values), errors=errors)
    return Factored(batch, transposed=pattern.by_rows)


def as_torch_has_it(error: RuntimeError) -> RuntimeError:
    """The error of torch.linalg for a singular matrix."""
    if is_singular(error):
        return torch.linalg.LinAlgError("the matrix is singular")
    return torch.linalg.LinAlgError(str(error)) if isinstance(error, BatchError) else error


def solve(factored: Factored, b: Tensor, op: str, vectors: bool) -> Tensor:
    """The solution of ``op(A) x = b``, for b of shape (n,) or (n, k), or of these with the shape of a batch before."""
    with Torch().working(b):
        numbers = Torch().array(b)
        kept = 1 if vectors else 2
        try:
            if numbers.ndim == kept:
                x = factored.solve(numbers, op)
            else:
                x = factored.solve(numbers.reshape(-1, *numbers.shape[-kept:]), op).reshape(numbers.shape)
        except RuntimeError as error:  # repeated pivoting found no pivots
            raise as_torch_has_it(error) from error
        return Torch().given_back(x, b)


def slogdet(factored: Factored, values: Tensor) -> tuple[Tensor, Tensor]:
    """Signs and logarithms of determinants, of the shape of a batch."""
    sign, logabsdet = (0.0, -np.inf) if factored.factor is None else factored.factor.slogdet()
    found = []
    for array, dtype in ((sign, values.dtype), (logabsdet, values.dtype.to_real())):
        tensor = torch.as_tensor(np.asarray(array), dtype=dtype, device=values.device)
        found.append(tensor.reshape(values.shape[:-1]))
    return found[0], found[1]


def adjoint_inverse(factored: Factored, pattern: Pattern, values: Tensor) -> Tensor:
    """Entries of the conjugate transpose of the inverse where A has its own, of the shape of `values`."""
    rows, columns = (one.cpu().numpy() for one in pattern.coordinates())
    try:
        if factored.factor is None:
            raise torch.linalg.LinAlgError("the matrix is singular")
        if values.ndim > 1 and (factored.factor.status == BatchStatus.SINGULAR).any():
            raise torch.linalg.LinAlgError("a matrix of the batch is singular")
        found = torch.from_numpy(factored.adjoint_inverse(rows, columns))
        return found.reshape(values.shape).to(values.device)
    except RuntimeError as error:
        raise as_torch_has_it(error) from error


class Handle(np.ndarray):
    """Memory of a tensor that keeps a factor alive."""

    factored: Factored


def handle_of(factored: Factored) -> Tensor:
    """A tensor that represents a factor and keeps it alive."""
    number = next(_numbers)
    _held[number] = factored
    memory = np.array([number]).view(Handle)
    memory.factored = factored
    return torch.from_numpy(memory)


def factored_of(factor: Tensor | Factored, pattern: Pattern, values: Tensor) -> Factored:
    """The factor of a handle; made again if a copy of the handle has outlived it."""
    if isinstance(factor, Factored):
        return factor
    found = _held.get(int(factor))
    return factored(pattern, values) if found is None else found
