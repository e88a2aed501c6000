"""Results of methods of factors that are not arrays."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A number, or one for each matrix of a batch.
Logarithm = TypeVar("Logarithm", float, NDArray[np.float64])


class SlogDet(NamedTuple, Generic[Logarithm]):
    """Result of slogdet, as numpy.linalg.slogdet names it.

    Examples
    --------
    >>> sign, logabsdet = gs.splu(sp.csc_array(np.diag([2.0, -3.0]))).slogdet()
    >>> round(float(sign * np.exp(logabsdet)), 6)
    -6.0
    """

    sign: Any
    logabsdet: Logarithm


class Inertia(NamedTuple):
    """Numbers of positive, negative and zero eigenvalues; returned by inertia.

    See Also
    --------
    LDLFactor.inertia

    Examples
    --------
    >>> gs.ldlt(sp.csc_array(np.diag([3.0, -1.0, 2.0]))).inertia()
    Inertia(positive=2, negative=1, zero=0)
    """

    positive: int
    negative: int
    zero: int
