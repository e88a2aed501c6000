"""What methods of factors return beside arrays."""

from __future__ import annotations

from typing import Any, NamedTuple


class SlogDet(NamedTuple):
    """Result of slogdet, as numpy.linalg.slogdet names it."""

    sign: Any
    logabsdet: float


class Inertia(NamedTuple):
    """Numbers of eigenvalues, as inertia counts them."""

    positive: int
    negative: int
    zero: int
