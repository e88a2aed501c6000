"""Factors of tensors on a CUDA device: the host has one copy of a pattern's indices, and values stay on the device.

The first factorization of a pattern copies its values to the host, where pivots and an engine are chosen. A factor that
is no longer used is refactored with the next values of the pattern, directly from the device.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from ..common.arrays import Torch
from ..common.matrix import Columns
from ..common.options import DEFAULTS
from ..dispatch.request import automatic
from ..factors.gradients import Factored
from ..factors.lu import factor_lu
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


def factored(pattern: Pattern, values: Tensor) -> Factored:
    """A factor of the matrix of these values; to be called in torch's stream."""
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


def host_columns(pattern: Pattern, values: Tensor) -> Columns:
    """The matrix of these values on the host."""
    known = known_of(pattern)
    return Columns(pattern.n, values.detach().cpu().numpy(), known.indices, known.pointers)
