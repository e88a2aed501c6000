"""What methods of factors return beside arrays."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A number, or one for each matrix of a batch.
Logarithm = TypeVar("Logarithm", float, NDArray[np.float64])


class SlogDet(NamedTuple, Generic[Logarithm]):
    """Result of slogdet, as numpy.linalg.slogdet names it."""

    sign: Any
    logabsdet: Logarithm


class Inertia(NamedTuple):
    """Numbers of eigenvalues, as inertia counts them."""

    positive: int
    negative: int
    zero: int
