"""Determinants of matrices with factors on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core


def outer_determinant(plan: Any) -> tuple[float, float]:
    """Sign and logarithm of the contribution of a plan's, or an analysis's, permutations and scales to the
    determinant."""
    sign = float(_core.parity(plan.row_perm) * _core.parity(plan.col_perm))
    scales = (scale for scale in (plan.row_scale, plan.col_scale) if scale.size)
    return sign, -sum(float(np.log(scale).sum()) for scale in scales)


def joined(signs: np.ndarray) -> Any:
    """The product of numbers of modulus 1, normalized to modulus 1."""
    sign = signs.prod()
    return sign / abs(sign)
