"""From tensors to factors and solutions: nothing here is differentiated."""

from __future__ import annotations

from itertools import count
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from ..batches import splu_batch
from ..errors import BatchError
from ..gradients import Factored
from ..linalg import for_one_use, is_singular
from ..matrix import Columns
from ..pipeline import DEFAULTS, factor_lu
from ..selection.request import automatic
from .pattern import Pattern

#: Factors whose handles somebody holds.
_held: WeakValueDictionary[int, Factored] = WeakValueDictionary()
_numbers = count(1)


def plain(tensor: Tensor) -> Tensor:
    """The numbers of a tensor as they are in memory."""
    return tensor.detach().resolve_conj().resolve_neg()


def factored(pattern: Pattern, values: Tensor, singular: bool = False) -> Factored:
    """A factor of the matrix of these values, or of each of a batch; with `singular` None stands for one that has none.

    Raises
    ------
    torch.linalg.LinAlgError
        The matrix is singular.
    """
    indices, pointers = pattern.indices.contiguous().numpy(), pattern.pointers.contiguous().numpy()
    numbers = plain(values).contiguous().numpy()
    try:
        if numbers.ndim == 1:
            lu = factor_lu(Columns(pattern.n, numbers, indices, pointers), DEFAULTS, for_one_use(automatic()))
            return Factored(lu, pattern.by_rows)
        numbers = numbers.reshape(-1, numbers.shape[-1])
        A = Columns(pattern.n, numbers[0], indices, pointers)
        return Factored(splu_batch(A, numbers, errors="flag" if singular else "raise"), pattern.by_rows)
    except RuntimeError as error:
        if singular and is_singular(error):
            return Factored(None)
        raise as_torch_has_it(error) from error


def as_torch_has_it(error: RuntimeError) -> RuntimeError:
    """The error of torch.linalg for what is singular."""
    if is_singular(error):
        return torch.linalg.LinAlgError("the matrix is singular")  # type: ignore[no-any-return]
    return torch.linalg.LinAlgError(str(error)) if isinstance(error, BatchError) else error


def solve(factored: Factored, b: Tensor, op: str, vectors: bool) -> Tensor:
    """The solution of ``op(A) x = b``, for b of shape (n,) or (n, k), or of these with the shape of a batch before."""
    numbers = plain(b).numpy()
    kept = 1 if vectors else 2
    if numbers.ndim == kept:
        return torch.from_numpy(factored.solve(numbers, op))
    x = factored.solve(numbers.reshape(-1, *numbers.shape[-kept:]), op)
    return torch.from_numpy(x.reshape(numbers.shape))


def slogdet(factored: Factored, values: Tensor) -> tuple[Tensor, Tensor]:
    """Signs and logarithms of determinants, of the shape of a batch."""
    sign, logabsdet = (0.0, -np.inf) if factored.factor is None else factored.factor.slogdet()
    found = []
    for array, dtype in ((sign, values.dtype), (logabsdet, values.real.dtype)):
        tensor = torch.as_tensor(np.asarray(array), dtype=dtype, device=values.device)
        found.append(tensor.reshape(values.shape[:-1]))
    return found[0], found[1]


def adjoint_inverse(factored: Factored, pattern: Pattern, values: Tensor) -> Tensor:
    """Entries of the conjugate transpose of the inverse where A has its own, of the shape of `values`."""
    rows, columns = (plain(one).numpy() for one in pattern.coordinates())
    try:
        if factored.factor is None:
            raise torch.linalg.LinAlgError("the matrix is singular")
        return torch.from_numpy(factored.adjoint_inverse(rows, columns)).reshape(values.shape)
    except RuntimeError as error:
        raise as_torch_has_it(error) from error


class Handle(np.ndarray):
    """Memory of a tensor that keeps a factor alive."""

    factored: Factored


def handle_of(factored: Factored) -> Tensor:
    """A tensor that stands for a factor, and keeps it alive."""
    number = next(_numbers)
    _held[number] = factored
    memory = np.array([number]).view(Handle)
    memory.factored = factored
    return torch.from_numpy(memory)


def factored_of(factor: Tensor | Factored, pattern: Pattern, values: Tensor) -> Factored:
    """The factor that a handle stands for; a copy of a handle may have outlived it: it is then made again."""
    if isinstance(factor, Factored):
        return factor
    found = _held.get(int(factor))
    return factored(pattern, values) if found is None else found
