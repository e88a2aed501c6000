"""From tensors to factors and solutions: nothing here is differentiated."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from ..gradients import Factored
from ..linalg import for_one_use
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


def factored(pattern: Pattern, values: Tensor) -> Factored:
    """A factor of the matrix of these values, or of each of a batch.

    Raises
    ------
    torch.linalg.LinAlgError
        The matrix is singular.
    """
    arrays = (plain(values).contiguous(), pattern.indices.contiguous(), pattern.pointers.contiguous())
    try:
        lu = factor_lu(Columns(pattern.n, *(array.numpy() for array in arrays)), DEFAULTS, for_one_use(automatic()))
    except RuntimeError as error:
        raise torch.linalg.LinAlgError(f"gpusplu: {error}") from None
    return Factored(lu, transposed=pattern.by_rows)


def solve(factored: Factored, b: Tensor, op: str) -> Tensor:
    """The solution of ``op(A) x = b``, for b of shape (n,) or (n, k), or of these with the shape of a batch before."""
    return torch.from_numpy(factored.solve(plain(b).numpy(), op))


class Handle(np.ndarray):  # type: ignore[type-arg]
    """Memory of a tensor that keeps a factor alive."""

    factored: Factored


def handle_of(factored: Factored) -> Tensor:
    """A tensor that stands for a factor, and keeps it alive."""
    number = next(_numbers)
    _held[number] = factored
    memory = np.array([number]).view(Handle)
    memory.factored = factored
    return torch.from_numpy(memory)


def factored_of(handle: Tensor, pattern: Pattern, values: Tensor) -> Factored:
    """The factor that a handle stands for; a copy of a handle may have outlived it: it is then made again."""
    found = _held.get(int(handle))
    return factored(pattern, values) if found is None else found
