"""The sflu engine behind the interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan


class SfluEngine(ColumnEngine):
    """Synchronization-free left-looking LU: one launch, columns by busy waiting.

    Parameters
    ----------
    **options
        `tuning` of SfluProgram, for measurements and tests.
    """

    name = "sflu"
    files = ("columns/column_solve.cu", "columns/sflu.cu", "common/residual.cu", "common/values.cu")

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import SfluProgram

        threshold = problem.options.pivot_threshold
        return SfluProgram(device, plan, problem.pattern, dtype, threshold, **self._options)


ENGINE = SfluEngine()
