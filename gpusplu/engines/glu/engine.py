"""The glu engine behind the interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ..columns.engine import ColumnEngine
from ..columns.plan import ColumnPlan


class GluEngine(ColumnEngine):
    """Column-based right-looking LU, level by level.

    Parameters
    ----------
    **options
        `tuning` of GluProgram, for measurements and tests.
    """

    name = "glu"
    files = ("columns/column_solve.cu", "columns/glu.cu", "common/residual.cu", "common/values.cu")
    costs = {  # noqa: RUF012 (never changed)
        "glu.plan": {"call": 1e-5, "rows": 2.5e-7, "fill": 2.5e-7, "flops": 1e-12},
        # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less where blocks own several.
        "glu.refactor": {"call": 2e-6, "levels": 1e-6, "fill": 5.5e-10, "flops": 5.9e-12},
        "glu.solve": {"call": 2.1e-5, "levels": 9.8e-7, "fill": 3.9e-10},
    }

    def __init__(self, **options: Any):
        self._options = options

    def program(self, device: Any, plan: ColumnPlan, problem: Problem, dtype: np.dtype) -> Any:
        from .program import GluProgram

        threshold = problem.options.pivot_threshold
        return GluProgram(device, plan, problem.pattern, dtype, threshold, **self._options)


ENGINE = GluEngine()
