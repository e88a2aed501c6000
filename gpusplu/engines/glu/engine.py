"""The glu engine behind the interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan
from .predict import COSTS


class GluEngine(ColumnEngine):
    """Column-based right-looking LU, level by level.

    Parameters
    ----------
    **options
        `tuning` of GluProgram, for measurements and tests.
    """

    name = "glu"
    files = ("columns/column_solve.cu", "columns/glu.cu", "common/residual.cu", "common/values.cu")
    costs = COSTS

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import GluProgram

        threshold = problem.options.pivot_threshold
        return GluProgram(device, plan, problem.pattern, dtype, threshold, **self._options)


ENGINE = GluEngine()
